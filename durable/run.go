package durable

import (
	"cmp"
	"errors"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// maxRounds bounds how often one call may go pending; only a handler that
// contradicts itself comes near it.
const maxRounds = 100

// Engine is what a durable engine does for one call; a binding makes one per
// call, bound to the run it belongs to. Methods are called from one goroutine
// and must be deterministic in the engine's own sense. Errors end the call and
// are returned as they are.
type Engine interface {
	// Do runs the unit of the call durably, with the policy's attempts.
	Do(request CallRequest) (CallResult, error)
	// AwaitDecision opens the approval and waits, without using up anything but
	// time. It fails with APPROVAL_TIMEOUT at the deadline and with
	// EXECUTION_CANCELLED when the run is cancelled.
	AwaitDecision(approval Approval) (Decision, error)
	// Sleep waits durably; it fails when the run is cancelled.
	Sleep(d time.Duration) error
	// Now is the run's time.
	Now() time.Time
}

// Run makes one call. With request.Ask set it first asks for approval in a unit
// of its own, which cannot run the module. Then it does it, waits while an approval is pending, and
// resumes with the decision. A rejection ends it with APPROVAL_DENIED without
// asking a worker again. A failure that provably came before the module started
// is tried again within policy.Redos, whatever the class.
func Run(engine Engine, request CallRequest, policy Policy) (CallResult, error) {
	request.V, request.RequestedAt = WireVersion, stamp(engine.Now())
	for {
		result, err := redo(engine, request, policy)
		if err == nil && result.Status == StatusNotAsked && request.Ask {
			request.Ask = false
			continue
		}
		if err != nil || result.Status == StatusCompleted {
			return result, err
		}
		if e := request.accept(result); e != nil {
			return CallResult{}, at(engine.Now(), e)
		}
		decision, err := engine.AwaitDecision(*result.Approval)
		if err != nil {
			return CallResult{}, err
		}
		if decision.Status != apcore.ApprovalApproved {
			return CallResult{}, denied(request, decision)
		}
		request.Grant, request.Decision, request.Ask = &result.Approval.Grant, &decision, false
		if request.Round++; request.Round > maxRounds {
			return CallResult{}, at(engine.Now(), newError(apcore.CodeInternal, "module %q asked for approval %d times in one call: its approval handler never comes to an end", request.ModuleID, maxRounds).
				WithDetail("module_id", request.ModuleID))
		}
	}
}

// accept checks that a pending result belongs to this call. It does not compare
// call ids: a replay may run under another workflow id than the recorded one.
func (r CallRequest) accept(result CallResult) *apcore.Error {
	a := result.Approval
	if result.Status != StatusApprovalPending || a == nil || a.ApprovalID == "" || a.Module.ID != r.ModuleID {
		return newError(apcore.CodeInternal, "call of module %q came back with status %q and no approval of its own", r.ModuleID, result.Status).
			WithDetail("module_id", r.ModuleID)
	}
	return nil
}

// redo repeats a unit that failed before its module started. A wait that the
// failure asks for takes the place of the back-off, as it does in the engine.
func redo(engine Engine, request CallRequest, policy Policy) (CallResult, error) {
	wait := policy.Backoff
	for tries := 0; ; tries++ {
		result, err := engine.Do(request)
		var failure *Failure
		if err == nil || tries >= policy.Redos || !errors.As(err, &failure) || !failure.NotStarted || !policy.Allows(failure) {
			return result, err
		}
		if err := engine.Sleep(cmp.Or(failure.RetryAfter, wait)); err != nil {
			return CallResult{}, err
		}
		wait = policy.NextWait(wait)
	}
}

// denied is the standard's error for a rejection, with who and why.
func denied(request CallRequest, decision Decision) error {
	text := "Approval denied for module '%s'"
	args := []any{request.ModuleID}
	if decision.Reason != "" {
		text, args = text+": %s", append(args, decision.Reason)
	}
	e := apcore.NewError(apcore.CodeApprovalDenied, text, args...).
		WithDetail("module_id", request.ModuleID).WithDetail("approval_id", decision.ApprovalID).
		WithDetail("approved_by", decision.ApprovedBy).WithDetail("reason", decision.Reason)
	e.Timestamp = decision.DecidedAt
	return &apcore.ApprovalError{Err: e, Result: apcore.ApprovalResult{
		Status: apcore.ApprovalRejected, ApprovedBy: decision.ApprovedBy, Reason: decision.Reason,
		ApprovalID: decision.ApprovalID, Metadata: decision.Metadata,
	}}
}

// at gives an error that arose in the run the run's time, so that it is the same
// when the run is replayed.
func at(now time.Time, e *apcore.Error) error {
	e.Timestamp = stamp(now)
	return e
}

// stamp cuts a time to what survives JSON in every language.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
