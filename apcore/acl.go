package apcore

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
)

// ACLEffect is what a rule or the default does: "allow" or "deny" (§6.1).
type ACLEffect string

// The two effects.
const (
	ACLAllow ACLEffect = "allow"
	ACLDeny  ACLEffect = "deny"
)

// ACLApproval says whether a call that a rule allows needs approval as well
// (§6.1): "required" or "not_required". The zero value is "not_required".
type ACLApproval string

// The two approvals.
const (
	ACLApprovalRequired    ACLApproval = "required"
	ACLApprovalNotRequired ACLApproval = "not_required"
)

// ACLRule says which callers may or may not reach which targets (apcore §6.1).
type ACLRule struct {
	// Callers and Targets are lists of patterns, see [MatchPattern]. A list
	// matches if one of its patterns does. The first element may be an operator:
	// "$or" before one or more patterns says the same in words, "$not" before
	// exactly one pattern turns it round. "@external" among Callers is a call
	// that no module made; "@system" in either list is any call whose identity
	// has the type "system". Neither list may be empty.
	Callers []string `json:"callers"`
	Targets []string `json:"targets"`
	// Effect is required.
	Effect ACLEffect `json:"effect"`
	// Approval may be "required" only where Effect is "allow".
	Approval ACLApproval `json:"approval,omitempty"`
	// Description is for people; audit entries carry it as matched_rule.
	Description string `json:"description,omitempty"`
	// Conditions must all hold; none always hold. They are JSON values under the
	// keys identity_types, roles, max_call_depth, arguments, $or, $not and those
	// of [ACL.RegisterCondition]. A condition that cannot be evaluated never
	// grants anything: an allow rule is passed over, a deny rule denies (§6.1.1).
	Conditions map[string]any `json:"conditions,omitempty"`
}

// ACLCondition decides a condition of its own kind. Value is what the rule says
// under the condition's key, with integers as int64; the handler owns it. The
// same goes for request.ArgumentKeys. An error or a panic makes the condition
// unevaluable. Handlers may run concurrently.
type ACLCondition func(ctx context.Context, value any, request AccessRequest) (bool, error)

// ACLOptions configures an [ACL]. The zero value denies what no rule allows,
// knows the standard's conditions and audits only where a file says so.
type ACLOptions struct {
	// DefaultEffect decides where no rule does; empty means "deny". A file that
	// names one has the last word.
	DefaultEffect ACLEffect
	// Conditions are registered before any rule is looked at, see
	// [ACL.RegisterCondition].
	Conditions map[string]ACLCondition
	// Audit takes every entry, synchronously; it must return soon. With it, the
	// audit block of a file has no effect. A panic changes no decision.
	Audit func(ctx context.Context, entry AuditEntry)
	// Logger takes warnings and, if a file asks for it, the audit entries; nil
	// means slog.Default().
	Logger *slog.Logger
}

// ACL is the standard's access control: an ordered list of rules of which the
// first that matches decides (apcore §6). It is an [AccessControl].
//
// All methods may be called concurrently. Each check sees the rules of one
// moment; a change affects later checks only.
type ACL struct {
	logger *slog.Logger
	audit  func(context.Context, AuditEntry)
	source string // the file, empty if the rules came otherwise
	given  ACLOptions

	mu    sync.Mutex // held by writers
	state atomic.Pointer[aclState]

	inapplicable sync.Once // one warning each
	broken       sync.Once
}

var _ AccessControl = (*ACL)(nil)

