package apcore

import (
	"context"
	"fmt"
	"strings"
)

// The reasons of an [AccessDecision] and an [AuditEntry].
const (
	reasonRuleMatch     = "rule_match"
	reasonDefaultEffect = "default_effect"
	reasonNoRules       = "no_rules"
)

// question is one check on its way through the rules.
type question struct {
	ctx      context.Context
	request  AccessRequest
	system   bool // whether the identity has the type "system"
	rule     int
	failures []string // the conditions that could not be evaluated
}

// CheckAccess takes the rules in their order; the first that matches decides,
// the default effect if none does (§6.2). An empty caller is [ExternalCaller].
//
// A rule whose conditions cannot be evaluated denies if it is a deny rule. If it
// allows, it is passed over, and when it demands approval, so does whatever
// grants the call later. A rule with conditions never matches a call without
// context. Each check makes exactly one [AuditEntry] where there is a sink.
func (a *ACL) CheckAccess(ctx context.Context, request AccessRequest) AccessDecision {
	if request.CallerID == "" {
		request.CallerID = ExternalCaller
	}
	s := a.state.Load()
	q := &question{ctx: ctx, request: request}
	if identity := q.identity(); identity != nil {
		q.system = identity.Type() == IdentitySystem
	}
	decision := a.decide(s, q)
	a.record(s, q, decision)
	return decision
}

// Check is the older question with a plain answer: whether the call may go on
// at once. It is false where approval is needed. An empty caller is
// [ExternalCaller], a nil context is none; argument names are unknown, so that
// conditions on them are unevaluable.
func (a *ACL) Check(caller, target string, c *Context) bool {
	decision := a.CheckAccess(context.Background(), AccessRequest{CallerID: caller, TargetID: target, Context: c})
	return decision.Allowed && !decision.ApprovalRequired
}

func (a *ACL) decide(s *aclState, q *question) AccessDecision {
	pending := false // an unevaluable rule demanded approval
	for _, i := range s.targets.candidates(q.request.TargetID) {
		rule := s.rules[i]
		if !rule.callers.matches(q.request.CallerID, q.system) || !rule.targets.matches(q.request.TargetID, q.system) {
			continue
		}
		q.rule = i
		demands := rule.Approval == ACLApprovalRequired
		switch result := a.evaluate(rule, q); {
		case result == unsatisfied:
			continue
		case rule.Effect == ACLDeny:
			return AccessDecision{MatchedRule: &i, Reason: reasonRuleMatch}
		case result == unevaluable:
			pending = pending || demands
			continue
		}
		return AccessDecision{Allowed: true, ApprovalRequired: demands || pending, MatchedRule: &i, Reason: reasonRuleMatch}
	}
	decision := AccessDecision{Reason: reasonDefaultEffect}
	if len(s.rules) == 0 {
		decision.Reason = reasonNoRules
	}
	decision.Allowed = s.defaultEffect == ACLAllow
	decision.ApprovalRequired = decision.Allowed && pending
	return decision
}

// evaluate answers whether a rule's conditions hold. Faults that need no
// handler and no context come first.
func (a *ACL) evaluate(rule *aclRule, q *question) outcome {
	switch {
	case rule.when == nil:
		return satisfied
	case len(rule.faults) > 0:
		for _, fault := range rule.faults {
			q.fail(fault.Path, "%s", fault.Message)
		}
		return unevaluable
	case q.request.Context == nil:
		if rule.warned.CompareAndSwap(false, true) {
			a.logger.Warn("apcore: an access rule with conditions matches no call without context", "rule_index", q.rule)
		}
		return unsatisfied
	default:
		return rule.when.evaluate(q)
	}
}

func (q *question) identity() *Identity {
	if q.request.Context == nil {
		return nil
	}
	return q.request.Context.Identity()
}

// fail notes a condition that cannot be evaluated.
func (q *question) fail(path, format string, args ...any) outcome {
	q.failures = append(q.failures, fmt.Sprintf("%s, %s: ", ruleName(q.rule), path)+outside.text(fmt.Sprintf(format, args...)))
	return unevaluable
}

func (q *question) handlerError() *string {
	if len(q.failures) == 0 {
		return nil
	}
	return new(strings.Join(q.failures, "; "))
}
