package apcore

import (
	"context"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// passApprovalGate is step 5 (apcore §7.4). The token leaves the inputs first,
// on every path; nothing after the gate can see it.
func (r *run) passApprovalGate(ctx context.Context) error {
	token, present, err := r.popToken()
	if err != nil {
		return err
	}
	needed, destructive := r.approvalNeeded()
	if !needed {
		if destructive {
			r.executor.warnOnce("destructive:"+r.moduleID, "apcore: a destructive module runs without approval", "module_id", r.moduleID)
		}
		return nil
	}
	if r.approval == nil {
		return r.withoutHandler()
	}
	result, err := r.adjudicate(ctx, token, present)
	if err != nil {
		return err
	}
	err = approvalOutcome(r.moduleID, result)
	r.reportDecision(result, err)
	if err != nil {
		return err
	}
	r.approved, err = ContentHash(r.inputs)
	return err
}

func (r *run) popToken() (token string, present bool, err error) {
	value, present := r.inputs[ApprovalTokenKey]
	if !present {
		return "", false, nil
	}
	delete(r.ownInputs(), ApprovalTokenKey)
	token, ok := value.(string)
	if !ok {
		return "", true, NewError(CodeInvalidInput, "%s must be a text, the approval id, but is a %T", ApprovalTokenKey, value).
			WithDetail("module_id", r.moduleID)
	}
	return token, true, nil
}

// approvalNeeded unites what annotations, policy and access rules demand (§6.9).
func (r *run) approvalNeeded() (needed, destructive bool) {
	needed, destructive, rule := r.policy.requirement(r.moduleID, r.outcome.Annotations)
	needed = needed || r.aclAsks
	if rule != nil && !r.dryRun {
		r.executor.emit(EventPolicyOverride, r.moduleID, "info", map[string]any{
			"pattern": rule.Pattern, "requires_approval": boolOrNil(rule.RequiresApproval), "destructive": boolOrNil(rule.Destructive),
			"needs_approval": needed, "reason": rule.Reason, "trace_id": r.callee.traceID,
		})
	}
	return needed, destructive
}

func (r *run) withoutHandler() error {
	if r.policy == nil || !r.policy.Strict {
		r.executor.warnOnce("approval:"+r.moduleID, "apcore: a module needs approval but there is no approval handler, it runs without", "module_id", r.moduleID)
		return nil
	}
	result := &ApprovalResult{Status: ApprovalRejected, Reason: "no approval handler is configured"}
	err := approvalOutcome(r.moduleID, result)
	r.reportDecision(result, err)
	return err
}

func (r *run) adjudicate(ctx context.Context, token string, resume bool) (*ApprovalResult, error) {
	if resume {
		return r.approval.CheckApproval(ctx, token)
	}
	request, err := r.approvalRequest()
	if err != nil {
		return nil, err
	}
	return r.approval.RequestApproval(ctx, request)
}

// approvalRequest holds deep copies: a handler that writes to them does not
// change what will run.
func (r *run) approvalRequest() (*ApprovalRequest, error) {
	arguments, err := jsonvalue.CloneObject(r.inputs)
	if err != nil {
		return nil, err
	}
	redacted, err := jsonvalue.CloneObject(r.callee.redactedInputs.get())
	if err != nil {
		return nil, err
	}
	d := r.entry.describe()
	annotations := d.Annotations
	annotations.RequiresApproval, annotations.Destructive = true, r.outcome.Annotations.Destructive
	return &ApprovalRequest{
		ModuleID: r.moduleID, CallerID: r.callee.callerID, Action: r.moduleID,
		Arguments: arguments, RedactedArguments: redacted,
		Context: r.callee, Annotations: annotations, Description: d.Description, Tags: d.Tags, Module: d.ModuleRef,
	}, nil
}

func (r *run) reportDecision(result *ApprovalResult, outcome error) {
	status, severity := ApprovalRejected, "warn"
	switch CodeOf(outcome) {
	case "":
		status, severity = ApprovalApproved, "info"
	case CodeApprovalPending:
		status, severity = ApprovalPending, "info"
	case CodeApprovalTimeout:
		status = ApprovalTimeout
	}
	if result == nil {
		result = &ApprovalResult{}
	}
	r.executor.emit(EventApprovalDecision, r.moduleID, severity, map[string]any{
		"status": string(status), "approved_by": textOrNil(result.ApprovedBy), "reason": textOrNil(r.cleaner().text(result.Reason)),
		"approval_id": textOrNil(result.ApprovalID), "trace_id": r.callee.traceID,
	})
}

// unchangedSinceApproval denies a call whose inputs a middleware changed after
// somebody had decided about them.
func (r *run) unchangedSinceApproval() error {
	if r.approved == "" || r.executor.allowRewrite {
		return nil
	}
	digest, err := ContentHash(r.inputs)
	if err == nil && digest == r.approved {
		return nil
	}
	denied := NewError(CodeApprovalDenied, "Approval denied for module '%s': a middleware changed the inputs after they were approved", r.moduleID).
		WithDetail("module_id", r.moduleID).
		WithSuggestion("change inputs before the call, or set ExecutorOptions.RewriteAfterApproval")
	return &ApprovalError{Err: denied, Result: ApprovalResult{Status: ApprovalRejected, Reason: "inputs changed after approval"}}
}

func boolOrNil(b *bool) any {
	if b == nil {
		return nil
	}
	return *b
}

func textOrNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func millis(d time.Duration) int64 { return d.Milliseconds() }
