package apcore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// taskHost is a manager whose modules either fail or wait for their token.
type taskHost struct {
	*apcore.AsyncTaskManager
	attempts ledger
}

func newTaskHost(opts apcore.AsyncTaskOptions) (*taskHost, error) {
	h := &taskHost{}
	logger := slog.New(slog.DiscardHandler)
	registry := apcore.NewRegistry(apcore.RegistryOptions{Logger: logger})
	err := errors.Join(
		apcore.Register(registry, "worker.fails", func(context.Context, map[string]any) (map[string]any, error) {
			h.attempts.add("%v", time.Now())
			return nil, errors.New("connection_error")
		}, apcore.Spec{Description: "Fails"}),
		apcore.Register(registry, "worker.waits", func(ctx context.Context, _ map[string]any) (map[string]any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, apcore.Spec{Description: "Waits"}))
	if err != nil {
		return nil, err
	}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{Logger: logger})
	if err != nil {
		return nil, err
	}
	opts.Logger = logger
	h.AsyncTaskManager, err = apcore.NewAsyncTaskManager(executor, opts)
	return h, err
}

// inBubble runs a case with a clock of its own and shuts its manager down.
func inBubble(f *fixture, opts apcore.AsyncTaskOptions, run func(ctx context.Context, h *taskHost, c *check)) error {
	c := &check{}
	synctest.Test(f.t, func(t *testing.T) {
		h, err := newTaskHost(opts)
		if err != nil {
			c.that(false, "manager: %v", err)
			return
		}
		run(t.Context(), h, c)
		err = h.Shutdown(t.Context())
		c.that(err == nil, "shutdown: %v", err)
	})
	return c.err()
}

func into(value, target any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, target)
}

func driveTaskCancellation(f *fixture, test map[string]any) error {
	switch test["action"] {
	case "submit_over_capacity":
		return driveOverCapacity(f, test)
	case "cancel_during_backoff":
		return driveCancelInBackoff(f, test)
	}
	return fmt.Errorf("unknown action %v", test["action"])
}

func driveOverCapacity(f *fixture, test map[string]any) error {
	opts := apcore.AsyncTaskOptions{MaxTasks: int(test["max_tasks"].(float64)), MaxConcurrent: int(test["max_concurrent"].(float64))}
	return inBubble(f, opts, func(ctx context.Context, h *taskHost, c *check) {
		var err error
		submits := int(test["submit_count"].(float64))
		for i := range submits {
			_, err = h.Submit(ctx, "worker.waits", nil, nil, nil)
			c.that(err == nil || i == submits-1, "submit %d: %v", i, err)
		}
		c.that(string(apcore.CodeOf(err)) == test["expected_error"], "the last submit returned %v", err)
	})
}

func driveCancelInBackoff(f *fixture, test map[string]any) error {
	return inBubble(f, apcore.AsyncTaskOptions{}, func(ctx context.Context, h *taskHost, c *check) {
		retry := apcore.DefaultRetryConfig()
		c.that(into(test, &retry) == nil, "retry config")
		id, err := h.Submit(ctx, "worker.fails", nil, nil, &retry)
		c.that(err == nil, "submit: %v", err)
		synctest.Wait() // in the pause
		before := h.attempts.count()
		cancelled, err := h.Cancel(ctx, id)
		c.that(cancelled && err == nil, "cancel: %t, %v", cancelled, err)
		time.Sleep(time.Hour) // of the bubble's clock
		info, err := h.GetStatus(ctx, id)
		c.that(err == nil && string(info.Status) == test["expected_final_status"], "status %v, %v", info, err)
		c.that(before == 1 && h.attempts.count() == before, "%d attempts before and %d after", before, h.attempts.count())
	})
}

func driveTaskEvolution(f *fixture, test map[string]any) error {
	want := object(test["expected"])
	switch test["action"] {
	case "construct_manager":
		return driveTaskStoreType(object(test["config"]), want)
	case "save_then_get":
		return driveTaskRoundTrip(test, want)
	case "list_by_status":
		return driveTaskList(test, want)
	case "compute_retry_delays":
		return driveRetryDelays(test, want)
	case "execute_and_observe", "execute_until_exhausted":
		return driveRetries(f, test, want)
	case "wait_and_check_store", "trigger_reaper_sweep":
		return driveReaper(f, test, want)
	}
	return fmt.Errorf("unknown action %v", test["action"])
}

// otherTaskStore stands for a store from elsewhere.
type otherTaskStore struct{ apcore.TaskStore }

func driveTaskStoreType(config, want map[string]any) error {
	c := &check{}
	var store apcore.TaskStore
	if config["store"] != nil {
		store = &otherTaskStore{}
	}
	h, err := newTaskHost(apcore.AsyncTaskOptions{Store: store})
	if err != nil {
		return err
	}
	if _, builtIn := h.Store().(*apcore.InMemoryTaskStore); builtIn != (want["store_type"] == "InMemoryTaskStore") {
		c.that(false, "the store is a %T", h.Store())
	}
	c.that(store == nil || h.Store() == store, "the store is another one")
	return c.err()
}

func storeWith(values ...any) (*apcore.InMemoryTaskStore, error) {
	store := apcore.NewInMemoryTaskStore()
	for _, value := range values {
		var info apcore.TaskInfo
		if err := errors.Join(into(value, &info), store.Save(context.Background(), info)); err != nil {
			return nil, err
		}
	}
	return store, nil
}

