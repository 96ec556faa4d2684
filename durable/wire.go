package durable

import (
	"encoding/json"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// WireVersion is the version this package writes. Readers accept unknown
// fields, so only a change that an old reader would misread raises it.
const WireVersion = 1

// CallRequest is what travels to the process that runs a module.
type CallRequest struct {
	V        int    `json:"v"`
	ModuleID string `json:"module_id"`
	// Inputs is a JSON object, kept as text so that no digit is lost.
	Inputs json.RawMessage `json:"inputs"`
	// Context is the caller's apcore context in its wire form. The executor on
	// the other side derives the child for the module.
	Context json.RawMessage `json:"context"`
	// CallID names the call: <workflow id>/<original run id>/<n>, the same on
	// every attempt and after every approval.
	CallID string `json:"call_id"`
	// IdempotencyKey is the caller's business key; empty means CallID.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// VersionHint names a wanted version of the module.
	VersionHint string `json:"version_hint,omitempty"`
	// Fingerprint is the build of the module that the caller knew; empty says
	// nothing.
	Fingerprint Fingerprint `json:"fingerprint,omitempty"`
	// AcceptRepeatedEffects says that the caller takes the risk of a second
	// effect, see [Policy].
	AcceptRepeatedEffects bool `json:"accept_repeated_effects,omitempty"`
	// RequestedAt is the time of the run when it made the call.
	RequestedAt time.Time `json:"requested_at"`
	// ApprovalTimeoutMS is how long an approval may take; zero leaves it to the
	// approval handler.
	ApprovalTimeoutMS int64 `json:"approval_timeout_ms,omitempty"`
	// Ask says that this unit may only ask for approval: whatever happens, the
	// module does not run in it, so that the unit can be repeated without risk.
	Ask bool `json:"ask,omitempty"`
	// Round counts the approvals this call has been through.
	Round int `json:"round,omitempty"`
	// Grant is what the approver decided about; only on resume.
	Grant *Grant `json:"grant,omitempty"`
	// AskedIn is the span in which the approval was asked, as a W3C traceparent,
	// for a link; only on resume, and only when traced.
	AskedIn string `json:"asked_in,omitempty"`
	// Decision is the approver's word; only on resume.
	Decision *Decision `json:"decision,omitempty"`
	// Nested are the decided approvals of calls that the module makes in process.
	Nested []NestedGrant `json:"nested,omitempty"`
}

// Status says how a unit ended without failing.
type Status string

// A unit completes with one of these; a pending approval is no failure.
const (
	StatusCompleted       Status = "completed"
	StatusApprovalPending Status = "approval_pending"
	// StatusNotAsked answers a unit that was to ask only: this worker has nobody
	// to ask, or the module needs no approval here. The call goes on without.
	StatusNotAsked Status = "not_asked"
	// StatusDecisionRefused answers a resumed call whose decision does not count:
	// the module did not run, and the approval waits on.
	StatusDecisionRefused Status = "decision_refused"
)

// CallResult is what comes back.
type CallResult struct {
	V      int    `json:"v"`
	Status Status `json:"status"`
	// Output is a JSON object; only when completed.
	Output json.RawMessage `json:"output,omitempty"`
	// Approval is what waits for a decision; only when pending.
	Approval *Approval `json:"approval,omitempty"`
	// Refused says which decisions do not count, and why; only when refused.
	Refused []IgnoredDecision `json:"refused,omitempty"`
	// ArgumentsDigest is the digest of the arguments that ran; only when an
	// approver changed them.
	ArgumentsDigest string `json:"arguments_digest,omitempty"`
	// Data holds the public context data that the call added or changed.
	Data map[string]json.RawMessage `json:"data,omitempty"`
	// Module says what ran or wants to run.
	Module apcore.ModuleRef `json:"module"`
}

// Object is a JSON object; what is read into it keeps the digits of its numbers
// as json.Number. A map[string]any can be assigned to it.
type Object map[string]any

// UnmarshalJSON reads an object, or null as nil.
func (o *Object) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*o = nil
		return nil
	}
	object, err := apcore.DecodeObject(text)
	if err != nil {
		return err
	}
	*o = object
	return nil
}
