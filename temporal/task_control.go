package temporal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

func newReader(text []byte) io.Reader { return bytes.NewReader(text) }

// GetStatus returns a copy of a task's record, nil and no error when the id is
// unknown. It needs no worker.
func (m *TaskManager) GetStatus(ctx context.Context, taskID string) (*apcore.TaskInfo, error) {
	return m.store.Get(ctx, taskID)
}

// GetResult returns the output of a completed task. It does not wait: an unknown
// id and a task that is not completed fail with GENERAL_INVALID_INPUT.
func (m *TaskManager) GetResult(ctx context.Context, taskID string) (map[string]any, error) {
	info, err := m.GetStatus(ctx, taskID)
	switch {
	case err != nil:
		return nil, err
	case info == nil:
		return nil, taskNotFound(taskID)
	case info.Status != apcore.TaskCompleted:
		return nil, apcore.NewError(apcore.CodeInvalidInput, "Task %s is not completed (status=%s)", taskID, info.Status).
			WithDetail("task_id", taskID).WithDetail("status", string(info.Status))
	default:
		return info.Result, nil
	}
}

func taskNotFound(taskID string) error {
	return apcore.NewError(apcore.CodeInvalidInput, "Task not found: %s", taskID).WithDetail("task_id", taskID)
}

// ListTasks returns copies of the records of a status, all of them when it is nil,
// in order of submission, see [TaskStore.List].
func (m *TaskManager) ListTasks(ctx context.Context, status *apcore.TaskStatus) ([]apcore.TaskInfo, error) {
	return m.store.List(ctx, status)
}

// Wait blocks until a task and its module have ended, or ctx has, and returns the
// record. It needs no worker itself. An unknown id fails with
// GENERAL_INVALID_INPUT.
func (m *TaskManager) Wait(ctx context.Context, taskID string) (*durable.TaskRecord, error) {
	if m.store.checkTaskID(taskID) != nil {
		return nil, taskNotFound(taskID)
	}
	for {
		// How the workflow ended says the record.
		waited := m.store.client.GetWorkflow(ctx, m.store.workflowID(taskID), "").Get(ctx, nil)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		record, err := m.store.Record(ctx, taskID)
		switch {
		case err != nil:
			return nil, err
		case record == nil:
			return nil, taskNotFound(taskID)
		case record.Task.Status.Terminal():
			return record, nil
		}
		if unavailable := new(serviceerror.Unavailable); errors.As(waited, &unavailable) {
			return nil, m.store.storeError(ctx, "get", taskID, waited)
		}
	}
}

// Cancel cancels a task that is pending or running, between two attempts and while
// it waits for an approval too, and reports whether this call did: false when the
// id is unknown or the task had ended. The record is cancelled before the running
// module is told; a result that arrives later is dropped, and the record's
// late_outcome says that there was one. A stored record without a workflow that
// runs it is only marked.
//
// Without a worker that answers in time it fails with NO_WORKER, wrapped in
// TASK_STORE_UNAVAILABLE; the server then knows of the wish, and the task is
// cancelled when a worker comes back.
func (m *TaskManager) Cancel(ctx context.Context, taskID string) (bool, error) {
	if m.store.checkTaskID(taskID) != nil {
		return false, nil
	}
	bounded, cancel := context.WithTimeout(ctx, m.store.opts.Timeout)
	defer cancel()
	found, err := m.store.describe(bounded, taskID)
	if err != nil || found == nil || found.record.Closed() {
		return false, m.store.storeError(ctx, "get", taskID, err)
	}
	if !found.task {
		return m.mark(ctx, &found.record.Task)
	}
	cancelled, err := m.cancel(bounded, taskID)
	var gone *serviceerror.NotFound
	switch {
	case err == nil:
		return cancelled, nil
	case errors.As(err, &gone): // it has ended meanwhile
		return false, nil
	case isTimeoutOrCancel(err) && ctx.Err() == nil:
		asked, stop := context.WithTimeout(ctx, m.store.opts.Timeout)
		defer stop()
		err = errors.Join(err, m.store.client.CancelWorkflow(asked, m.store.workflowID(taskID), ""))
	}
	return false, m.store.storeError(ctx, "save", taskID, err)
}

func (m *TaskManager) cancel(ctx context.Context, taskID string) (bool, error) {
	handle, err := m.store.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: m.store.workflowID(taskID), UpdateName: m.store.opts.Namer.TaskCancel(), WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	var answer durable.TaskCancelled
	if err == nil {
		err = handle.Get(ctx, &answer)
	}
	return answer.Cancelled, err
}

// mark cancels a record that some other process works on.
func (m *TaskManager) mark(ctx context.Context, info *apcore.TaskInfo) (bool, error) {
	info.Status, info.CompletedAt = apcore.TaskCancelled, new(epochSeconds(time.Now()))
	err := m.store.Save(ctx, *info)
	if errors.Is(err, apcore.ErrTaskEnded) {
		return false, nil
	}
	return err == nil, err
}

// DefaultCleanupAge is the contract's age for [TaskManager.Cleanup].
const DefaultCleanupAge = time.Hour

// Cleanup removes the terminal records that ended, or else were submitted, maxAge
// ago or earlier, and returns how many. Zero removes all that have ended. It goes
// on after an error and returns the first one. A negative age fails with
// GENERAL_INVALID_INPUT.
func (m *TaskManager) Cleanup(ctx context.Context, maxAge time.Duration) (int, error) {
	if maxAge < 0 {
		return 0, apcore.NewError(apcore.CodeInvalidInput, "the maximum age of tasks is %v: give zero or more", maxAge)
	}
	latest := epochSeconds(time.Now().Add(-maxAge))
	old := func(info *apcore.TaskInfo) bool {
		since := info.SubmittedAt
		if info.CompletedAt != nil {
			since = *info.CompletedAt
		}
		return info.Status.Terminal() && since <= latest
	}
	found, err := m.store.collect(ctx, "CloseTime IS NOT NULL", old)
	if err != nil {
		return 0, m.store.storeError(ctx, "list", "", err)
	}
	removed, err := m.store.deleteAll(ctx, found, old)
	return removed, m.store.storeError(ctx, "delete", "", err)
}

// Shutdown ends the manager as the contract has it: it takes no more submissions,
// cancels every task that this manager submitted and that has not ended, tries all
// of them, waits for them within ctx and returns the first error. Tasks of other
// managers go on. A process that leaves its tasks to others calls
// [TaskManager.Close] instead.
func (m *TaskManager) Shutdown(ctx context.Context) error {
	m.Close()
	active, err := m.active(ctx)
	if err != nil {
		return err
	}
	own := slices.DeleteFunc(active, func(record durable.TaskRecord) bool { return record.Owner != m.owner })
	errs := make([]error, 2*len(own))
	parallel(len(own), func(i int) {
		_, errs[i] = m.Cancel(ctx, own[i].Task.TaskID)
	})
	parallel(len(own), func(i int) {
		_, errs[len(own)+i] = m.Wait(ctx, own[i].Task.TaskID)
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Close ends the manager and leaves its tasks running. What the server knows can
// still be asked. It may be called again.
func (m *TaskManager) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

const maxParallel = 8

// parallel does n things, a few at a time.
func parallel(n int, do func(i int)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	group.Wait()
}
