package durable

import (
	"cmp"
	"errors"
	"maps"
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
	// time; request is the call as it stands. It fails with APPROVAL_TIMEOUT at the deadline and with
	// EXECUTION_CANCELLED when the run is cancelled.
	AwaitDecision(request CallRequest, approval Approval) (Decision, error)
	// Sleep waits durably; it fails when the run is cancelled.
	Sleep(d time.Duration) error
	// Now is the run's time.
	Now() time.Time
}

// Run makes one call. With request.Ask set it first asks for approval in a unit
// of its own, which cannot run the module. Then it does it, waits while an
// approval is pending, and resumes with the decision. A rejection ends it with
// APPROVAL_DENIED without asking a worker again. A failure that provably came
// before the module started is tried again within policy.Redos, whatever the
// class. With policy.Park an unknown outcome waits for an operator's verdict.
func Run(engine Engine, request CallRequest, policy Policy) (CallResult, error) {
	request.V, request.RequestedAt = WireVersion, stamp(engine.Now())
	r := &runner{engine: engine, request: request, policy: policy}
	return r.loop()
}

// Resume goes on with a call that a predecessor of this run left waiting, or
// gives the end of one that nobody could look at there:
// request is as it was made, the rest is what the predecessor carried over.
func Resume(engine Engine, request CallRequest, waiting Carried, policy Policy) (CallResult, error) {
	if result, over, err := waiting.Ended(); over {
		return result, err
	}
	request.V, request.RequestedAt = WireVersion, stamp(waiting.Approval.RequestedAt)
	request.CallID, request.Round, request.Nested, request.Ask = waiting.CallID, waiting.Round, waiting.Nested, false
	request.Grant, request.Decision = waiting.Grant, waiting.Decision
	r := &runner{engine: engine, request: request, policy: policy}
	approval := *waiting.Approval
	if result, over, err := r.ask(&approval, waiting.unknown()); over {
		return result, err
	}
	return r.loop()
}

// runner is one call under way.
type runner struct {
	engine  Engine
	request CallRequest
	policy  Policy
	// asked is the approval that was decided last.
	asked    *Approval
	notAsked bool
	refusals int
}

func (r *runner) loop() (CallResult, error) {
	for {
		result, err := redo(r.engine, r.request, r.policy)
		over := true
		switch {
		case err != nil && r.policy.Park && apcore.CodeOf(err) == CodeOutcomeUnknown:
			result, over, err = r.ask(r.parked(err), err)
		case err != nil || result.Status == StatusCompleted:
		case result.Status == StatusNotAsked && !r.notAsked:
			// A history tells of having asked even where today's catalog would not.
			r.request.Ask, r.notAsked, over = false, true, false
		case result.Status == StatusDecisionRefused:
			result, over, err = r.askAgain(result)
		default:
			if e := r.request.accept(result); e != nil {
				return CallResult{}, at(r.engine.Now(), e)
			}
			result, over, err = r.ask(result.Approval, nil)
		}
		if over {
			return result, err
		}
	}
}

// ask waits for a decision and puts it into the request; over says that the
// call has come to its end. unknown is the error of a parked call.
func (r *runner) ask(approval *Approval, unknown error) (result CallResult, over bool, err error) {
	if r.request.Round >= maxRounds {
		return CallResult{}, true, at(r.engine.Now(), newError(apcore.CodeInternal, "module %q asked for approval %d times in one call: its approval handler never comes to an end", r.request.ModuleID, maxRounds).
			WithDetail("module_id", r.request.ModuleID))
	}
	decision, err := r.engine.AwaitDecision(r.request, *approval)
	switch {
	case err != nil && unknown != nil && apcore.CodeOf(err) == apcore.CodeApprovalTimeout:
		return CallResult{}, true, unknown
	case err != nil:
		return CallResult{}, true, err
	case approval.Kind == KindOutcome:
		return r.settle(decision, unknown)
	case approval.Within != "":
		r.request.Nested = append(r.request.Nested[:len(r.request.Nested):len(r.request.Nested)], NestedGrant{Grant: approval.Grant, Decision: decision})
	case decision.Status != apcore.ApprovalApproved:
		return CallResult{}, true, denied(r.request, decision)
	default:
		if err := r.decide(approval, decision); err != nil {
			return CallResult{}, true, err
		}
	}
	r.asked, r.request.AskedIn = approval, approval.AskedIn
	r.request.Round++
	return CallResult{}, false, nil
}

// askAgain reopens the approval whose decision a worker did not accept.
func (r *runner) askAgain(result CallResult) (CallResult, bool, error) {
	r.refusals++
	decision := r.takeBack()
	if decision == nil || len(result.Refused) == 0 || result.Refused[0].Decision.ApprovalID != r.asked.ApprovalID || r.refusals > maxRounds {
		return CallResult{}, true, at(r.engine.Now(), newError(CodeDecisionInvalid, "a worker refused a decision about the call of module %q that was not the last one, or too many", r.request.ModuleID).
			WithDetail("module_id", r.request.ModuleID))
	}
	again := *r.asked
	again.reopen(*decision, result.Refused)
	r.request.Round--
	return r.ask(&again, nil)
}

// takeBack removes the last decision from the request; nil if there is none.
func (r *runner) takeBack() *Decision {
	switch {
	case r.asked == nil:
		return nil
	case r.asked.Within != "" && len(r.request.Nested) > 0:
		last := len(r.request.Nested) - 1
		decision := r.request.Nested[last].Decision
		r.request.Nested = r.request.Nested[:last]
		return &decision
	default:
		decision := r.request.Decision
		r.request.Grant, r.request.Decision = nil, nil
		return decision
	}
}

// decide puts an approved decision into the request. Changes of a decision
// before it have become part of the inputs by now.
func (r *runner) decide(approval *Approval, decision Decision) error {
	if before := r.request.Decision; before != nil && len(before.Changes) > 0 {
		inputs, err := r.request.changed(before.Changes)
		if err != nil {
			return err
		}
		if r.request.Inputs, err = apcore.EncodeJSON(inputs); err != nil {
			return err
		}
	}
	r.request.Grant, r.request.Decision, r.request.Ask = &approval.Grant, &decision, false
	return nil
}

// changed are the inputs with an approver's changes.
func (r CallRequest) changed(changes Object) (map[string]any, error) {
	inputs, err := apcore.DecodeObject(r.Inputs)
	if err != nil {
		return nil, err
	}
	maps.Copy(inputs, changes)
	return inputs, nil
}

// accept checks that a pending result belongs to this call. It does not compare
// call ids: a replay may run under another workflow id than the recorded one.
func (r CallRequest) accept(result CallResult) *apcore.Error {
	a := result.Approval
	if result.Status != StatusApprovalPending || a == nil || a.ApprovalID == "" || (a.Module.ID != r.ModuleID && a.Within != r.ModuleID) {
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