// NewACL makes access rules. An illegal value fails with ACL_RULE_ERROR; the
// default effect is looked at first, then rule by rule its effect, approval,
// callers and targets, and the first fault is told with details.rule_index and
// details.key (§6.1). An illegal condition in opts fails with
// GENERAL_INVALID_INPUT. What a rule's conditions say is not checked here, see
// [ACL.ValidateRules].
func NewACL(rules []ACLRule, opts ACLOptions) (*ACL, error) {
	a, conditions, err := bareACL(opts)
	if err != nil {
		return nil, err
	}
	effect, fault := checkDefaultEffect(opts.DefaultEffect)
	if fault != nil {
		return nil, fault.error("", nil)
	}
	copied := make([]ACLRule, len(rules))
	for i := range rules {
		if copied[i], fault = checkedRule(&rules[i]); fault != nil {
			return nil, fault.error(ruleName(i), &i)
		}
	}
	a.warnOfPatterns(copied)
	a.state.Store(newACLState(copied, effect, nil, conditions))
	return a, nil
}

// bareACL is an ACL without rules.
func bareACL(opts ACLOptions) (*ACL, map[string]ACLCondition, error) {
	conditions := make(map[string]ACLCondition, len(opts.Conditions))
	for key, handler := range opts.Conditions {
		if err := checkCondition(conditions, key, handler); err != nil {
			return nil, nil, err
		}
		conditions[key] = handler
	}
	return &ACL{logger: loggerOr(opts.Logger), audit: opts.Audit, given: opts}, conditions, nil
}

// Rules returns a copy of the rules in their order.
func (a *ACL) Rules() []ACLRule {
	s := a.state.Load()
	rules := make([]ACLRule, len(s.rules))
	for i, rule := range s.rules {
		rules[i] = rule.copied()
	}
	return rules
}

// DefaultEffect is what decides where no rule does.
func (a *ACL) DefaultEffect() ACLEffect { return a.state.Load().defaultEffect }

// AddRule puts a rule before all others. An illegal one fails with
// ACL_RULE_ERROR, as with [NewACL]. [ACL.Reload] forgets it.
func (a *ACL) AddRule(rule ACLRule) error {
	copied, fault := checkedRule(&rule)
	if fault != nil {
		return fault.error("the new rule", nil)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.state.Load()
	a.warnOfPatterns([]ACLRule{copied})
	a.state.Store(newACLState(append([]ACLRule{copied}, s.plain()...), s.defaultEffect, s.audit, s.conditions))
	return nil
}

// RemoveRule removes the first rule whose callers, targets and conditions equal
// the given ones element by element, and reports whether there was one. Nil
// conditions stand for any; empty ones for none.
func (a *ACL) RemoveRule(callers, targets []string, conditions map[string]any) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.state.Load()
	rules := s.plain()
	i := slices.IndexFunc(rules, func(rule ACLRule) bool {
		return slices.Equal(rule.Callers, callers) && slices.Equal(rule.Targets, targets) &&
			(conditions == nil || equalConditions(rule.Conditions, conditions))
	})
	if i < 0 {
		return false
	}
	a.state.Store(newACLState(slices.Delete(rules, i, i+1), s.defaultEffect, s.audit, s.conditions))
	return true
}

// RegisterCondition gives a meaning to a condition key of one's own (§6.1.1).
// Rules with a key that nobody registered are unevaluable. An empty key, one of
// the standard's, one that begins with $, one that is registered already, and a
// nil handler fail with GENERAL_INVALID_INPUT. [ACL.Reload] keeps conditions.
func (a *ACL) RegisterCondition(key string, handler ACLCondition) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.state.Load()
	if err := checkCondition(s.conditions, key, handler); err != nil {
		return err
	}
	conditions := make(map[string]ACLCondition, len(s.conditions)+1)
	for known, other := range s.conditions {
		conditions[known] = other
	}
	conditions[key] = handler
	a.state.Store(newACLState(s.plain(), s.defaultEffect, s.audit, conditions))
	return nil
}

// ValidateRules looks for conditions that no check could evaluate: unknown keys
// and malformed values. It runs no handler and reports every fault, in the order
// of the rules; nil means there is none (§6.1.1).
func (a *ACL) ValidateRules() []ACLFinding {
	var findings []ACLFinding
	for _, rule := range a.state.Load().rules {
		findings = append(findings, rule.faults...)
	}
	return findings
}
