package temporal

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// Approvals is the approver's side. It keeps nothing: workflow id and approval
// id are all it needs, never a run id, so a reference stays good when the run
// continues as new. Methods may be called concurrently.
//
// Its errors tell apart: RUN_NOT_FOUND (no such workflow), RUN_CLOSED (it has
// ended, details.status says how), DECISION_UNKNOWN_APPROVAL,
// DECISION_DUPLICATE, DECISION_LATE, DECISION_CLOSED, DECISION_INVALID, and
// NO_WORKER when the workflow is there but nobody runs it.
type Approvals struct {
	client client.Client
	opts   ApprovalsOptions
}

// ApprovalsOptions configures [Approvals]; the zero value is the default.
type ApprovalsOptions struct {
	// Timeout bounds one question to a worker; zero means 10 s.
	Timeout time.Duration
	// Namer makes the persisted names.
	Namer durable.Namer
	// DataConverter reads what the server lists; it must be the client's. Nil
	// means the SDK's default.
	DataConverter converter.DataConverter
}

const defaultAnswerTimeout = 10 * time.Second

// NewApprovals makes the approver's side of a client. A nil client or negative
// timeout fails with GENERAL_INVALID_INPUT.
func NewApprovals(c client.Client, opts ApprovalsOptions) (*Approvals, error) {
	if c == nil {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "approvals need a client")
	}
	if opts.Timeout < 0 {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "ApprovalsOptions.Timeout is %v: give zero for 10 s or a positive one", opts.Timeout)
	}
	if opts.Timeout == 0 {
		opts.Timeout = defaultAnswerTimeout
	}
	if opts.DataConverter == nil {
		opts.DataConverter = converter.GetDefaultDataConverter()
	}
	return &Approvals{client: c, opts: opts}, nil
}

// Decide gives a decision and returns when the run has accepted it. It is an
// update: the run checks it first and a refused one leaves no trace.
// ApprovalID, Status and ApprovedBy are required.
func (a *Approvals) Decide(ctx context.Context, workflowID string, decision durable.Decision) error {
	if err := a.open(ctx, workflowID); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.opts.Timeout)
	defer cancel()
	handle, err := a.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: workflowID, UpdateName: a.opts.Namer.Approval(),
		Args: []any{decision}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(ctx, nil)
	}
	return a.answer(ctx, workflowID, err)
}

// Send gives a decision without waiting for a worker: it is a signal, which the
// run notes when it gets to it. Only the workflow's existence is checked.
func (a *Approvals) Send(ctx context.Context, workflowID string, decision durable.Decision) error {
	if err := a.open(ctx, workflowID); err != nil {
		return err
	}
	return a.answer(ctx, workflowID, a.client.SignalWorkflow(ctx, workflowID, "", a.opts.Namer.Approval(), decision))
}

// List returns every approval of a run in the order they were asked, also of a
// closed one while a worker can still replay it. Where all arguments are too much
// for one answer, some hold {"omitted": why}; Get has them.
func (a *Approvals) List(ctx context.Context, workflowID string) ([]durable.Approval, error) {
	return a.ask(ctx, workflowID, "")
}

// ask returns the approvals of a run, or the one of an id.
func (a *Approvals) ask(ctx context.Context, workflowID, approvalID string) ([]durable.Approval, error) {
	ctx, cancel := context.WithTimeout(ctx, a.opts.Timeout)
	defer cancel()
	value, err := a.client.QueryWorkflow(ctx, workflowID, "", a.opts.Namer.Approvals(), approvalID)
	if err != nil {
		return nil, a.answer(ctx, workflowID, err)
	}
	var approvals []durable.Approval
	if err := value.Get(&approvals); err != nil {
		return nil, apcore.NewError(apcore.CodeInternal, "the approvals of workflow %q cannot be read: %w", workflowID, err)
	}
	return approvals, nil
}

// Get returns one approval.
func (a *Approvals) Get(ctx context.Context, workflowID, approvalID string) (*durable.Approval, error) {
	approvals, err := a.ask(ctx, workflowID, approvalID)
	if err != nil {
		return nil, err
	}
	for i := range approvals {
		if approvals[i].ApprovalID == approvalID {
			return &approvals[i], nil
		}
	}
	return nil, refused(durable.CodeDecisionUnknown, "there is no approval %q in workflow %q", approvalID, workflowID)
}

// open tells a workflow that runs from one that has ended and one that never was.
func (a *Approvals) open(ctx context.Context, workflowID string) error {
	description, err := a.client.DescribeWorkflow(ctx, workflowID, "")
	if err != nil {
		return a.answer(ctx, workflowID, err)
	}
	status := description.Status
	if status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return refused(durable.CodeRunClosed, "workflow %q has ended: %s", workflowID, status).WithDetail("status", status.String())
	}
	return nil
}

func (a *Approvals) answer(ctx context.Context, workflowID string, err error) error {
	var notFound *serviceerror.NotFound
	switch {
	case err == nil:
		return nil
	case errors.As(err, &notFound):
		return a.notFound(ctx, workflowID, err)
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return refused(durable.CodeNoWorker, "workflow %q is there, but no worker answered within %v", workflowID, a.opts.Timeout).WithRetryable(new(true))
	}
	if e := AsError(err); e.Code != apcore.CodeInternal {
		return e
	}
	return apcore.NewError(apcore.CodeInternal, "workflow %q: %w", workflowID, err)
}

// notFound is the server's answer for a closed run as well, so look again.
func (a *Approvals) notFound(ctx context.Context, workflowID string, cause error) error {
	description, err := a.client.DescribeWorkflow(context.WithoutCancel(ctx), workflowID, "")
	if err != nil {
		return refused(durable.CodeRunNotFound, "there is no workflow %q", workflowID).WithCause(cause)
	}
	status := description.Status
	return refused(durable.CodeRunClosed, "workflow %q has ended: %s", workflowID, status).WithDetail("status", status.String())
}

func isTimeout(err error) bool {
	var deadline *serviceerror.DeadlineExceeded
	var unavailable *client.WorkflowUpdateServiceTimeoutOrCanceledError
	return errors.As(err, &deadline) || errors.As(err, &unavailable)
}

func refused(code apcore.Code, format string, args ...any) *apcore.Error {
	return apcore.NewError(code, format, args...).WithRetryable(new(false))
}
