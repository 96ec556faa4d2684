package temporal

import (
	"context"
	"errors"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// Delete implements [apcore.TaskStore]. It returns once no process can read the
// record any more. Deleting a running task of a [TaskManager] also ends its
// workflow; its module is not told, see [TaskManager.Cancel].
func (s *TaskStore) Delete(ctx context.Context, taskID string) error {
	if s.checkTaskID(taskID) != nil {
		return nil // such an id cannot have been saved
	}
	bounded, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	_, err := s.deleteWhere(bounded, taskID, func(*apcore.TaskInfo) bool { return true })
	return s.storeError(ctx, "delete", taskID, err)
}

// deleteWhere deletes a record that is as expected now.
func (s *TaskStore) deleteWhere(ctx context.Context, taskID string, expected func(*apcore.TaskInfo) bool) (deleted bool, err error) {
	found, err := s.describe(ctx, taskID)
	if err != nil || found == nil || found.record.Deleted || !expected(&found.record.Task) {
		return false, err
	}
	if err := s.deleteOlderRuns(ctx, taskID, found); err != nil {
		return false, err
	}
	if err := s.deleteRun(ctx, taskID, found.runID); err != nil {
		return false, err
	}
	if err := s.awaitDeletion(ctx, found); err != nil {
		return false, err
	}
	tombstone := found.record.Tombstone()
	s.overlay.put(&tombstone)
	s.ended.forget(taskID)
	return true, nil
}

// awaitDeletion returns once nobody can read the record. The server removes an
// open workflow within milliseconds, but a closed one only after its next
// checkpoint, half a minute after the close and more on a busy one; then a tombstone
// takes its place, which also hides the runs that closed before.
func (s *TaskStore) awaitDeletion(ctx context.Context, found *foundTask) error {
	if found.open {
		if err := s.awaitGone(ctx, found); err != nil || !found.record.Reopened {
			return err
		}
	} else if time.Since(found.closed) > checkpointInterval {
		waiting, cancel := context.WithTimeout(ctx, goneTimeout)
		defer cancel()
		if s.awaitGone(waiting, found) == nil {
			return nil
		}
	}
	tombstone := found.record.Tombstone()
	options, err := s.startOptions(&tombstone)
	if err != nil {
		return err
	}
	options.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	_, err = s.client.ExecuteWorkflow(ctx, options, s.opts.Namer.TaskRecord(), durable.TaskRecordInput{V: durable.WireVersion, Record: tombstone})
	return err
}

const (
	checkpointInterval = time.Minute
	goneTimeout        = 500 * time.Millisecond
)

// deleteOlderRuns removes what a reset or a continue-as-new has left behind.
func (s *TaskStore) deleteOlderRuns(ctx context.Context, taskID string, found *foundTask) error {
	if found.firstRunID == "" || found.firstRunID == found.runID {
		return nil
	}
	runs, err := s.runsOf(ctx, taskID)
	if err != nil {
		return err
	}
	for _, runID := range runs {
		if runID == found.runID {
			continue
		}
		if err := s.deleteRun(ctx, taskID, runID); err != nil {
			return err
		}
	}
	return nil
}

func (s *TaskStore) runsOf(ctx context.Context, taskID string) ([]string, error) {
	answer, err := s.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: s.opts.Namespace, PageSize: taskPage, Query: "WorkflowId = '" + quoteEscape(s.workflowID(taskID)) + "'",
	})
	if err != nil {
		return nil, err
	}
	var runs []string
	for _, execution := range answer.GetExecutions() {
		runs = append(runs, execution.GetExecution().GetRunId())
	}
	return runs, nil
}

// deleteRun removes one run; one that is not there is no error.
func (s *TaskStore) deleteRun(ctx context.Context, taskID, runID string) error {
	_, err := s.client.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace:         s.opts.Namespace,
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: s.workflowID(taskID), RunId: runID},
	})
	return unlessNotFound(err)
}

// awaitGone waits until the server, which deletes in the background, no longer
// knows a run.
func (s *TaskStore) awaitGone(ctx context.Context, found *foundTask) error {
	id := s.workflowID(found.record.Task.TaskID)
	for wait := firstPoll; ; wait = min(wait*2, lastPoll) {
		_, err := s.client.DescribeWorkflow(ctx, id, found.runID)
		if err != nil {
			return unlessNotFound(err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

const (
	firstPoll = 2 * time.Millisecond
	lastPoll  = 200 * time.Millisecond
)

func unlessNotFound(err error) error {
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return nil
	}
	return err
}

// quoteEscape makes a text part of a quoted literal of a visibility query.
func quoteEscape(text string) string {
	return strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text)
}
