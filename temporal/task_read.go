package temporal

import (
	"context"
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// Get implements [apcore.TaskStore]. It needs no worker, except for an open
// record that is larger than a head: without a worker that one comes as lists
// show it, after the timeout.
func (s *TaskStore) Get(ctx context.Context, taskID string) (*apcore.TaskInfo, error) {
	record, err := s.Record(ctx, taskID)
	if err != nil || record == nil {
		return nil, err
	}
	return &record.Task, nil
}

// Record is Get with all that is known of a task: what it waits for, when its
// next attempt comes, how a cancelled call ended after all. It returns nil and no
// error for an unknown id.
func (s *TaskStore) Record(ctx context.Context, taskID string) (*durable.TaskRecord, error) {
	if s.checkTaskID(taskID) != nil {
		return nil, nil //nolint:nilnil // such an id cannot have been saved
	}
	bounded, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	found, err := s.describe(bounded, taskID)
	if err == nil && found == nil {
		err = s.expired(bounded, taskID)
	}
	if err != nil {
		return nil, s.storeError(ctx, "get", taskID, err)
	}
	if found == nil || found.record.Deleted {
		return nil, nil //nolint:nilnil // the interface's word for unknown
	}
	if found.record.Task.Status.Terminal() {
		s.ended.saw(taskID, found.closed)
	}
	if found.record.Cut {
		s.complete(ctx, found)
	}
	return &found.record, nil
}

// foundTask is a task as the server knows it.
type foundTask struct {
	record durable.TaskRecord
	runID  string
	// firstRunID differs from runID after a reset or a continue-as-new; empty in
	// lists.
	firstRunID string
	// task says that the workflow runs a task and not only keeps a record.
	task   bool
	open   bool
	status enumspb.WorkflowExecutionStatus
	closed time.Time // zero while it is open
}

// describe asks the server for the latest run of a task; nil means there is none.
// What it answers is never behind a save that was acknowledged.
func (s *TaskStore) describe(ctx context.Context, taskID string) (*foundTask, error) {
	description, err := s.client.DescribeWorkflow(ctx, s.workflowID(taskID), "")
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return nil, nil //nolint:nilnil // nothing to describe
	}
	if err != nil {
		return nil, err
	}
	row := taskRow{
		workflowType: description.WorkflowType.Name, runID: description.WorkflowExecution.RunID,
		status: description.Status, started: description.WorkflowStartTime, memo: description.Memo,
	}
	if description.WorkflowCloseTime != nil {
		row.closed = *description.WorkflowCloseTime
	}
	found, err := s.read(&row)
	if err == nil {
		found.firstRunID = description.RawResponse.GetWorkflowExecutionInfo().GetFirstRunId()
	}
	return found, err
}

// taskRow is what descriptions and visibility have in common.
type taskRow struct {
	workflowType, runID string
	status              enumspb.WorkflowExecutionStatus
	started, closed     time.Time
	memo                *commonpb.Memo
}

// read turns what the server knows into a record.
func (s *TaskStore) read(row *taskRow) (*foundTask, error) {
	found := &foundTask{
		runID: row.runID, status: row.status, closed: row.closed,
		task: row.workflowType == s.opts.Namer.Task(), open: row.closed.IsZero(),
	}
	payload := row.memo.GetFields()[durable.MemoTask]
	if payload == nil {
		return nil, apcore.NewError(apcore.CodeInternal, "run %s of type %s has the id of a task but no record", row.runID, row.workflowType)
	}
	if err := s.opts.DataConverter.FromPayload(payload, &found.record); err != nil {
		return nil, apcore.NewError(apcore.CodeInternal, "the record in run %s cannot be read, does the store have the client's data converter?: %w", row.runID, err)
	}
	if found.record.Place == 0 {
		found.record.Place = TaskPlace(row.started)
	}
	if found.task {
		settle(&found.record, row.status, row.closed)
	}
	return found, nil
}

