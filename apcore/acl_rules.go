package apcore

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// aclState is what one check sees; it never changes.
type aclState struct {
	rules         []*aclRule
	targets       targetIndex
	defaultEffect ACLEffect
	audit         *auditConfig // the file's audit block, nil if there is none
	conditions    map[string]ACLCondition
}

// aclRule is a rule ready for checks.
type aclRule struct {
	ACLRule
	callers, targets patternList
	when             condition    // nil if the rule has no conditions
	faults           []ACLFinding // what makes the conditions unevaluable at once
	warned           atomic.Bool  // of a call without context
}

// newACLState takes over the rules, which have been checked.
func newACLState(rules []ACLRule, effect ACLEffect, audit *auditConfig, conditions map[string]ACLCondition) *aclState {
	s := &aclState{defaultEffect: effect, audit: audit, conditions: conditions, targets: newTargetIndex()}
	for i, rule := range rules {
		ready := &aclRule{ACLRule: rule, callers: newPatternList(rule.Callers), targets: newPatternList(rule.Targets)}
		if len(rule.Conditions) > 0 {
			compiler := conditionCompiler{rule: i, effect: rule.Effect, handlers: conditions}
			ready.when = compiler.object(rule.Conditions, "")
			ready.faults = compiler.findings
		}
		s.rules = append(s.rules, ready)
		s.targets.add(i, ready.targets)
	}
	return s
}

// plain returns the rules as they were given. They share their parts with the
// state and must not reach a caller.
func (s *aclState) plain() []ACLRule {
	rules := make([]ACLRule, len(s.rules))
	for i, rule := range s.rules {
		rules[i] = rule.ACLRule
	}
	return rules
}

// warnOfPatterns tells of patterns that match nothing.
func (a *ACL) warnOfPatterns(rules []ACLRule) {
	for i, rule := range rules {
		for _, pattern := range slices.Concat(rule.Callers, rule.Targets) {
			if strings.Contains(pattern, "?") {
				a.logger.Warn("apcore: a pattern of an access rule can never match, for ? is no wildcard", "rule_index", i, "pattern", pattern)
			}
		}
	}
}

// ruleFault says which key of a rule is wrong and how.
type ruleFault struct{ key, reason string }

func (f *ruleFault) error(where string, index *int) *Error {
	message := within(f.key, f.reason)
	if where != "" {
		message = where + ": " + message
	}
	err := NewError(CodeACLRule, "%s", message).WithDetail("key", f.key)
	if index != nil {
		err = err.WithDetail("rule_index", *index)
	}
	return err
}

func ruleName(index int) string { return fmt.Sprintf("rule %d", index) }

func checkDefaultEffect(effect ACLEffect) (ACLEffect, *ruleFault) {
	if effect == "" {
		return ACLDeny, nil
	}
	if reason := checkEffect(effect); reason != "" {
		return "", &ruleFault{"default_effect", reason}
	}
	return effect, nil
}

// checkedRule returns a deep copy of a legal rule. The order is the standard's.
func checkedRule(rule *ACLRule) (ACLRule, *ruleFault) {
	if reason := checkEffect(rule.Effect); reason != "" {
		return ACLRule{}, &ruleFault{"effect", reason}
	}
	if reason := checkApproval(rule.Effect, rule.Approval); rule.Approval != "" && reason != "" {
		return ACLRule{}, &ruleFault{"approval", reason}
	}
	if reason := checkPatterns(rule.Callers); reason != "" {
		return ACLRule{}, &ruleFault{"callers", reason}
	}
	if reason := checkPatterns(rule.Targets); reason != "" {
		return ACLRule{}, &ruleFault{"targets", reason}
	}
	copied := *rule
	copied.Callers, copied.Targets = slices.Clone(rule.Callers), slices.Clone(rule.Targets)
	conditions, err := copyConditions(rule.Conditions)
	if err != nil {
		return ACLRule{}, &ruleFault{"conditions", err.Error()}
	}
	copied.Conditions = conditions
	return copied, nil
}

// copied returns a rule that its receiver may change.
func (r *aclRule) copied() ACLRule {
	rule := r.ACLRule
	rule.Callers, rule.Targets = slices.Clone(rule.Callers), slices.Clone(rule.Targets)
	rule.Conditions, _ = copyConditions(rule.Conditions) // has been copied before
	return rule
}

func checkEffect(effect ACLEffect) (reason string) {
	switch effect {
	case ACLAllow, ACLDeny:
		return ""
	case "":
		return `is missing: give "allow" or "deny"`
	default:
		return fmt.Sprintf(`is %.40q: give "allow" or "deny"`, effect)
	}
}

func checkApproval(effect ACLEffect, approval ACLApproval) (reason string) {
	switch {
	case approval != ACLApprovalRequired && approval != ACLApprovalNotRequired:
		return fmt.Sprintf(`is %.40q: give "required" or "not_required"`, approval)
	case approval == ACLApprovalRequired && effect == ACLDeny:
		return `is "required" on a rule that denies: only allowed calls can be approved`
	default:
		return ""
	}
}

func checkPatterns(patterns []string) (reason string) {
	if len(patterns) == 0 {
		return "is empty: give at least one pattern"
	}
	for i, pattern := range patterns {
		switch {
		case pattern == "":
			return fmt.Sprintf("[%d] is an empty text", i)
		case !strings.HasPrefix(pattern, "$"):
		case pattern != operatorOr && pattern != operatorNot:
			return fmt.Sprintf("[%d] is %.40q, which is no operator: there are $or and $not", i, pattern)
		case i > 0:
			return fmt.Sprintf("[%d] is %s: an operator stands at the head of the list only", i, pattern)
		}
	}
	switch {
	case patterns[0] == operatorOr && len(patterns) < 2:
		return "has $or without a pattern: give at least one"
	case patterns[0] == operatorNot && len(patterns) != 2:
		return fmt.Sprintf("has $not with %d patterns: give exactly one", len(patterns)-1)
	default:
		return ""
	}
}
