package apcore

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// maxACLNodes bounds what aliases may make of a small file.
const maxACLNodes = 1_000_000

// aclReader reads the nodes of one document.
type aclReader struct {
	source string // the file, empty if unknown
	nodes  int    // how many values have been read
}

var aclRuleKeys = []string{"effect", "approval", "callers", "targets", "description", "conditions"}

// rule reads one rule: its keys first, then the values in the standard's order.
func (r *aclReader) rule(node *yaml.Node, index int) (ACLRule, error) {
	fields, fault := r.fields(node, ruleName(index), CodeACLRule, aclRuleKeys)
	if fault != nil {
		return ACLRule{}, fault.WithDetail("rule_index", index)
	}
	var rule ACLRule
	for _, key := range aclRuleKeys {
		at := fields[key]
		reason := ""
		if at == nil {
			at = node
			if key == "effect" || key == "callers" || key == "targets" {
				reason = "is missing"
			}
		} else {
			reason = r.ruleField(&rule, key, at)
		}
		if reason != "" {
			return ACLRule{}, r.fail(at, index, key, reason)
		}
	}
	return rule, nil
}

// ruleField reads the value of one key and checks it as [checkedRule] does.
func (r *aclReader) ruleField(rule *ACLRule, key string, node *yaml.Node) (reason string) {
	switch key {
	case "callers":
		rule.Callers, reason = r.patterns(node)
		return reason
	case "targets":
		rule.Targets, reason = r.patterns(node)
		return reason
	case "conditions":
		rule.Conditions, reason = r.conditions(node)
		return reason
	}
	text, reason := r.text(node)
	switch {
	case reason != "":
		return reason
	case key == "effect":
		rule.Effect = ACLEffect(text)
		return checkEffect(rule.Effect)
	case key == "approval":
		rule.Approval = ACLApproval(text)
		return checkApproval(rule.Effect, rule.Approval)
	default:
		rule.Description = text
		return ""
	}
}

func (r *aclReader) patterns(node *yaml.Node) (patterns []string, reason string) {
	if node = r.target(node); node.Kind != yaml.SequenceNode {
		return nil, "must be a list of texts, not " + nodeKind(node)
	}
	for i, item := range node.Content {
		pattern, reason := r.text(item)
		if reason != "" {
			return nil, fmt.Sprintf("[%d] %s", i, reason)
		}
		patterns = append(patterns, pattern)
	}
	return patterns, checkPatterns(patterns)
}

func (r *aclReader) conditions(node *yaml.Node) (conditions map[string]any, reason string) {
	value, reason := r.value(node, 0)
	if reason != "" {
		return nil, reason
	}
	conditions, ok := value.(map[string]any)
	if !ok {
		return nil, "must be an object, not " + nodeKind(r.target(node))
	}
	return conditions, ""
}

// fields reads an object with texts as keys, none twice; allowed nil lets every
// key pass.
func (r *aclReader) fields(node *yaml.Node, what string, code Code, allowed []string) (map[string]*yaml.Node, *Error) {
	node = r.target(node)
	if node.Kind != yaml.MappingNode {
		return nil, r.at(code, node, what+" must be an object, not "+nodeKind(node))
	}
	fields := make(map[string]*yaml.Node, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		name, reason := r.key(key)
		switch {
		case reason != "":
		case fields[name] != nil:
			reason = fmt.Sprintf("has the key %.40q twice", name)
		case allowed != nil && !slices.Contains(allowed, name):
			reason = fmt.Sprintf("has the unknown key %.40q", name)
		}
		if reason != "" {
			return nil, r.at(code, key, what+" "+reason).WithDetail("key", name)
		}
		fields[name] = node.Content[i+1]
	}
	return fields, nil
}

func (r *aclReader) key(node *yaml.Node) (name, reason string) {
	node = r.target(node)
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!merge" {
		return node.Value, "has a merge key <<: write the keys out"
	}
	if name, reason = r.text(node); reason != "" {
		return node.Value, "has a key that is no text"
	}
	return name, ""
}