// settle gives the record of a task whose workflow did not end by itself the
// status that the workflow's end means. The last word of a workflow that did is
// its record; a record without a task is what was last saved, whatever became of
// its workflow.
func settle(record *durable.TaskRecord, status enumspb.WorkflowExecutionStatus, closed time.Time) {
	if record.Task.Status.Terminal() {
		return
	}
	end := apcore.TaskFailed
	var text string
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return // it goes on, in this run or its successor
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		end = apcore.TaskCancelled
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		text = "the workflow of the task was terminated; its module may have had effects"
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		text = "the workflow of the task timed out; its module may have had effects"
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		text = "the workflow of the task ended without an outcome; its module may have had effects"
	}
	record.Task.Status, record.Task.CompletedAt = end, new(float64(TaskPlace(closed))/1e6)
	record.InputRequired, record.Approval, record.NextAttemptAt = false, nil, nil
	if end == apcore.TaskFailed {
		record.Task.Error, record.ErrorCode = &text, durable.CodeRunClosed
	}
	record.Seq++
}

// complete replaces a head by the whole record, if somebody can tell it.
func (s *TaskStore) complete(ctx context.Context, found *foundTask) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	id := s.workflowID(found.record.Task.TaskID)
	var whole durable.TaskRecord
	if found.open {
		value, err := s.client.QueryWorkflow(ctx, id, found.runID, s.opts.Namer.Task())
		if err != nil || value.Get(&whole) != nil {
			return
		}
	} else if err := s.client.GetWorkflow(ctx, id, found.runID).Get(ctx, &whole); err != nil {
		if e := AsError(err); found.record.Task.Error != nil && e.Code == found.record.ErrorCode {
			found.record.Task.Error = new(e.Error())
		}
		return
	}
	if whole.Task.TaskID == found.record.Task.TaskID && whole.Seq >= found.record.Seq {
		found.record = whole
	}
}

// expired tells a task that the retention has removed from one that never was or
// was deleted. Only an instance that has seen the task end can know.
func (s *TaskStore) expired(ctx context.Context, taskID string) error {
	at, known := s.ended.when(taskID)
	if !known {
		return nil
	}
	retention, err := s.ended.retention(ctx, s.client, s.opts.Namespace)
	if err != nil {
		return err
	}
	if time.Since(at) < retention {
		return nil
	}
	return refused(durable.CodeTaskExpired, "task %s ended at %s; the namespace %q keeps ended tasks for %v", taskID, at.UTC().Format(time.RFC3339), s.opts.Namespace, retention).
		WithDetail("task_id", taskID).WithDetail("retention_seconds", retention.Seconds())
}

// storeError gives an error of the server the code that the contract wants. ctx
// is the caller's: when that has ended, its error is returned.
func (s *TaskStore) storeError(ctx context.Context, operation, taskID string, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	if e := AsError(err); e.Code != apcore.CodeInternal && !isTimeoutOrCancel(err) {
		if e.Code == durable.CodeTaskEnded {
			return e.WithCause(apcore.ErrTaskEnded)
		}
		return e
	}
	if missing := s.missingAttributes(ctx, err); missing != nil {
		return missing
	}
	var invalid *serviceerror.InvalidArgument
	if errors.As(err, &invalid) {
		return apcore.NewError(apcore.CodeInvalidInput, "task %s: %w", taskID, err)
	}
	if operation == "save" && isTimeoutOrCancel(err) {
		err = s.whyNoAnswer(ctx, err)
	}
	return apcore.NewTaskStoreError(operation, err)
}

func isTimeoutOrCancel(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || isTimeout(err)
}

// whyNoAnswer tells a server without workers from no server.
func (s *TaskStore) whyNoAnswer(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(ctx, min(s.opts.Timeout, probeTimeout))
	defer cancel()
	pollers, err := s.client.DescribeTaskQueue(ctx, s.opts.TaskQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return cause
	}
	text := fmt.Sprintf("the server is there, but no worker of task queue %q answered within %v", s.opts.TaskQueue, s.opts.Timeout)
	if len(pollers.GetPollers()) == 0 {
		text += "; none has polled lately"
	}
	return refused(durable.CodeNoWorker, "%s", text).WithRetryable(new(true)).WithCause(cause)
}

const probeTimeout = 2 * time.Second
