package durable

import (
	"errors"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Carry is what a run hands to its successor when it continues as new.
type Carry struct {
	V int `json:"v,omitempty"`
	// InboxState holds the approvals that still matter and early decisions.
	InboxState
	// Calls wait for a decision, in the order they were made.
	Calls []Carried `json:"calls,omitempty"`
}

// Carried is a call that waits for a decision, or that ended in the moment of the
// hand-over. The successor makes the same call
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
	// Approval is what is waited for; nil if the call ended while its run did.
	Approval *Approval `json:"approval,omitempty"`
	// Result and Error are how a call ended that nobody could look at any more;
	// Error is the wire form of a [Failure].
	Result *CallResult `json:"result,omitempty"`
	Error  Object      `json:"error,omitempty"`
	// Grant and Decision are what the call was resumed with before; only when its
	// outcome is unknown.
	Grant    *Grant    `json:"grant,omitempty"`
	Decision *Decision `json:"decision,omitempty"`
}

// Ended returns how a carried call ended; over is false for one that waits.
func (c Carried) Ended() (result CallResult, over bool, err error) {
	switch {
	case c.Result != nil:
		return *c.Result, true, nil
	case c.Error != nil:
		return CallResult{}, true, FailureFromMap(c.Error)
	default:
		return CallResult{}, c.Approval == nil, nil
	}
}

// unknown is the error of a parked call, nil for one that waits for approval.
func (c Carried) unknown() error {
	if c.Approval.Kind != KindOutcome {
		return nil
	}
	return newError(CodeOutcomeUnknown, "%s", c.Approval.Description).
		WithDetail("module_id", c.ModuleID).WithDetail("call_id", c.CallID)
}

// Carry describes a call under way: it waits for an approval. request is what
// the engine was last asked to do.
func (r CallRequest) Carry(approval Approval) (Carried, error) {
	carried, err := r.carry()
	carried.Round, carried.Nested, carried.Approval = r.Round, r.Nested, &approval
	if approval.Kind == KindOutcome {
		carried.Grant, carried.Decision = r.Grant, r.Decision
	}
	return carried, err
}

// CarryEnd describes a call that has ended, with its result or its error.
func (r CallRequest) CarryEnd(result CallResult, failed error) (Carried, error) {
	carried, err := r.carry()
	if failed == nil {
		result.Data = nil // the run has taken it over and carries it as context
		carried.Result = &result
		return carried, err
	}
	failure, ok := errors.AsType[*Failure](failed)
	if !ok {
		failure = &Failure{Err: apcore.AsError(failed)}
	}
	if failure.Err == nil {
		return carried, failed
	}
	carried.Error = failure.Map()
	return carried, err
}

func (r CallRequest) carry() (Carried, error) {
	digest, err := r.InputsDigest()
	return Carried{CallID: r.CallID, ModuleID: r.ModuleID, IdempotencyKey: r.IdempotencyKey, InputsDigest: digest}, err
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
