package apcore

import (
	"context"
	"slices"
	"time"
)

// GetStatus returns a copy of a task's record, nil and no error when the id is
// unknown.
func (m *AsyncTaskManager) GetStatus(ctx context.Context, taskID string) (*TaskInfo, error) {
	info, err := m.store.Get(ctx, taskID)
	if err != nil {
		return nil, storeError("get", err)
	}
	return info, nil
}

// GetResult returns the output of a completed task. It does not wait: an unknown
// id and a task that is not completed fail with GENERAL_INVALID_INPUT.
func (m *AsyncTaskManager) GetResult(ctx context.Context, taskID string) (map[string]any, error) {
	info, err := m.GetStatus(ctx, taskID)
	switch {
	case err != nil:
		return nil, err
	case info == nil:
		return nil, NewError(CodeInvalidInput, "Task not found: %s", taskID).WithDetail("task_id", taskID)
	case info.Status != TaskCompleted:
		return nil, NewError(CodeInvalidInput, "Task %s is not completed (status=%s)", taskID, info.Status).
			WithDetail("task_id", taskID).WithDetail("status", string(info.Status))
	default:
		return info.Result, nil
	}
}

// ListTasks returns copies of the records of a status, all of them when it is
// nil, in order of submission.
func (m *AsyncTaskManager) ListTasks(ctx context.Context, status *TaskStatus) ([]TaskInfo, error) {
	infos, err := m.store.List(ctx, status)
	if err != nil {
		return nil, storeError("list", err)
	}
	return infos, nil
}

// Cancel cancels a task that is pending or running, between two attempts too, and
// reports whether this call did: false when the id is unknown or the task had
// ended. The record is written before the running module is told; when that
// fails, so does Cancel, and the task goes on. A result that arrives later is
// dropped. A task of another process is marked only: that process notices at its
// next write.
func (m *AsyncTaskManager) Cancel(ctx context.Context, taskID string) (bool, error) {
	t, lock := m.task(taskID), m.foreign
	if t != nil {
		lock = t.lock
	}
	cancelled, err := m.update(ctx, lock, taskID, func(info *TaskInfo) { finish(info, TaskCancelled) })
	if t != nil && err == nil {
		t.token.Cancel() // also one whose record another process has ended
	}
	return cancelled, err
}

// Cleanup removes the terminal records that ended, or else were submitted, maxAge
// ago or earlier, and returns how many. Zero removes all that have ended; the
// standard's default is an hour. It stops at the store's first error. A negative
// age fails with GENERAL_INVALID_INPUT.
func (m *AsyncTaskManager) Cleanup(ctx context.Context, maxAge time.Duration) (int, error) {
	if maxAge < 0 {
		return 0, NewError(CodeInvalidInput, "the maximum age of tasks is %v: give zero or more", maxAge)
	}
	infos, err := m.ListTasks(ctx, nil)
	if err != nil {
		return 0, err
	}
	latest, removed := epochSeconds(time.Now().Add(-maxAge)), 0
	for i := range infos {
		if !infos[i].Status.Terminal() || since(&infos[i]) > latest {
			continue
		}
		if err := m.store.Delete(ctx, infos[i].TaskID); err != nil {
			return removed, storeError("delete", err)
		}
		removed++
	}
	return removed, nil
}

func since(info *TaskInfo) float64 {
	if info.CompletedAt != nil {
		return *info.CompletedAt
	}
	return info.SubmittedAt
}

// Shutdown ends the manager: it stops the reaper, cancels every task of this
// process that has not ended, waits for them within ctx and returns the first
// error, which never keeps it from the other tasks. Afterwards the manager has no
// goroutine and takes no task; what the store knows can still be asked. It may be
// called again.
func (m *AsyncTaskManager) Shutdown(ctx context.Context) error {
	m.mu.Lock()
	m.closed = true
	tasks, reaper := slices.Clone(m.order), m.reaper
	m.mu.Unlock()
	var errs []error
	if reaper != nil {
		reaper.cancel()
		errs = append(errs, await(ctx, reaper.ended))
	}
	for _, t := range tasks {
		_, err := m.Cancel(ctx, t.id)
		t.token.Cancel() // even if the record could not be written
		errs = append(errs, err)
	}
	for _, t := range tasks {
		err := await(ctx, t.ended)
		if err != nil {
			t.release() // the store may listen to that
		}
		errs = append(errs, err)
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func await(ctx context.Context, ended <-chan struct{}) error {
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
