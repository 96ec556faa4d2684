package apcore_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// panickingTaskStore panics in one of its methods, while that is switched on.
type panickingTaskStore struct {
	*apcore.InMemoryTaskStore
	operation string
	on        atomic.Bool
}

func (s *panickingTaskStore) step(operation string) {
	if s.on.Load() && s.operation == operation {
		panic("secret text")
	}
}

func (s *panickingTaskStore) Save(ctx context.Context, info apcore.TaskInfo) error {
	s.step("save")
	return s.InMemoryTaskStore.Save(ctx, info)
}

func (s *panickingTaskStore) Get(ctx context.Context, id string) (*apcore.TaskInfo, error) {
	s.step("get")
	return s.InMemoryTaskStore.Get(ctx, id)
}

func (s *panickingTaskStore) List(ctx context.Context, status *apcore.TaskStatus) ([]apcore.TaskInfo, error) {
	s.step("list")
	return s.InMemoryTaskStore.List(ctx, status)
}

func (s *panickingTaskStore) Delete(ctx context.Context, id string) error {
	s.step("delete")
	return s.InMemoryTaskStore.Delete(ctx, id)
}

func (s *panickingTaskStore) ListExpired(ctx context.Context, before float64) ([]apcore.TaskInfo, error) {
	s.step("list_expired")
	return s.InMemoryTaskStore.ListExpired(ctx, before)
}

// Scenario 49: the goroutines of a task manager survive a store that panics, and
// its callers are told that the store cannot answer.
func TestTaskStorePanics(t *testing.T) {
	for _, operation := range []string{"save", "get", "list", "delete", "list_expired"} {
		t.Run(operation, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t, apcore.ExecutorOptions{}).module("work.slow", func(context.Context, obj, *apcore.Context) (obj, error) {
					time.Sleep(time.Minute)
					return obj{}, nil
				})
				store, logged := &panickingTaskStore{InMemoryTaskStore: apcore.NewInMemoryTaskStore(), operation: operation}, &ledger{}
				m := newTaskManager(t, h, apcore.AsyncTaskOptions{Store: store, Logger: logTo(logged)})
				reaper, err := m.StartReaper(apcore.ReaperOptions{TTL: time.Hour, SweepInterval: 2 * time.Hour})
				must(t, err)
				task := submitTask(t, m, "work.slow", nil)
				synctest.Wait()
				store.on.Store(true)
				for name, call := range map[string]func() error{
					"save": func() error { _, err := m.Cancel(t.Context(), task); return err },
					"get":  func() error { _, err := m.GetStatus(t.Context(), task); return err },
					"list": func() error { _, err := m.ListTasks(t.Context(), nil); return err },
				} {
					if err := call(); name == operation {
						wantTaskCode(t, err, apcore.CodeTaskStoreUnavailable)
						if strings.Contains(err.Error(), "secret") {
							t.Errorf("the panic's text got out: %v", err)
						}
					} else if name != "save" && err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
				time.Sleep(5 * time.Hour) // the task ends and the reaper sweeps twice
				if logged.count() == 0 && (operation == "save" || strings.HasPrefix(operation, "list_") || operation == "delete") {
					t.Error("nothing is logged")
				}
				store.on.Store(false)
				time.Sleep(2 * time.Hour)
				wants := 0 // records: the reaper goes on and deletes what has ended
				if operation == "save" || operation == "get" {
					wants = 1 // this one could not be recorded as ended
				}
				if infos, err := m.ListTasks(t.Context(), nil); err != nil || len(infos) != wants {
					t.Errorf("%d records, %v; want %d", len(infos), err, wants)
				}
				reaper.Stop()
			})
		})
	}
}
