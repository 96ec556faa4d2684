package workflows

import (
	"errors"

	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// Task is the workflow apcore/task: it runs one task of a temporal.TaskManager and
// keeps its record. Every attempt is an ordinary call of temporal.Call, so
// approvals, access rules, the classes of retry and size limits hold as anywhere.
//
// The query apcore/task answers the record, the update apcore/task-cancel cancels
// it; a cancellation of the workflow does the same. The workflow ends as the task
// does: completed with the record, failed with the error of the last attempt, or
// cancelled.
func Task(ctx workflow.Context, in durable.TaskRequest) (*durable.TaskRecord, error) {
	t := &taskRun{request: in, record: in.Record}
	t.record.V = durable.WireVersion
	if t.record.Place == 0 {
		t.record.Place = temporal.TaskPlace(workflow.GetInfo(ctx).WorkflowStartTime)
	}
	callCtx, cancel := workflow.WithCancel(ctx)
	t.cancel = cancel
	if err := t.open(ctx); err != nil {
		return nil, err
	}
	workflow.GoNamed(ctx, "apcore-task-cancelled", func(ctx workflow.Context) {
		ctx.Done().Receive(ctx, nil)
		t.end(ctx, apcore.TaskCancelled)
	})
	if err := temporal.AdoptContext(ctx, in.Context); err != nil {
		return nil, t.fail(ctx, err)
	}
	err := t.run(ctx, callCtx)
	if workflow.IsContinueAsNewError(err) {
		return nil, err
	}
	detached, _ := workflow.NewDisconnectedContext(ctx)
	if waiting := workflow.Await(detached, func() bool { return workflow.AllHandlersFinished(detached) }); waiting != nil {
		return nil, waiting
	}
	if t.record.Task.Status == apcore.TaskCancelled {
		return nil, sdktemporal.NewCanceledError()
	}
	if err != nil {
		return nil, err
	}
	return &t.record, nil
}

type taskRun struct {
	request durable.TaskRequest
	record  durable.TaskRecord
	cancel  workflow.CancelFunc
}

func (t *taskRun) open(ctx workflow.Context) error {
	names := temporal.Names(ctx)
	err := workflow.SetQueryHandlerWithOptions(ctx, names.Task(), func() (durable.TaskRecord, error) { return t.record, nil },
		workflow.QueryHandlerOptions{Description: "the record of the task"})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, names.TaskSave(), func(workflow.Context, durable.TaskSave) (durable.TaskSaved, error) {
		return durable.TaskSaved{}, nil // never called: the validator refuses
	}, workflow.UpdateHandlerOptions{Validator: t.refuseSave, Description: "refused: a task writes its record itself"})
	if err != nil {
		return err
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, names.TaskCancel(), t.onCancel, workflow.UpdateHandlerOptions{Description: "cancel the task"})
}

func (t *taskRun) refuseSave(workflow.Context, durable.TaskSave) error {
	return temporal.WorkflowError(apcore.NewError(apcore.CodeInvalidInput, "task %s is run by a workflow, which alone writes its record", t.record.Task.TaskID))
}

func (t *taskRun) onCancel(ctx workflow.Context) (durable.TaskCancelled, error) {
	return durable.TaskCancelled{Cancelled: t.end(ctx, apcore.TaskCancelled)}, nil
}

// run makes attempts until one succeeds or none may follow.
func (t *taskRun) run(ctx, callCtx workflow.Context) error {
	for !t.record.Task.Status.Terminal() {
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return t.succeed(ctx)
		}
		t.start(ctx)
		result, err := t.attempt(callCtx)
		if t.record.Task.Status.Terminal() { // cancelled meanwhile
			t.late(ctx, err)
			continue
		}
		if err == nil {
			return t.complete(ctx, result)
		}
		if apcore.CodeOf(err) == apcore.CodeExecutionCancelled && ctx.Err() != nil {
			t.end(ctx, apcore.TaskCancelled)
			continue
		}
		if !t.again(ctx, callCtx, err) && !t.record.Task.Status.Terminal() {
			return t.fail(ctx, err)
		}
	}
	return nil
}

// succeed hands the task over to a new run; it is never reached between an attempt
// and its outcome.
func (t *taskRun) succeed(ctx workflow.Context) error {
	next := t.request
	next.Record, next.Context = t.record, nil // the context goes along by itself
	return workflow.NewContinueAsNewError(ctx, temporal.Names(ctx).Task(), next)
}

func (t *taskRun) attempt(ctx workflow.Context) (*durable.CallResult, error) {
	opts := temporal.CallOptions{
		IdempotencyKey: t.request.IdempotencyKey, AcceptRepeatedEffects: t.request.AcceptRepeatedEffects,
		ApprovalTimeout: durable.FromMilliseconds(t.request.ApprovalTimeoutMS), VersionHint: t.request.VersionHint,
	}
	if t.request.Retry != nil {
		opts.Attempts = 1 // its retries take the place of those by annotation
	}
	ctx = temporal.WithCallOptions(temporal.ObserveWaiting(ctx, t.waiting), opts)
	return temporal.CallRaw(ctx, t.request.ModuleID, t.request.Inputs)
}

