package durable

import (
	"context"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// nested answers the gate of a call that the module makes in process. The
// caller cannot pass a token on, so the decision is looked up by what the call
// is: module, arguments, and the how-manieth equal one it is.
func (inv *invocation) nested(ctx context.Context, request *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
	now, err := inv.invoker.binding(inv.request, request.Module, request.Arguments, request.Context)
	if err != nil {
		return nil, err
	}
	now.ApprovalID = inv.nextID(now)
	for _, decided := range inv.request.Nested {
		if decided.Grant.ApprovalID == now.ApprovalID {
			return inv.answer(decided, now), nil
		}
	}
	annotations := request.Annotations
	approval, err := inv.invoker.complete(ctx, inv.request, &Approval{
		Grant: now, Description: request.Description, Annotations: annotations, Arguments: request.RedactedArguments,
		CallerID: request.CallerID, Identity: request.Context.Identity(), Within: inv.request.ModuleID,
	})
	if err != nil {
		return nil, err
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	if inv.waiting == nil {
		inv.waiting = approval
	}
	return &apcore.ApprovalResult{Status: apcore.ApprovalPending, ApprovalID: now.ApprovalID}, nil
}

// nextID counts equal calls, so that each needs an approval of its own.
func (inv *invocation) nextID(now Grant) string {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	call := now.CallID + "\n" + now.Module.ID + "\n" + now.ArgumentsDigest
	if inv.equal == nil {
		inv.equal = map[string]int{}
	}
	inv.equal[call]++
	return ApprovalID(call, inv.equal[call])
}

func (inv *invocation) answer(decided NestedGrant, now Grant) *apcore.ApprovalResult {
	if err := decided.Grant.check(now, decided.Decision, inv.invoker.opts.SealKey); err != nil {
		return refuse(apcore.AsError(err).Message)
	}
	decision := decided.Decision
	return &apcore.ApprovalResult{
		Status: decision.Status, ApprovedBy: decision.ApprovedBy, Reason: decision.Reason,
		ApprovalID: decision.ApprovalID, Metadata: decision.Metadata,
	}
}

// pending is the approval that a call in process waits for, nil for none.
func (inv *invocation) pending() *Approval {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return inv.waiting
}

// approveNested checks the decisions about calls in process before anything
// runs; see [Invoker.approve].
func (i *Invoker) approveNested(request CallRequest) error {
	for _, decided := range request.Nested {
		definition := i.executor.Registry().Definition(decided.Grant.Module.ID)
		if definition == nil || decided.Decision.Status != apcore.ApprovalApproved {
			continue
		}
		if err := i.approve(definition, decided.Grant, decided.Decision); err != nil {
			return err
		}
	}
	return nil
}

func nestedApproval(request CallRequest, inner *apcore.Error) *apcore.Error {
	return newError(CodeNestedApproval, "module %q called module %q, which needs approval: an approval can be waited for between calls of a workflow, or by running the outer module again if it is readonly or idempotent",
		request.ModuleID, inner.ModuleID()).
		WithDetail("module_id", request.ModuleID).WithDetail("pending_module_id", inner.ModuleID()).
		WithSuggestion("call " + inner.ModuleID() + " from the workflow and pass its result on")
}
