package durable

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// ApprovalRulesKey is the key in a module's annotations.extra or metadata under
// which it sets its own [ApprovalRules].
const ApprovalRulesKey = "x-approval"

// ApprovalRules say who may decide about a module's calls, and what happens
// while nobody does. The zero value lets anyone decide but the requester.
// Rejecting takes one voice, whatever the quorum.
type ApprovalRules struct {
	// Quorum is how many different people must approve, 1 to 20; zero means 1.
	Quorum int `json:"quorum,omitempty"`
	// Approvers may decide: "maria", "user:maria" or "user:*". Empty together
	// with Roles means everybody.
	Approvers []string `json:"approvers,omitempty"`
	// Roles may decide: an approver who claims one of them.
	Roles []string `json:"roles,omitempty"`
	// AllowRequester lets a requester approve the own call.
	AllowRequester bool `json:"allow_requester,omitempty"`
	// RemindAfterMS is after how many milliseconds of waiting RemindModule is
	// called once with {"approval": …, "workflow_id": …}; zero means never.
	RemindAfterMS int64  `json:"remind_after_ms,omitempty"`
	RemindModule  string `json:"remind_module,omitempty"`
	// EscalateAfterMS is after how many milliseconds EscalateTo may decide as
	// well. Whoever of all approvers answers first decides: the first level does
	// not lose its word. EscalateModule, if set, is called as RemindModule is.
	EscalateAfterMS int64    `json:"escalate_after_ms,omitempty"`
	EscalateTo      []string `json:"escalate_to,omitempty"`
	EscalateModule  string   `json:"escalate_module,omitempty"`
}

const (
	maxQuorum = 20
	maxRuleMS = int64(30 * 24 * time.Hour / time.Millisecond)
)

// RulesOf reads a module's own rules; nil without any. What does not make sense
// fails with CONFIG_INVALID naming module and field.
func RulesOf(definition *apcore.Descriptor) (*ApprovalRules, error) {
	given, ok := definition.Annotations.Extra[ApprovalRulesKey]
	if !ok {
		given, ok = definition.Metadata[ApprovalRulesKey]
	}
	if !ok {
		return nil, nil
	}
	text, err := apcore.EncodeJSON(given)
	if err != nil {
		return nil, badRules(definition.ID, "it is no JSON object")
	}
	var rules ApprovalRules
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&rules); err != nil {
		return nil, badRules(definition.ID, err.Error())
	}
	return &rules, rules.validate(definition.ID)
}

func (r *ApprovalRules) validate(moduleID string) error {
	if r == nil {
		return nil
	}
	for _, name := range slices.Concat(r.Approvers, r.Roles, r.EscalateTo) {
		if strings.TrimSpace(name) == "" || strings.Contains(strings.TrimSuffix(name, "*"), "*") {
			return badRules(moduleID, "a name in approvers, roles or escalate_to is empty or has a * that is not at its end")
		}
	}
	for _, module := range []string{r.RemindModule, r.EscalateModule} {
		if module != "" && apcore.ValidateModuleID(module) != nil {
			return badRules(moduleID, "remind_module or escalate_module is no module id: "+module)
		}
	}
	switch {
	case r.Quorum < 0 || r.Quorum > maxQuorum:
		return badRules(moduleID, "quorum must be 1 to 20")
	case r.RemindAfterMS < 0 || r.RemindAfterMS > maxRuleMS:
		return badRules(moduleID, "remind_after_ms must be 1 to 2592000000")
	case r.EscalateAfterMS < 0 || r.EscalateAfterMS > maxRuleMS:
		return badRules(moduleID, "escalate_after_ms must be 1 to 2592000000")
	case (r.RemindAfterMS > 0) != (r.RemindModule != ""):
		return badRules(moduleID, "remind_after_ms and remind_module need each other")
	case (r.EscalateAfterMS > 0) != (len(r.EscalateTo) > 0 || r.EscalateModule != ""):
		return badRules(moduleID, "escalate_after_ms and escalate_to or escalate_module need each other")
	}
	return nil
}

func badRules(moduleID, why string) error {
	e := newError(apcore.CodeConfigInvalid, "approval rules (%s): %s", ApprovalRulesKey, why)
	if moduleID == "" {
		return e
	}
	e.Message += ", in module \"" + moduleID + "\""
	return e.WithDetail("module_id", moduleID)
}

func (r *ApprovalRules) quorum() int {
	if r == nil {
		return 1
	}
	return max(1, r.Quorum)
}

// RemindAfter and EscalateAfter are zero for never; a nil receiver is allowed.
func (r *ApprovalRules) RemindAfter() time.Duration {
	if r == nil {
		return 0
	}
	return time.Duration(r.RemindAfterMS) * time.Millisecond
}

// EscalateAfter is how long an approval waits for its first level.
func (r *ApprovalRules) EscalateAfter() time.Duration {
	if r == nil {
		return 0
	}
	return time.Duration(r.EscalateAfterMS) * time.Millisecond
}

// forbids says why an approver may not decide, empty if they may. A requester
// may always withdraw the own call by rejecting it.
func (r *ApprovalRules) forbids(d Decision, requester string, escalated bool) string {
	var rules ApprovalRules
	if r != nil {
		rules = *r
	}
	own := requester != "" && samePerson(d.ApprovedBy, requester)
	if own && d.Status == apcore.ApprovalRejected {
		return ""
	}
	if own && !rules.AllowRequester {
		return "nobody approves the own call"
	}
	approvers := rules.Approvers
	if len(approvers)+len(rules.Roles) == 0 {
		return ""
	}
	if escalated {
		approvers = slices.Concat(approvers, rules.EscalateTo)
	}
	named := slices.ContainsFunc(approvers, func(entry string) bool { return names(entry, d.ApprovedBy) })
	claims := slices.ContainsFunc(d.Roles, func(role string) bool {
		return slices.ContainsFunc(rules.Roles, func(entry string) bool { return names(entry, role) })
	})
	if named || claims {
		return ""
	}
	return "only " + strings.Join(slices.Concat(approvers, rules.Roles), ", ") + " may"
}

// names reports whether an entry of the rules means a person or role.
func names(entry, name string) bool {
	if prefix, open := strings.CutSuffix(entry, "*"); open {
		return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
	}
	return samePerson(entry, name)
}

// samePerson compares without case and, if one of them has none, without the
// identity type: whoever approves must not become another person by a capital
// letter or a missing "user:".
func samePerson(a, b string) bool {
	a, b = strings.ToLower(strings.TrimSpace(a)), strings.ToLower(strings.TrimSpace(b))
	typeA, idA := splitPerson(a)
	typeB, idB := splitPerson(b)
	return idA == idB && (typeA == typeB || typeA == "" || typeB == "")
}

func splitPerson(name string) (kind, id string) {
	if kind, id, ok := strings.Cut(name, ":"); ok {
		return kind, id
	}
	return "", name
}
