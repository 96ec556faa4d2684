package apcore

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// ACLFinding is one fault of a rule that [ACL.ValidateRules] reports.
type ACLFinding struct {
	// RuleIndex is the rule's place, from 0.
	RuleIndex int `json:"rule_index"`
	// Path leads to the fault: "roles", "$or[1].roles", "$not.roles",
	// "arguments.has_key"; "$" stands for a set of conditions that is no object.
	Path string `json:"path"`
	// Key is the condition's key, nil where Path ends with "$".
	Key *string `json:"key"`
	// Effect is the rule's: a faulty allow rule grants nothing, a faulty deny
	// rule denies whenever its patterns match.
	Effect ACLEffect `json:"effect"`
	// SyncResolvable and AsyncResolvable are other languages' distinction between
	// two ways to check. Here there is one, which cannot resolve the fault.
	SyncResolvable  bool `json:"sync_resolvable"`
	AsyncResolvable bool `json:"async_resolvable"`
	// Message says what is wrong.
	Message string `json:"message"`
}

// conditionCompiler turns the conditions of one rule into a [condition] and
// notes every fault. With a fault the condition is not usable.
type conditionCompiler struct {
	rule     int
	effect   ACLEffect
	handlers map[string]ACLCondition
	findings []ACLFinding
}

// standardConditions are the conditions of §6.1.1 but for the operators.
var standardConditions = map[string]func(c *conditionCompiler, value any, path, key string) condition{
	"identity_types": func(c *conditionCompiler, value any, path, key string) condition {
		return identityTypes(c.texts(value, path, key))
	},
	"roles": func(c *conditionCompiler, value any, path, key string) condition {
		return anyRole(c.texts(value, path, key))
	},
	"max_call_depth": (*conditionCompiler).depth,
	"arguments":      (*conditionCompiler).arguments,
}

// argumentPredicates are the parts of the condition arguments.
var argumentPredicates = map[string]func(wanted, names []string) bool{
	"has_key": func(wanted, names []string) bool {
		return slices.ContainsFunc(wanted, func(name string) bool { return slices.Contains(names, name) })
	},
	"has_all_keys": func(wanted, names []string) bool {
		return !slices.ContainsFunc(wanted, func(name string) bool { return !slices.Contains(names, name) })
	},
	"has_none_of": func(wanted, names []string) bool {
		return !slices.ContainsFunc(wanted, func(name string) bool { return slices.Contains(names, name) })
	},
}

func (c *conditionCompiler) fault(path, key, format string, args ...any) {
	finding := ACLFinding{RuleIndex: c.rule, Path: path, Effect: c.effect, Message: fmt.Sprintf(format, args...)}
	if key != "" {
		finding.Key = &key
	}
	c.findings = append(c.findings, finding)
}

// object reads a set of conditions; keys are taken in alphabetical order.
func (c *conditionCompiler) object(value any, prefix string) condition {
	conditions, ok := value.(map[string]any)
	if !ok {
		c.fault(prefix+"$", "", "it must be an object, not %s", jsonKind(value))
		return nil
	}
	all := make(allOf, 0, len(conditions))
	for _, key := range slices.Sorted(maps.Keys(conditions)) {
		all = append(all, c.entry(key, conditions[key], prefix+key))
	}
	return all
}

func (c *conditionCompiler) entry(key string, value any, path string) condition {
	switch key {
	case operatorOr:
		return c.branches(value, path)
	case operatorNot:
		return negated{c.object(value, path+".")}
	}
	if compile := standardConditions[key]; compile != nil {
		return compile(c, value, path, key)
	}
	if handler := c.handlers[key]; handler != nil {
		return custom{path: path, value: value, handler: handler}
	}
	c.fault(path, key, "nobody registered a condition %.40q", key)
	return nil
}

func (c *conditionCompiler) branches(value any, path string) condition {
	branches, ok := value.([]any)
	if !ok || len(branches) == 0 {
		c.fault(path, operatorOr, "it must be a list with at least one object")
		return nil
	}
	either := make(anyOf, len(branches))
	for i, branch := range branches {
		either[i] = c.object(branch, fmt.Sprintf("%s[%d].", path, i))
	}
	return either
}

func (c *conditionCompiler) texts(value any, path, key string) []string {
	items, ok := value.([]any)
	if !ok {
		c.fault(path, key, "it must be a list of texts, not %s", jsonKind(value))
		return nil
	}
	texts := make([]string, len(items))
	for i, item := range items {
		if texts[i], ok = item.(string); !ok {
			c.fault(path, key, "item %d must be a text, not %s", i, jsonKind(item))
			return nil
		}
	}
	return texts
}

// depth reads an integer or {"lte": integer}.
func (c *conditionCompiler) depth(value any, path, key string) condition {
	if bound, ok := value.(map[string]any); ok && len(bound) == 1 {
		value = bound["lte"]
	}
	limit, ok := integerOf(value)
	if !ok {
		c.fault(path, key, `it must be an integer or {"lte": integer}`)
	}
	return maxCallDepth(limit)
}

// integerOf accepts what is mathematically an integer, as JSON Schema does.
func integerOf(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case uint64: // beyond int64
		return math.MaxInt64, true
	case float64:
		if v != math.Trunc(v) || math.IsInf(v, 0) {
			return 0, false
		}
		return int64(max(-1<<62, min(v, 1<<62))), true
	default:
		return 0, false
	}
}

func (c *conditionCompiler) arguments(value any, path, key string) condition {
	predicates, ok := value.(map[string]any)
	if !ok {
		c.fault(path, key, "it must be an object, not %s", jsonKind(value))
		return nil
	}
	names := argumentNames{path: path}
	for _, name := range slices.Sorted(maps.Keys(predicates)) {
		within := path + "." + name
		predicate := argumentPredicates[name]
		if predicate == nil {
			c.fault(within, key, "there is no such predicate: there are has_key, has_all_keys and has_none_of")
			continue
		}
		wanted := c.texts(predicates[name], within, key)
		names.predicates = append(names.predicates, func(names []string) bool { return predicate(wanted, names) })
	}
	return names
}

// jsonKind names the type of a JSON value.
func jsonKind(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a text"
	case bool:
		return "a boolean"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case int64, uint64, float64:
		return "a number"
	default:
		return "a " + typeName(value)
	}
}
