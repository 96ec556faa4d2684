package durable

import (
	"context"
	"maps"
	"slices"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// refusal says that decisions do not count; it is no failure of the call.
type refusal struct{ decisions []IgnoredDecision }

func (r *refusal) Error() string { return "decisions were refused" }

// redeem checks what the decisions of a resumed call are bound to, and puts
// changed arguments and the approval token in place.
func (i *Invoker) redeem(request CallRequest, call *prepared) error {
	if request.Decision == nil && request.Grant == nil {
		return nil
	}
	if request.Decision == nil || request.Grant == nil {
		return newError(CodeGrantMissing, "a resumed call needs both grant and decision")
	}
	definition := i.definition(request)
	if definition == nil {
		return nil // the executor answers with MODULE_NOT_FOUND
	}
	now, err := i.binding(request, definition.ModuleRef, call.inputs, call.context)
	if err != nil {
		return err
	}
	if err := request.Grant.check(now, *request.Decision, i.opts.SealKey); err != nil {
		return err
	}
	if err := i.approve(definition, *request.Grant, *request.Decision); err != nil {
		return err
	}
	maps.Copy(call.inputs, request.Decision.Changes)
	call.inputs[apcore.ApprovalTokenKey] = request.Decision.ApprovalID
	return nil
}

// approve checks on the worker what a run cannot know for certain: that each
// voice is who it says, may decide by the rules in force now, and that there are
// enough of them. It fails with a [refusal].
func (i *Invoker) approve(definition *apcore.Descriptor, grant Grant, decision Decision) error {
	rules, err := i.rules(definition)
	if err != nil {
		return err
	}
	var refused []IgnoredDecision
	counted := Approval{Grant: grant, Rules: rules}
	voices := slices.Concat(decision.Votes, []Decision{decision})
	for _, voice := range voices {
		voice.Votes = nil
		err := verifySignature(voice, grant, i.opts.ApproverKeys)
		if why := rules.forbids(voice, grant.Requester, true); err == nil && why != "" {
			err = counted.refuse(CodeDecisionForbidden, "cannot be decided by %s: %s", voice.ApprovedBy, why)
		}
		switch {
		case err != nil:
			refused = append(refused, IgnoredDecision{Decision: voice, Code: string(apcore.CodeOf(err)), Reason: apcore.AsError(err).Message})
		case !counted.voted(voice.ApprovedBy):
			counted.Votes = append(counted.Votes, voice)
		}
	}
	if len(refused) == 0 && decision.Status == apcore.ApprovalApproved && len(counted.Votes) < rules.quorum() {
		err := counted.refuse(CodeDecisionForbidden, "needs %d approvals and has %d", rules.quorum(), len(counted.Votes))
		refused = append(refused, IgnoredDecision{Decision: decision, Code: string(CodeDecisionForbidden), Reason: apcore.AsError(err).Message})
	}
	if len(refused) > 0 {
		return &refusal{refused}
	}
	return nil
}

// rules are the module's own, or the worker's.
func (i *Invoker) rules(definition *apcore.Descriptor) (*ApprovalRules, error) {
	own, err := RulesOf(definition)
	if own != nil || err != nil {
		return own, err
	}
	return i.opts.Rules, nil
}

// binding is what an approval of a call, as it stands, would be bound to.
func (i *Invoker) binding(request CallRequest, module apcore.ModuleRef, inputs map[string]any, c *apcore.Context) (Grant, error) {
	digest, err := argumentsDigest(inputs, i.opts.SealKey)
	if module.ID == i.target(request.ModuleID) {
		module.ID = request.ModuleID // a rename meanwhile changes nothing
	}
	return Grant{CallID: request.CallID, Module: module, ArgumentsDigest: digest, Requester: Requester(c.Identity())}, err
}

// unfinished tells a pending approval from a failure.
func (i *Invoker) unfinished(ctx context.Context, inv *invocation, outcome *apcore.Outcome, err error) (*CallResult, error) {
	request := inv.request
	failure := i.classify(request, outcome, err)
	if spoilt := spoiltBy(request, failure); spoilt != nil {
		return &CallResult{V: WireVersion, Status: StatusDecisionRefused, Refused: []IgnoredDecision{*spoilt}, Module: outcome.Module}, nil
	}
	if failure.Err.Code != apcore.CodeApprovalPending {
		return nil, failure
	}
	if failure.Err.ModuleID() != i.target(request.ModuleID) || outcome.Started {
		if nested := inv.pending(); nested != nil && i.repeats(request, outcome) {
			return &CallResult{V: WireVersion, Status: StatusApprovalPending, Approval: nested, Module: outcome.Module}, nil
		}
		return nil, &Failure{Err: nestedApproval(request, failure.Err), NotStarted: failure.NotStarted}
	}
	id, ok := apcore.PendingApproval(err)
	if !ok {
		return nil, failure
	}
	approval, err := i.issue(ctx, request, outcome, id)
	if err != nil {
		return nil, &Failure{Err: apcore.AsError(err), NotStarted: true}
	}
	return &CallResult{V: WireVersion, Status: StatusApprovalPending, Approval: approval, Module: outcome.Module}, nil
}

// noteChanges keeps the digest of what ran beside that of what was asked.
func (i *Invoker) noteChanges(request CallRequest, result *CallResult) {
	if request.Decision == nil || len(request.Decision.Changes) == 0 {
		return
	}
	if inputs, err := request.changed(request.Decision.Changes); err == nil {
		result.ArgumentsDigest, _ = argumentsDigest(inputs, i.opts.SealKey) // they ran, so they have a digest
	}
}

// spoiltBy finds an approver's changes that do not fit the module's schema: the
// approver may try again.
func spoiltBy(request CallRequest, failure *Failure) *IgnoredDecision {
	if request.Decision == nil || len(request.Decision.Changes) == 0 || !failure.NotStarted {
		return nil
	}
	switch failure.Err.Code {
	case apcore.CodeSchemaValidation, apcore.CodeSchemaUnionNoMatch, apcore.CodeSchemaUnionAmbiguous:
		return &IgnoredDecision{
			Decision: *request.Decision, Code: string(failure.Err.Code),
			Reason: "the changed arguments do not fit the module: " + failure.Err.Message,
		}
	default:
		return nil
	}
}

func (i *Invoker) repeats(request CallRequest, outcome *apcore.Outcome) bool {
	return request.AcceptRepeatedEffects || ClassOf(&outcome.Annotations).Repeats()
}

// issue makes the approval that the run shows and the grant inside it.
func (i *Invoker) issue(ctx context.Context, request CallRequest, outcome *apcore.Outcome, id string) (*Approval, error) {
	var changes Object
	if request.Decision != nil {
		changes = request.Decision.Changes
	}
	inputs, err := request.changed(changes)
	if err != nil {
		return nil, err
	}
	grant, err := i.binding(request, outcome.Module, inputs, outcome.Context)
	if err != nil {
		return nil, err
	}
	grant.ApprovalID = id
	annotations := outcome.Annotations
	annotations.RequiresApproval = true
	return i.complete(ctx, request, &Approval{
		Grant: grant, Description: outcome.Description, Annotations: annotations,
		Arguments: outcome.Context.RedactedInputs(), CallerID: outcome.Context.CallerID(), Identity: outcome.Context.Identity(),
	})
}

// complete sets what is the same for every approval of this worker.
func (i *Invoker) complete(ctx context.Context, request CallRequest, approval *Approval) (*Approval, error) {
	approval.Status, approval.RequestedAt = ApprovalIsPending, request.RequestedAt
	approval.Identity = i.shown(approval.Identity)
	if timeout := i.approvalTimeout(request); timeout != NoDeadline {
		approval.Deadline = request.RequestedAt.Add(timeout)
	}
	approval.Seal = approval.seal(i.opts.SealKey)
	if i.opts.TraceParent != nil {
		approval.AskedIn = i.opts.TraceParent(ctx).String()
	}
	approval.Audit, approval.Listed = i.opts.Audit, i.opts.Listed != nil && i.opts.Listed(ctx)
	_, definition, err := i.executor.Registry().Resolve(i.target(approval.Module.ID), approval.Module.Version)
	if err != nil {
		return approval, i.checkApproval(approval)
	}
	if approval.Rules, err = i.rules(definition); err != nil {
		return nil, err
	}
	return approval, i.checkApproval(approval)
}