func (r *aclReader) text(node *yaml.Node) (text, reason string) {
	node = r.target(node)
	if r.nodes++; r.nodes > maxACLNodes {
		return "", "makes the document too large"
	}
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!str" {
		return "", "must be a text, not " + nodeKind(node)
	}
	return node.Value, ""
}

// value reads a JSON value; numbers become int64, uint64 or float64.
func (r *aclReader) value(node *yaml.Node, depth int) (value any, reason string) {
	node = r.target(node)
	if r.nodes++; depth > maxConditionDepth || r.nodes > maxACLNodes {
		return nil, "is nested too deep or too large"
	}
	switch node.Kind {
	case yaml.MappingNode:
		return r.object(node, depth)
	case yaml.SequenceNode:
		list := make([]any, 0, len(node.Content))
		for i, item := range node.Content {
			element, reason := r.value(item, depth+1)
			if reason != "" {
				return nil, within(fmt.Sprintf("[%d]", i), reason)
			}
			list = append(list, element)
		}
		return list, ""
	default:
		return scalar(node)
	}
}

func (r *aclReader) object(node *yaml.Node, depth int) (value any, reason string) {
	object := make(map[string]any, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, reason := r.key(node.Content[i])
		if reason != "" {
			return nil, reason
		}
		if _, twice := object[name]; twice {
			return nil, fmt.Sprintf("has the key %.40q twice", name)
		}
		if object[name], reason = r.value(node.Content[i+1], depth+1); reason != "" {
			return nil, within("."+name, reason)
		}
	}
	return object, ""
}

// within puts a part's name before what is wrong with it, unless the parts have
// become too many to name.
func within(part, reason string) string {
	if len(reason) > 300 {
		return reason
	}
	if reason[0] == '.' || reason[0] == '[' {
		return part + reason
	}
	return part + " " + reason
}

func scalar(node *yaml.Node) (value any, reason string) {
	var err error
	switch node.ShortTag() {
	case "!!str", "!!timestamp":
		return node.Value, ""
	case "!!null":
		return nil, ""
	case "!!bool":
		var flag bool
		err = node.Decode(&flag)
		value = flag
	case "!!int":
		return integer(node)
	case "!!float":
		var f float64
		err = node.Decode(&f)
		value = f
	default:
		return nil, fmt.Sprintf("has the type %.40q, which JSON does not know", node.Tag)
	}
	if err != nil {
		return nil, fmt.Sprintf("is %.40q, which is no value of its type", node.Value)
	}
	return value, ""
}

func integer(node *yaml.Node) (value any, reason string) {
	var n int64
	var u uint64
	var f float64
	switch {
	case node.Decode(&n) == nil:
		return n, ""
	case node.Decode(&u) == nil:
		return u, ""
	case node.Decode(&f) == nil:
		return f, ""
	default:
		return nil, fmt.Sprintf("is %.40q, which is no number", node.Value)
	}
}

// target follows an alias.
func (r *aclReader) target(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

func nodeKind(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		return "an object"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case node.ShortTag() == "!!null":
		return "null"
	case node.ShortTag() == "!!str":
		return "a text"
	case node.ShortTag() == "!!bool":
		return "a boolean"
	case node.ShortTag() == "!!int", node.ShortTag() == "!!float":
		return "a number"
	default:
		return "a value of type " + node.ShortTag()
	}
}

func (r *aclReader) name() string {
	if r.source == "" {
		return "access rules"
	}
	return r.source
}

// fail makes an ACL_RULE_ERROR about a key, of a rule unless that is negative.
func (r *aclReader) fail(node *yaml.Node, rule int, key, reason string) *Error {
	if rule < 0 {
		return r.at(CodeACLRule, node, within(key, reason)).WithDetail("key", key)
	}
	return r.at(CodeACLRule, node, ruleName(rule)+": "+within(key, reason)).
		WithDetail("key", key).WithDetail("rule_index", rule)
}

// at makes an error that says where in the document it is.
func (r *aclReader) at(code Code, node *yaml.Node, message string) *Error {
	err := NewError(code, "%s:%d: %s", r.name(), node.Line, message).WithDetail("line", node.Line)
	if r.source != "" {
		err = err.WithDetail("path", r.source)
	}
	return err
}
