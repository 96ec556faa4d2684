package apcore_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// faultyTaskStore fails on demand, with an error that has no code.
type faultyTaskStore struct {
	apcore.TaskStore
	fail, failSave atomic.Bool
}

var errTaskBackend = errors.New("connection refused")

func (s *faultyTaskStore) err() error {
	if s.fail.Load() {
		return errTaskBackend
	}
	return nil
}

func (s *faultyTaskStore) Save(ctx context.Context, info apcore.TaskInfo) error {
	if s.failSave.Load() {
		return errTaskBackend
	}
	return errors.Join(s.err(), s.TaskStore.Save(ctx, info))
}

func (s *faultyTaskStore) Get(ctx context.Context, id string) (*apcore.TaskInfo, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.TaskStore.Get(ctx, id)
}

func (s *faultyTaskStore) List(ctx context.Context, status *apcore.TaskStatus) ([]apcore.TaskInfo, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.TaskStore.List(ctx, status)
}

func (s *faultyTaskStore) Delete(ctx context.Context, id string) error {
	if err := s.err(); err != nil {
		return err
	}
	return s.TaskStore.Delete(ctx, id)
}

func (s *faultyTaskStore) ListExpired(ctx context.Context, before float64) ([]apcore.TaskInfo, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.TaskStore.ListExpired(ctx, before)
}

func TestTaskStoreFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, apcore.ExecutorOptions{}).module("work.waits", untilCancelled)
		store, logged := &faultyTaskStore{TaskStore: apcore.NewInMemoryTaskStore()}, &ledger{}
		m := newTaskManager(t, h, apcore.AsyncTaskOptions{Store: store, Logger: logTo(logged)})
		task := submitTask(t, m, "work.waits", nil)
		synctest.Wait()
		store.failSave.Store(true)
		cancelled, err := m.Cancel(t.Context(), task)
		wantTaskCode(t, err, apcore.CodeTaskStoreUnavailable)
		_, submitErr := m.Submit(t.Context(), "work.waits", nil, nil, nil)
		wantTaskCode(t, submitErr, apcore.CodeTaskStoreUnavailable)
		synctest.Wait()
		if info := wantStatus(t, m, task, apcore.TaskRunning); cancelled || info.CompletedAt != nil {
			t.Errorf("cancelled = %t though nothing was written", cancelled)
		}
		store.fail.Store(true)
		ctx := t.Context()
		for name, call := range map[string]func() error{
			"submit": func() error { _, err := m.Submit(ctx, "work.waits", nil, nil, nil); return err },
			"status": func() error { _, err := m.GetStatus(ctx, task); return err },
			"result": func() error { _, err := m.GetResult(ctx, task); return err },
			"cancel": func() error { _, err := m.Cancel(ctx, task); return err },
			"list":   func() error { _, err := m.ListTasks(ctx, nil); return err },
			"clean":  func() error { _, err := m.Cleanup(ctx, 0); return err },
		} {
			if err := call(); apcore.CodeOf(err) != apcore.CodeTaskStoreUnavailable || !errors.Is(err, errTaskBackend) {
				t.Errorf("%s: %v", name, err)
			}
		}
		before := time.Now()
		wantTaskCode(t, m.Shutdown(ctx), apcore.CodeTaskStoreUnavailable)
		if took := time.Since(before); took != 0 { // of the bubble's clock
			t.Errorf("the task went on for %v", took)
		}
		if logged.count() != 1 {
			t.Errorf("logged %v, want the outcome that was not recorded", logged.all())
		}
		h.wants(nil, "", 1)
	})
}

func TestTaskShutdown(t *testing.T) {
	inTaskBubble(t, apcore.AsyncTaskOptions{MaxConcurrent: 1}, func(h *host, m *apcore.AsyncTaskManager) {
		t := h.t // of the bubble
		h.module("work.waits", untilCancelled).module("work.fails", failingTask)
		if _, err := m.StartReaper(apcore.ReaperOptions{}); err != nil {
			t.Fatal(err)
		}
		pausing := submitTask(t, m, "work.fails", retries(1))
		synctest.Wait()
		tasks := []string{pausing, submitTask(t, m, "work.waits", nil), submitTask(t, m, "work.waits", nil)}
		synctest.Wait()
		before := time.Now()
		for range 2 {
			if err := m.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(before); took != 0 {
			t.Errorf("waited %v", took)
		}
		for _, task := range tasks {
			wantStatus(t, m, task, apcore.TaskCancelled)
		}
		_, err := m.Submit(t.Context(), "work.waits", nil, nil, nil)
		wantTaskCode(t, err, apcore.CodeInvalidInput)
		_, err = m.StartReaper(apcore.ReaperOptions{})
		wantTaskCode(t, err, apcore.CodeInvalidInput)
	})
}

// hangingTaskStore hangs in Save until the context ends.
type hangingTaskStore struct {
	apcore.TaskStore
	hangs atomic.Bool
}

func (s *hangingTaskStore) Save(ctx context.Context, info apcore.TaskInfo) error {
	if s.hangs.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.TaskStore.Save(ctx, info)
}

func TestTaskShutdownIsBoundedByItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, apcore.ExecutorOptions{})
		h.module("work.second", func(context.Context, map[string]any, *apcore.Context) (map[string]any, error) {
			time.Sleep(time.Second)
			return obj{}, nil
		})
		store := &hangingTaskStore{TaskStore: apcore.NewInMemoryTaskStore()}
		m := newTaskManager(t, h, apcore.AsyncTaskOptions{Store: store, Logger: slog.New(slog.DiscardHandler)})
		submitTask(t, m, "work.second", nil)
		synctest.Wait()
		store.hangs.Store(true)
		time.Sleep(2 * time.Second) // the task now writes its end
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := m.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("shutdown: %v", err)
		}
		store.hangs.Store(false)
		if err := m.Shutdown(t.Context()); err != nil { // waits for what is left
			t.Errorf("second shutdown: %v", err)
		}
	})
}
