package durable

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// parked is the question to an operator what became of a lost call. It shows no
// arguments: a run cannot tell which of them are secret.
func (r *runner) parked(unknown error) *Approval {
	request, now := r.request, stamp(r.engine.Now())
	approval := &Approval{
		Kind: KindOutcome, Status: ApprovalIsPending,
		Grant: Grant{
			ApprovalID: outcomeID(request.CallID, request.Round), CallID: request.CallID,
			Module: apcore.ModuleRef{ID: request.ModuleID}, RequestedAt: now,
		},
		Description: apcore.AsError(unknown).Message,
	}
	if r.policy.ParkTimeout > 0 {
		approval.Deadline = now.Add(r.policy.ParkTimeout)
	}
	return approval
}

func outcomeID(callID string, round int) string {
	sum := sha256.Sum256([]byte(callID + "\noutcome\n" + strconv.Itoa(round)))
	return "out-" + hex.EncodeToString(sum[:10])
}

// settle follows the operator's verdict. A retry is the same call again: same
// idempotency key, same grant.
func (r *runner) settle(decision Decision, unknown error) (CallResult, bool, error) {
	r.request.Round++
	switch {
	case decision.Status != apcore.ApprovalApproved:
		e := *apcore.AsError(unknown)
		return CallResult{}, true, e.WithDetail("decided_by", decision.ApprovedBy).WithDetail("reason", decision.Reason)
	case decision.Verdict == OutcomeDone:
		return CallResult{V: WireVersion, Status: StatusCompleted, Output: decision.Output, Module: apcore.ModuleRef{ID: r.request.ModuleID}}, true, nil
	default:
		return CallResult{}, false, nil
	}
}