// again waits for the next attempt; false means that none follows.
func (t *taskRun) again(ctx, callCtx workflow.Context, err error) bool {
	failure := failureOf(err)
	t.record.ErrorCode = failure.Err.Code
	class := durable.ClassAtMostOnce
	if t.request.Retry != nil && t.record.Task.RetryCount < t.request.Retry.MaxRetries {
		class = temporal.RecordedClass(ctx, t.request.ModuleID)
	}
	pause, again := t.request.TaskRetry(failure, class, t.record.Task.RetryCount)
	if !again {
		return false
	}
	at := float64(temporal.TaskPlace(workflow.Now(ctx).Add(pause))) / 1e6
	t.change(ctx, func(record *durable.TaskRecord) {
		record.Task.Status, record.NextAttemptAt = apcore.TaskPending, &at
		record.Task.RetryCount++
	})
	if pause > 0 {
		_ = workflow.NewTimerWithOptions(callCtx, pause, workflow.TimerOptions{Summary: "pause before the next attempt"}).Get(callCtx, nil)
	}
	return true // a cancellation has made the record terminal
}

// failureOf reads what a call failed with; what failed before it was scheduled
// had no effect.
func failureOf(err error) *durable.Failure {
	if failure, ok := errors.AsType[*durable.Failure](err); ok {
		return failure
	}
	return &durable.Failure{Err: temporal.AsError(err), NotStarted: true}
}

func (t *taskRun) start(ctx workflow.Context) {
	t.change(ctx, func(record *durable.TaskRecord) {
		record.Task.Status, record.NextAttemptAt = apcore.TaskRunning, nil
		if record.Task.StartedAt == nil {
			record.Task.StartedAt = now(ctx)
		}
	})
}

// waiting follows the approvals of the call: a task that waits for somebody is
// pending on the wire.
func (t *taskRun) waiting(ctx workflow.Context, approval *durable.Approval) {
	if t.record.Task.Status.Terminal() {
		return
	}
	t.change(ctx, func(record *durable.TaskRecord) {
		record.Task.Status, record.InputRequired, record.Approval = apcore.TaskRunning, approval != nil, nil
		if approval != nil {
			record.Task.Status = apcore.TaskPending
			record.Approval = &durable.TaskApproval{
				WorkflowID: workflow.GetInfo(ctx).WorkflowExecution.ID, ApprovalID: approval.ApprovalID,
				ModuleID: approval.Module.ID, Deadline: approval.Deadline,
			}
		}
	})
}

func (t *taskRun) complete(ctx workflow.Context, result *durable.CallResult) error {
	output, err := apcore.DecodeObject(result.Output)
	if err != nil {
		return t.fail(ctx, err)
	}
	t.change(ctx, func(record *durable.TaskRecord) {
		record.Task.Status, record.Task.CompletedAt, record.Task.Result = apcore.TaskCompleted, now(ctx), output
		record.ErrorCode = ""
	})
	return nil
}

func (t *taskRun) fail(ctx workflow.Context, err error) error {
	e := temporal.AsError(err)
	t.change(ctx, func(record *durable.TaskRecord) {
		record.Task.Status, record.Task.CompletedAt, record.Task.Error = apcore.TaskFailed, now(ctx), new(e.Error())
		record.ErrorCode = e.Code
	})
	return err
}

// end makes the record terminal unless it is, and stops the call.
func (t *taskRun) end(ctx workflow.Context, status apcore.TaskStatus) (ended bool) {
	if t.record.Task.Status.Terminal() {
		return false
	}
	t.change(ctx, func(record *durable.TaskRecord) {
		record.Task.Status, record.Task.CompletedAt = status, now(ctx)
		record.InputRequired, record.Approval, record.NextAttemptAt = false, nil, nil
	})
	t.cancel()
	return true
}

// late notes how the call of a cancelled task ended after all, so that an effect
// is never taken for none.
func (t *taskRun) late(ctx workflow.Context, err error) {
	outcome := string(apcore.TaskCompleted)
	if err != nil {
		outcome = string(apcore.CodeOf(err))
		if apcore.CodeOf(err) == apcore.CodeExecutionCancelled {
			return
		}
	}
	t.change(ctx, func(record *durable.TaskRecord) { record.LateOutcome = outcome })
}

// change writes the record and shows it to clients without a worker.
func (t *taskRun) change(ctx workflow.Context, change func(*durable.TaskRecord)) {
	change(&t.record)
	t.record.Seq++
	if err := temporal.PublishTask(ctx, t.record); err != nil {
		workflow.GetLogger(ctx).Warn("apcore: the record of a task is not shown to clients", "error", err)
	}
}

func now(ctx workflow.Context) *float64 {
	return new(float64(temporal.TaskPlace(workflow.Now(ctx))) / 1e6)
}
