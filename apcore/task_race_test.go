package apcore_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Scenario 78: cancel before the start, while it runs, twice, after the end, and of
// a record that only the store knows.
func TestTaskCancel(t *testing.T) {
	inTaskBubble(t, apcore.AsyncTaskOptions{MaxConcurrent: 1}, func(h *host, m *apcore.AsyncTaskManager) {
		t := h.t // of the bubble
		h.module("work.waits", untilCancelled).module("work.quick", nil)
		running := submitTask(t, m, "work.waits", nil)
		synctest.Wait()
		queued := submitTask(t, m, "work.quick", nil)
		synctest.Wait()
		foreign := apcore.TaskInfo{TaskID: "foreign", Status: apcore.TaskRunning}
		if err := m.Store().Save(t.Context(), foreign); err != nil {
			t.Fatal(err)
		}
		for _, task := range []string{queued, running, "foreign"} {
			for _, want := range []bool{true, false} {
				if got, err := m.Cancel(t.Context(), task); got != want || err != nil {
					t.Errorf("cancel of %s: %t, %v, want %t", task, got, err, want)
				}
			}
			if info := wantStatus(t, m, task, apcore.TaskCancelled); info.CompletedAt == nil || info.Error != nil || info.Result != nil {
				t.Errorf("record %v", wire(info))
			}
		}
		synctest.Wait()
		after := submitTask(t, m, "work.quick", nil)
		synctest.Wait()
		wantStatus(t, m, after, apcore.TaskCompleted) // the slot is free again
		for _, task := range []string{after, "nobody"} {
			if got, err := m.Cancel(t.Context(), task); got || err != nil {
				t.Errorf("cancel of %s: %t, %v", task, got, err)
			}
		}
		h.wants(nil, "", 2)
	})
}

// Scenario 78: what comes after the cancellation changes nothing; an error that is none of the
// cancellation is told to the log.
func TestTaskLateOutcomes(t *testing.T) {
	for name, test := range map[string]struct {
		failure error
		logged  int
	}{
		"result":           {nil, 0},
		"its cancellation": {apcore.NewError(apcore.CodeExecutionCancelled, "ended"), 0},
		"another failure":  {errors.New("disk full"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			logged := &ledger{}
			inTaskBubble(t, apcore.AsyncTaskOptions{Logger: logTo(logged)}, func(h *host, m *apcore.AsyncTaskManager) {
				t := h.t // of the bubble
				h.module("work.late", func(ctx context.Context, _ map[string]any, _ *apcore.Context) (map[string]any, error) {
					// The store's word comes from elsewhere, so the call goes on.
					infos, err := m.ListTasks(ctx, nil)
					for i := range infos {
						infos[i].Status = apcore.TaskCancelled
						err = errors.Join(err, m.Store().Save(ctx, infos[i]))
					}
					return obj{}, errors.Join(test.failure, err)
				})
				task := submitTask(t, m, "work.late", retries(3))
				time.Sleep(time.Hour)
				wantStatus(t, m, task, apcore.TaskCancelled)
				h.wants(nil, "", 1)
				if logged.count() != test.logged {
					t.Errorf("logged %v", logged.all())
				}
			})
		})
	}
}

func TestTaskEndedElsewhere(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, store apcore.TaskStore, task string) error{
		"cancelled": func(ctx context.Context, store apcore.TaskStore, task string) error {
			return store.Save(ctx, apcore.TaskInfo{TaskID: task, Status: apcore.TaskCancelled})
		},
		"gone": func(ctx context.Context, store apcore.TaskStore, task string) error { return store.Delete(ctx, task) },
	} {
		t.Run(name, func(t *testing.T) {
			inTaskBubble(t, apcore.AsyncTaskOptions{}, func(h *host, m *apcore.AsyncTaskManager) {
				t := h.t // of the bubble
				h.module("work.fails", failingTask)
				h.module("work.slow", func(context.Context, map[string]any, *apcore.Context) (map[string]any, error) {
					time.Sleep(time.Second)
					return obj{}, nil
				})
				tasks := []string{submitTask(t, m, "work.fails", retries(3)), submitTask(t, m, "work.slow", nil)}
				synctest.Wait()
				before := []*apcore.TaskInfo{}
				for _, task := range tasks {
					if err := end(t.Context(), m.Store(), task); err != nil {
						t.Fatal(err)
					}
					info, _ := m.GetStatus(t.Context(), task)
					before = append(before, info)
				}
				time.Sleep(time.Hour)
				for i, task := range tasks {
					info, err := m.GetStatus(t.Context(), task)
					if !equalJSON(info, before[i]) || err != nil {
						t.Errorf("task %d is %v, %v; it was %v", i, info, err, before[i])
					}
				}
				h.wants(nil, "", 2)
			})
		})
	}
}

// yieldingTaskStore lets others go between a manager's reading and writing.
type yieldingTaskStore struct{ *apcore.InMemoryTaskStore }

func (s yieldingTaskStore) Save(ctx context.Context, info apcore.TaskInfo) error {
	runtime.Gosched()
	return s.InMemoryTaskStore.Save(ctx, info)
}

func wantTerminal(t *testing.T, m *apcore.AsyncTaskManager, task string) apcore.TaskInfo {
	t.Helper()
	info, err := m.GetStatus(t.Context(), task)
	if err != nil || info == nil || !info.Status.Terminal() || info.CompletedAt == nil {
		t.Fatalf("record %v, %v", wire(info), err)
	}
	return *info
}

