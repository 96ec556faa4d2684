package durable

import "github.com/apcore-temporal/apcore-temporal/apcore"

// Carry is what a run hands to its successor when it continues as new.
type Carry struct {
	V int `json:"v,omitempty"`
	// InboxState holds the approvals that still matter and early decisions.
	InboxState
	// Calls wait for a decision, in the order they were made.
	Calls []Carried `json:"calls,omitempty"`
}

// Carried is a call that waits for a decision. The successor makes the same call
// again; equal module, inputs and business key tell that it is the same, and it
// keeps its id, its approval and its deadline.
type Carried struct {
	CallID         string `json:"call_id"`
	ModuleID       string `json:"module_id"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// InputsDigest is the content hash of the inputs, see [apcore.ContentHash].
	InputsDigest string        `json:"inputs_digest"`
	Round        int           `json:"round,omitempty"`
	Nested       []NestedGrant `json:"nested,omitempty"`
	// Approval is what is waited for.
	Approval Approval `json:"approval"`
	// Grant and Decision are what the call was resumed with before; only when its
	// outcome is unknown.
	Grant    *Grant    `json:"grant,omitempty"`
	Decision *Decision `json:"decision,omitempty"`
}

// Failure is the error of a parked call, nil for one that waits for approval.
func (c Carried) Failure() error {
	if c.Approval.Kind != KindOutcome {
		return nil
	}
	return newError(CodeOutcomeUnknown, "%s", c.Approval.Description).
		WithDetail("module_id", c.ModuleID).WithDetail("call_id", c.CallID)
}

// Carry describes a call that waits for an approval; request is what the engine
// was last asked to do.
func (r CallRequest) Carry(approval Approval) (Carried, error) {
	digest, err := r.InputsDigest()
	if err != nil {
		return Carried{}, err
	}
	carried := Carried{
		CallID: r.CallID, ModuleID: r.ModuleID, IdempotencyKey: r.IdempotencyKey,
		InputsDigest: digest, Round: r.Round, Nested: r.Nested, Approval: approval,
	}
	if approval.Kind == KindOutcome {
		carried.Grant, carried.Decision = r.Grant, r.Decision
	}
	return carried, nil
}

// Matches reports whether a call is the one that was carried over.
func (c Carried) Matches(request CallRequest, inputsDigest string) bool {
	return c.ModuleID == request.ModuleID && c.IdempotencyKey == request.IdempotencyKey && c.InputsDigest == inputsDigest
}

// InputsDigest is the content hash of the inputs as the caller gave them.
func (r CallRequest) InputsDigest() (string, error) {
	inputs, err := apcore.DecodeObject(r.Inputs)
	if err != nil {
		return "", err
	}
	return apcore.ContentHash(inputs)
}
