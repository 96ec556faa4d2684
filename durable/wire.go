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
	// Decision is the approver's word; only on resume.
	Decision *Decision `json:"decision,omitempty"`
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
)

// CallResult is what comes back.
type CallResult struct {
	V      int    `json:"v"`
	Status Status `json:"status"`
	// Output is a JSON object; only when completed.
	Output json.RawMessage `json:"output,omitempty"`
	// Approval is what waits for a decision; only when pending.
	Approval *Approval `json:"approval,omitempty"`
	// Data holds the public context data that the call added or changed.
	Data map[string]json.RawMessage `json:"data,omitempty"`
	// Module says what ran or wants to run.
	Module apcore.ModuleRef `json:"module"`
}

// Decision is an approver's word on one [Approval]. The zero value is never an
// approval.
type Decision struct {
	ApprovalID string                `json:"approval_id"`
	Status     apcore.ApprovalStatus `json:"status"`
	// ApprovedBy names who decided; required.
	ApprovedBy string `json:"approved_by"`
	Reason     string `json:"reason,omitempty"`
	Metadata   Object `json:"metadata,omitempty"`
	// DecidedAt is set by the run that accepts the decision, in its own time.
	DecidedAt time.Time `json:"decided_at,omitzero"`
}

// Grant is what a decision is bound to. It serves one logical call: its own
// retries and nothing else.
type Grant struct {
	ApprovalID      string           `json:"approval_id"`
	CallID          string           `json:"call_id"`
	Module          apcore.ModuleRef `json:"module"`
	ArgumentsDigest string           `json:"arguments_digest"`
	// Requester is "<identity type>:<identity id>", empty for nobody known.
	Requester   string    `json:"requester"`
	RequestedAt time.Time `json:"requested_at"`
	// Deadline is the last moment a decision counts, exclusive.
	Deadline time.Time `json:"deadline,omitzero"`
	// Seal is an HMAC over the rest, empty when the worker has no key.
	Seal string `json:"seal,omitempty"`
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

// ApprovalState is where an [Approval] stands.
type ApprovalState string

// Only pending can change.
const (
	ApprovalIsPending   ApprovalState = "pending"
	ApprovalIsApproved  ApprovalState = "approved"
	ApprovalIsRejected  ApprovalState = "rejected"
	ApprovalIsTimeout   ApprovalState = "timeout"
	ApprovalIsCancelled ApprovalState = "cancelled"
	ApprovalIsWithdrawn ApprovalState = "withdrawn"
)

// Approval is what an approver sees. Arguments are redacted.
type Approval struct {
	Grant
	Description string             `json:"description"`
	Arguments   Object             `json:"arguments"`
	Annotations apcore.Annotations `json:"annotations"`
	CallerID    string             `json:"caller_id,omitempty"`
	Identity    *apcore.Identity   `json:"identity,omitempty"`
	Status      ApprovalState      `json:"status"`
	Decision    *Decision          `json:"decision,omitempty"`
	// Ignored lists decisions that came too late or made no sense.
	Ignored []IgnoredDecision `json:"ignored,omitempty"`
}

// IgnoredDecision is a decision that changed nothing, and why.
type IgnoredDecision struct {
	Decision Decision `json:"decision"`
	Code     string   `json:"code"`
	Reason   string   `json:"reason"`
}
