package temporal

import (
	"errors"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// leave lets a run end with a result, or with what it hands to its successor,
// when both fit and there is room in the workflow task.
func (s *state) leave(ctx workflow.Context, result any, err error) (any, error) {
	var size int
	var successor *workflow.ContinueAsNewError
	switch {
	case errors.As(err, &successor):
		size = successor.Input.Size() + successor.Header.Size()
	case err != nil:
		return result, err
	case result == nil:
		return nil, nil
	default:
		if size, err = s.limits.checkValue("result", result); err != nil {
			return nil, local(ctx, err)
		}
	}
	detached, _ := workflow.NewDisconnectedContext(ctx)
	if waitErr := s.budget.admit(detached, size); waitErr != nil {
		return nil, waitErr
	}
	return result, err
}

func (i *inbound) ExecuteUpdate(ctx workflow.Context, in *interceptor.UpdateInput) (any, error) {
	result, err := i.Next.ExecuteUpdate(ctx, in)
	if err != nil || result == nil || i.state == nil {
		return result, workflowError(err)
	}
	size, err := i.state.limits.checkValue("update "+in.Name, result)
	if err != nil {
		return nil, workflowError(local(ctx, err))
	}
	return result, i.state.budget.admit(ctx, size)
}

func (i *inbound) HandleQuery(ctx workflow.Context, in *interceptor.HandleQueryInput) (any, error) {
	result, err := i.Next.HandleQuery(ctx, in)
	if err != nil || result == nil || i.state == nil {
		return result, workflowError(err)
	}
	if _, err := i.state.limits.checkValue("query "+in.QueryType, result); err != nil {
		return nil, workflowError(local(ctx, err))
	}
	return result, nil
}

// checkContext measures the context that goes with a call, child or successor.
func (s *state) checkContext(moduleID string) (int, error) {
	size := durable.EncodedSize(mustJSON(s.contextWire()))
	return size, durable.CheckSize(moduleID, "context", size, s.limits.MaxContextBytes)
}

func (o *outbound) ExecuteChildWorkflow(ctx workflow.Context, childType string, args ...any) workflow.ChildWorkflowFuture {
	s, err := stateOf(ctx)
	if err != nil {
		return o.Next.ExecuteChildWorkflow(ctx, childType, args...)
	}
	if err := s.prepareChild(ctx, childType, args); err != nil {
		return newFailedChild(ctx, local(ctx, err))
	}
	return o.Next.ExecuteChildWorkflow(ctx, childType, args...)
}

func (s *state) prepareChild(ctx workflow.Context, childType string, args []any) error {
	size, err := s.limits.checkValue("arguments of workflow "+childType, args...)
	if err != nil {
		return err
	}
	contextSize, err := s.checkContext("")
	if err != nil {
		return err
	}
	if err := s.budget.admit(ctx, size+contextSize); err != nil {
		return err
	}
	return writeHeader(interceptor.WorkflowHeader(ctx), s.opts.Codecs, s.contextWire())
}

func (o *outbound) NewContinueAsNewError(ctx workflow.Context, fn any, args ...any) error {
	return o.succeed(ctx, args, func() error { return o.Next.NewContinueAsNewError(ctx, fn, args...) })
}

func (o *outbound) NewContinueAsNewErrorWithOptions(ctx workflow.Context, opts workflow.ContinueAsNewErrorOptions, fn any, args ...any) error {
	return o.succeed(ctx, args, func() error { return o.Next.NewContinueAsNewErrorWithOptions(ctx, opts, fn, args...) })
}

// succeed waits for the calls that are running, so that none is lost or made
// twice, and hands over those that wait for a decision. What does not fit or
// cannot be written ends the run with an error instead.
func (o *outbound) succeed(ctx workflow.Context, args []any, next func() error) (err error) {
	s, stateErr := stateOf(ctx)
	if stateErr != nil {
		return next()
	}
	defer func() {
		if unsent := encodable("the arguments of the next run", recover()); unsent != nil {
			err = local(ctx, unsent)
		}
	}()
	if err := s.settle(ctx); err != nil {
		return err
	}
	if err := s.prepareSuccessor(ctx, args); err != nil {
		return err
	}
	return next()
}

func (s *state) prepareSuccessor(ctx workflow.Context, args []any) error {
	if _, err := s.limits.checkValue("arguments of the next run", args...); err != nil {
		return local(ctx, err)
	}
	if _, err := s.checkContext(""); err != nil {
		return local(ctx, err)
	}
	if err := s.handOver(ctx, interceptor.WorkflowHeader(ctx)); err != nil {
		return local(ctx, err)
	}
	return nil
}

// failedChild is a child workflow that was never started.
type failedChild struct {
	workflow.Future
}

func newFailedChild(ctx workflow.Context, err error) workflow.ChildWorkflowFuture {
	future, settable := workflow.NewFuture(ctx)
	settable.SetError(err)
	return failedChild{future}
}

func (f failedChild) GetChildWorkflowExecution() workflow.Future { return f.Future }

func (f failedChild) SignalChildWorkflow(workflow.Context, string, any) workflow.Future {
	return f.Future
}

func (f failedChild) SignalChildWorkflowWithOptions(workflow.Context, string, any, workflow.SignalChildWorkflowOptions) workflow.Future {
	return f.Future
}

// cancelledBeforeStart is the error of a call that was cancelled while it waited
// for its turn.
func cancelledBeforeStart(ctx workflow.Context, moduleID string, cause error) error {
	e := &apcore.Error{
		Code: apcore.CodeExecutionCancelled, Message: "call of module '" + moduleID + "' was cancelled before it was scheduled",
		Details: map[string]any{"module_id": moduleID}, Timestamp: workflow.Now(ctx),
	}
	return &callError{&durable.Failure{Err: e, NotStarted: true}, cause}
}
