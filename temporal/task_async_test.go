package temporal_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/google/uuid"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

// Durability pattern B: the in-memory manager on the store of Temporal. What one
// process left is found and ended by the next, and a cancellation that another
// process writes is not undone by a result that comes later.
func TestInMemoryManagerOnTaskStore(t *testing.T) {
	t.Parallel()
	c := newClerk(t, testsuite.DevServer(t))
	name, release := uuid.NewString(), make(chan struct{})
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	must(t, apcore.Register(registry, "test.deaf", func(context.Context, map[string]any) (map[string]any, error) {
		<-release
		return map[string]any{"late": true}, nil
	}, apcore.Spec{Description: "Does not look at its context"}))
	quiet := slog.New(slog.DiscardHandler)
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{Logger: quiet})
	must(t, err)
	manager := func() *apcore.AsyncTaskManager {
		m, err := apcore.NewAsyncTaskManager(executor, apcore.AsyncTaskOptions{Store: c.store(t, name), Logger: quiet})
		must(t, err)
		return m
	}
	first, second := manager(), manager()
	id, err := first.Submit(t.Context(), "test.deaf", nil, nil, nil)
	must(t, err)
	eventually(t, func() string {
		if info, err := second.GetStatus(t.Context(), id); err != nil || info == nil || info.Status != apcore.TaskRunning {
			return "the task does not run"
		}
		return ""
	})
	if cancelled, err := second.Cancel(t.Context(), id); !cancelled || err != nil {
		t.Errorf("cancel: %t, %v", cancelled, err)
	}
	close(release)
	must(t, first.Shutdown(t.Context()))
	if info, err := second.GetStatus(t.Context(), id); err != nil || info.Status != apcore.TaskCancelled || info.Result != nil {
		t.Errorf("after the late result: %+v, %v", info, err)
	}

	must(t, c.store(t, name).Save(t.Context(), runningTask("orphan")))
	third := manager()
	eventually(t, func() string {
		recovered, err := third.Recover(t.Context(), func(context.Context, apcore.TaskInfo) (apcore.TaskRecovery, apcore.Resubmission, error) {
			return apcore.RecoverFail, apcore.Resubmission{}, nil
		})
		must(t, err)
		if len(recovered.Failed) != 1 || recovered.Failed[0] != "orphan" {
			return "the orphan was not recovered"
		}
		return ""
	})
	if info, err := second.GetStatus(t.Context(), "orphan"); err != nil || info.Status != apcore.TaskFailed || info.Error == nil {
		t.Errorf("the orphan: %+v, %v", info, err)
	}
}