// countingTaskStore sees how many records are active after each save.
type countingTaskStore struct {
	*apcore.InMemoryTaskStore
	most atomic.Int64
}

func (s *countingTaskStore) Save(ctx context.Context, info apcore.TaskInfo) error {
	err := s.InMemoryTaskStore.Save(ctx, info)
	infos, _ := s.List(ctx, nil)
	active := int64(0)
	for i := range infos {
		if !infos[i].Status.Terminal() {
			active++
		}
	}
	for most := s.most.Load(); active > most && !s.most.CompareAndSwap(most, active); most = s.most.Load() {
	}
	return err
}

// Scenario 76: 100 parallel submits never exceed the limit.
func TestTaskLimitHoldsInParallel(t *testing.T) {
	store := &countingTaskStore{InMemoryTaskStore: apcore.NewInMemoryTaskStore()}
	inTaskBubble(t, apcore.AsyncTaskOptions{Store: store, MaxTasks: 3}, func(h *host, m *apcore.AsyncTaskManager) {
		t := h.t // of the bubble
		h.module("work.waits", untilCancelled)
		var accepted, refused atomic.Int64
		var group sync.WaitGroup
		for range 100 {
			group.Go(func() {
				_, err := m.Submit(t.Context(), "work.waits", nil, nil, nil)
				switch apcore.CodeOf(err) {
				case "":
					accepted.Add(1)
				case apcore.CodeTaskLimitExceeded:
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		group.Wait()
		if accepted.Load() != 3 || refused.Load() != 97 || store.most.Load() != 3 {
			t.Errorf("%d accepted, %d refused, %d active at most", accepted.Load(), refused.Load(), store.most.Load())
		}
	})
}

func TestTaskConcurrencyIsBounded(t *testing.T) {
	inTaskBubble(t, apcore.AsyncTaskOptions{MaxConcurrent: 2}, func(h *host, m *apcore.AsyncTaskManager) {
		t := h.t // of the bubble
		h.module("work.second", func(context.Context, map[string]any, *apcore.Context) (map[string]any, error) {
			time.Sleep(time.Second)
			return obj{}, nil
		})
		for range 6 {
			submitTask(t, m, "work.second", nil)
		}
		for second := 1; second <= 3; second++ {
			synctest.Wait()
			if ran := h.effects.count(); ran != 2*second {
				t.Errorf("%d ran in second %d", ran, second)
			}
			time.Sleep(time.Second)
		}
	})
}

// Scenario 76: one reaper at a time; it can be stopped and started again, and one
// bad sweep does not end it.
func TestTaskReaper(t *testing.T) {
	store := &faultyTaskStore{TaskStore: apcore.NewInMemoryTaskStore()}
	inTaskBubble(t, apcore.AsyncTaskOptions{Store: store}, func(h *host, m *apcore.AsyncTaskManager) {
		t := h.t // of the bubble
		left := func(want int) {
			t.Helper()
			synctest.Wait()
			if infos, err := m.ListTasks(t.Context(), nil); len(infos) != want || err != nil {
				t.Errorf("%d records, %v, want %d", len(infos), err, want)
			}
		}
		save := func(id string) {
			if err := m.Store().Save(t.Context(), apcore.TaskInfo{TaskID: id, Status: apcore.TaskFailed, CompletedAt: seconds(time.Now())}); err != nil {
				t.Fatal(err)
			}
		}
		save("first")
		opts := apcore.ReaperOptions{TTL: 90 * time.Second, SweepInterval: time.Minute}
		reaper, err := m.StartReaper(opts)
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.StartReaper(opts)
		wantTaskCode(t, err, apcore.CodeReaperAlreadyRunning)
		time.Sleep(2*time.Minute - 1)
		left(1)
		store.fail.Store(true)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		store.fail.Store(false)
		left(1) // that sweep failed
		time.Sleep(time.Minute)
		left(0) // and the next one did not
		reaper.Stop()
		reaper.Stop()
		save("second")
		time.Sleep(time.Hour)
		left(1)
		if _, err = m.StartReaper(apcore.ReaperOptions{}); err != nil {
			t.Errorf("start after stop: %v", err)
		}
		time.Sleep(5 * time.Minute)
		left(0)
		_, err = m.StartReaper(apcore.ReaperOptions{TTL: -1})
		wantTaskCode(t, err, apcore.CodeInvalidInput)
	})
}

func TestTaskSubmitsRaceWithShutdown(t *testing.T) {
	for round := range 100 {
		synctest.Test(t, func(t *testing.T) {
			h := newHost(t, apcore.ExecutorOptions{}).module("work.waits", untilCancelled)
			m := newTaskManager(t, h, apcore.AsyncTaskOptions{})
			var group sync.WaitGroup
			for range 8 {
				group.Go(func() {
					if _, err := m.Submit(t.Context(), "work.waits", nil, nil, nil); err != nil && apcore.CodeOf(err) != apcore.CodeInvalidInput {
						t.Error(err)
					}
				})
			}
			if err := m.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			group.Wait()
			infos, err := m.ListTasks(t.Context(), nil)
			for i := range infos {
				if infos[i].Status != apcore.TaskCancelled {
					err = errors.Join(err, fmt.Errorf("round %d: a task is %s", round, infos[i].Status))
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}
