package apcore

import (
	"context"
	"errors"
	"slices"
	"time"
)

// asyncTask is a task that this process runs.
type asyncTask struct {
	id, moduleID string
	inputs       map[string]any
	caller       *Context // carries token
	retry        RetryConfig
	token        *CancelToken
	ctx          context.Context // for calls and store, until the task has ended
	release      context.CancelFunc
	lock         taskLock // makes reading and writing the record one step
	ended        chan struct{}
}

func (t *asyncTask) end() {
	t.release()
	close(t.ended)
}

// taskLock is a mutex that can be waited for within a context.
type taskLock chan struct{}

func newTaskLock() taskLock { return make(taskLock, 1) }

func (l taskLock) acquire(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l taskLock) release() { <-l }

// run is the life of a task, in a goroutine of its own.
func (m *AsyncTaskManager) run(t *asyncTask) {
	defer t.end()
	defer m.forget(t)
	for {
		delay, again := m.attempt(t)
		if !again || !t.pause(delay) {
			return
		}
	}
}

// attempt runs the module once, in a slot.
func (m *AsyncTaskManager) attempt(t *asyncTask) (delay time.Duration, again bool) {
	select {
	case m.slots <- struct{}{}:
	case <-t.token.Done():
		return 0, false
	}
	defer func() { <-m.slots }()
	if t.token.Cancelled() {
		return 0, false
	}
	running, err := m.update(t.ctx, t.lock, t.id, func(info *TaskInfo) {
		info.Status = TaskRunning
		if info.StartedAt == nil {
			info.StartedAt = new(epochSeconds(time.Now()))
		}
	})
	if err != nil {
		m.report(t, "apcore: async task was not started", err)
	}
	if !running {
		return 0, false
	}
	output, err := m.executor.Call(t.ctx, t.moduleID, t.inputs, t.caller)
	return m.settle(t, output, err)
}

// settle records what an attempt led to. again is true when the record waits for
// another one.
func (m *AsyncTaskManager) settle(t *asyncTask, output map[string]any, failure error) (delay time.Duration, again bool) {
	written, err := m.update(t.ctx, t.lock, t.id, func(info *TaskInfo) {
		switch {
		case failure == nil:
			finish(info, TaskCompleted)
			info.Result = output
		case t.token.Cancelled() && CodeOf(failure) == CodeExecutionCancelled:
			finish(info, TaskCancelled) // by a shutdown that could not write
		case info.RetryCount < t.retry.MaxRetries:
			delay, again = t.retry.delay(info.RetryCount), true
			info.Status = TaskPending
			info.RetryCount++
		default:
			finish(info, TaskFailed)
			info.Error = new(failure.Error())
		}
	})
	if err != nil {
		m.report(t, "apcore: outcome of an async task was not recorded", err)
	} else if !written && failure != nil && CodeOf(failure) != CodeExecutionCancelled {
		m.report(t, "apcore: async task failed after its end was recorded", failure)
	}
	return delay, again && written
}

func finish(info *TaskInfo, status TaskStatus) {
	info.Status = status
	info.CompletedAt = new(epochSeconds(time.Now()))
}

// pause waits between two attempts; false means the task was cancelled.
func (t *asyncTask) pause(delay time.Duration) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.token.Done():
		return false
	}
}

// update reads a record, changes it and writes it. written is false, and nothing
// changes, when the record is gone or terminal: the first terminal state stays.
func (m *AsyncTaskManager) update(ctx context.Context, lock taskLock, id string, change func(*TaskInfo)) (written bool, err error) {
	if err := lock.acquire(ctx); err != nil {
		return false, err
	}
	defer lock.release()
	info, err := m.store.Get(ctx, id)
	if err != nil {
		return false, storeError("get", err)
	}
	if info == nil || info.Status.Terminal() {
		return false, nil
	}
	change(info)
	err = m.store.Save(ctx, *info)
	if errors.Is(err, ErrTaskEnded) { // by another process, since it was read
		return false, nil
	}
	return err == nil, storeError("save", err)
}

// report logs what happened to a task with nobody waiting.
func (m *AsyncTaskManager) report(t *asyncTask, message string, err error) {
	m.logger.Error(message, "task_id", t.id, "module_id", t.moduleID, "error", outside.text(err.Error()))
}

// task finds a task of this process, nil if it has none or it has ended.
func (m *AsyncTaskManager) task(id string) *asyncTask {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.IndexFunc(m.order, func(t *asyncTask) bool { return t.id == id }); i >= 0 {
		return m.order[i]
	}
	return nil
}

func (m *AsyncTaskManager) forget(t *asyncTask) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.order = slices.DeleteFunc(m.order, func(other *asyncTask) bool { return other == t })
}
