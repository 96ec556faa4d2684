package apcore

import "context"

// ExternalCaller is the caller's name in access rules when no module made the
// call (apcore §6).
const ExternalCaller = "@external"

// AccessControl decides which caller may reach which module (§6). CheckAccess
// may be called concurrently; it must not fail open: when in doubt it denies.
// A panic counts as a denial.
type AccessControl interface {
	CheckAccess(ctx context.Context, request AccessRequest) AccessDecision
}

// AccessRequest is one question to an [AccessControl].
type AccessRequest struct {
	// CallerID is the calling module, [ExternalCaller] at the top level.
	CallerID string
	// TargetID is the module to be called.
	TargetID string
	// Context is the callee's context: its chain ends with the target. The
	// executor always gives one; nil means there is none.
	Context *Context
	// ArgumentKeys are the names of the inputs, without the approval token,
	// sorted. Values are never shown to access rules. Nil means that they are
	// unknown, empty that there are none.
	ArgumentKeys []string
}

// AccessDecision is the answer. The zero value denies.
type AccessDecision struct {
	// Allowed lets the call go on.
	Allowed bool
	// ApprovalRequired demands approval on top; no policy can lower it.
	ApprovalRequired bool
	// MatchedRule is the index of the deciding rule, nil for the default effect.
	MatchedRule *int
	// Reason is "rule_match", "default_effect" or "no_rules", or an
	// implementation's own word.
	Reason string
}

// AllowAll lets every call pass. Use it to say on purpose that a host has no
// access rules.
type AllowAll struct{}

// CheckAccess allows.
func (AllowAll) CheckAccess(context.Context, AccessRequest) AccessDecision {
	return AccessDecision{Allowed: true, Reason: "allow_all"}
}

var _ AccessControl = AllowAll{}