func driveTaskRoundTrip(test, want map[string]any) error {
	c := &check{}
	store, err := storeWith(test["task_info"])
	if err != nil {
		return err
	}
	got, err := store.Get(context.Background(), text(test["lookup_id"]))
	c.that(err == nil && (got != nil) == want["found"], "got %v, %v", got, err)
	c.that(equalJSON(got, test["task_info"]), "got %v, want %v", wire(got), test["task_info"])
	return c.err()
}

func equalJSON(a, b any) bool {
	x, errX := json.Marshal(wire(a))
	y, errY := json.Marshal(wire(b))
	return errX == nil && errY == nil && string(x) == string(y)
}

func idsOf(infos []apcore.TaskInfo) []string {
	ids := []string{}
	for i := range infos {
		ids = append(ids, infos[i].TaskID)
	}
	return ids
}

func driveTaskList(test, want map[string]any) error {
	c := &check{}
	store, err := storeWith(list(test["stored_tasks"])...)
	if err != nil {
		return err
	}
	status := apcore.TaskStatus(text(test["status_filter"]))
	infos, err := store.List(context.Background(), &status)
	c.that(err == nil && float64(len(infos)) == want["count"], "%d records, %v", len(infos), err)
	c.that(slices.Equal(idsOf(infos), texts(want["task_ids"])), "listed %v", idsOf(infos))
	return c.err()
}

func driveRetryDelays(test, want map[string]any) error {
	c := &check{}
	retry := apcore.DefaultRetryConfig()
	if err := into(test["retry_config"], &retry); err != nil {
		return err
	}
	for attempt := range len(want) {
		c.that(retry.DelayMS(attempt) == want[fmt.Sprintf("attempt_%d_delay_ms", attempt)], "attempt %d: %v", attempt, retry.DelayMS(attempt))
	}
	return c.err()
}

func driveRetries(f *fixture, test, want map[string]any) error {
	return inBubble(f, apcore.AsyncTaskOptions{}, func(ctx context.Context, h *taskHost, c *check) {
		retry := apcore.DefaultRetryConfig()
		c.that(into(test["retry_config"], &retry) == nil, "retry config")
		id, err := h.Submit(ctx, "worker.fails", nil, nil, &retry)
		c.that(err == nil, "submit: %v", err)
		synctest.Wait()
		if status, ok := want["status_after_first_failure"]; ok {
			info, err := h.GetStatus(ctx, id)
			c.that(err == nil && string(info.Status) == status && float64(info.RetryCount) == want["retry_count_after_first_failure"], "record %+v, %v", info, err)
			pause := fixtureTime(want["next_retry_delay_ms"], time.Millisecond)
			time.Sleep(pause - 1)
			synctest.Wait()
			c.that(h.attempts.count() == 1, "%d attempts before the pause is over", h.attempts.count())
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			c.that(h.attempts.count() == 2, "%d attempts after the pause", h.attempts.count())
			return
		}
		time.Sleep(time.Hour)
		info, err := h.GetStatus(ctx, id)
		c.that(err == nil && string(info.Status) == want["final_status"] && float64(info.RetryCount) == want["retry_count"], "record %+v, %v", info, err)
		c.that((info.Error != nil && *info.Error != "") == want["error_populated"], "error %v", info.Error)
		c.that(h.attempts.count() == retry.MaxRetries+1, "%d attempts", h.attempts.count())
	})
}

func driveReaper(f *fixture, test, want map[string]any) error {
	stored := slices.Concat(list(test["stored_tasks"]), list(test["stored_expired_tasks"]))
	store, err := storeWith(stored...)
	if err != nil {
		return err
	}
	return inBubble(f, apcore.AsyncTaskOptions{Store: store}, func(ctx context.Context, h *taskHost, c *check) {
		config := object(object(test["config"])["reaper"])
		opts := apcore.ReaperOptions{}
		if config != nil {
			opts.TTL = fixtureTime(config["ttl_seconds"], time.Second)
			opts.SweepInterval = fixtureTime(config["sweep_interval_ms"], time.Millisecond)
		}
		now := time.Unix(int64(test["now_timestamp"].(float64)), 0)
		time.Sleep(time.Until(now) - opts.SweepInterval) // the first sweep is then at that time
		if config != nil {
			_, err := h.StartReaper(opts)
			c.that(err == nil, "start: %v", err)
		}
		time.Sleep(opts.SweepInterval)
		synctest.Wait()
		infos, err := h.ListTasks(ctx, nil)
		c.that(err == nil, "list: %v", err)
		if config == nil {
			c.that(len(infos) == len(stored), "%d records left without a reaper", len(infos))
			return
		}
		c.that(slices.Equal(idsOf(infos), texts(want["remaining_task_ids"])), "remaining %v", idsOf(infos))
		c.that(len(stored)-len(infos) == len(texts(want["deleted_task_ids"])), "%d deleted", len(stored)-len(infos))
	})
}

// fixtureTime reads a number of a fixture as so many units of time.
func fixtureTime(number any, unit time.Duration) time.Duration {
	value, _ := number.(float64)
	return time.Duration(value * float64(unit))
}
