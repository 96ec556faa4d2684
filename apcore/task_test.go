package apcore_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// inTaskBubble gives a test a clock and a manager of its own; the bubble proves
// that no goroutine is left after the shutdown.
func inTaskBubble(t *testing.T, opts apcore.AsyncTaskOptions, test func(h *host, m *apcore.AsyncTaskManager)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, apcore.ExecutorOptions{})
		m := newTaskManager(t, h, opts)
		test(h, m)
		if err := m.Shutdown(t.Context()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
}

func newTaskManager(t *testing.T, h *host, opts apcore.AsyncTaskOptions) *apcore.AsyncTaskManager {
	t.Helper()
	if opts.Logger == nil {
		opts.Logger = logTo(&ledger{})
	}
	m, err := apcore.NewAsyncTaskManager(h.Executor, opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func submitTask(t *testing.T, m *apcore.AsyncTaskManager, id string, retry *apcore.RetryConfig) string {
	t.Helper()
	task, err := m.Submit(t.Context(), id, nil, nil, retry)
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	return task
}

func wantStatus(t *testing.T, m *apcore.AsyncTaskManager, task string, want apcore.TaskStatus) apcore.TaskInfo {
	t.Helper()
	info, err := m.GetStatus(t.Context(), task)
	if err != nil || info == nil {
		t.Fatalf("status: %v, %v", info, err)
	}
	if info.Status != want {
		t.Errorf("status %q, want %q (error %s)", info.Status, want, wire(info)["error"])
	}
	return *info
}

func wantTaskCode(t *testing.T, err error, want apcore.Code) {
	t.Helper()
	if got := apcore.CodeOf(err); got != want {
		t.Errorf("code %q, want %q: %v", got, want, err)
	}
}

// untilCancelled is a module that waits for its token.
func untilCancelled(ctx context.Context, _ map[string]any, _ *apcore.Context) (map[string]any, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func failingTask(context.Context, map[string]any, *apcore.Context) (map[string]any, error) {
	return nil, errors.New("no luck")
}

func retries(n int) *apcore.RetryConfig {
	retry := apcore.DefaultRetryConfig()
	retry.MaxRetries = n
	return &retry
}

func seconds(t time.Time) *float64 { return new(float64(t.UnixMicro()) / 1e6) }

func TestTaskCompletes(t *testing.T) {
	inTaskBubble(t, apcore.AsyncTaskOptions{MaxConcurrent: 1}, func(h *host, m *apcore.AsyncTaskManager) {
		t := h.t // of the bubble
		t.Helper()
		h.module("work.slow", func(_ context.Context, inputs map[string]any, c *apcore.Context) (map[string]any, error) {
			time.Sleep(2 * time.Second)
			return obj{"in": inputs["n"], "trace": c.TraceID()}, nil
		})
		c, inputs, start := apcore.NewContext(apcore.ContextOptions{}), obj{"n": "first"}, time.Now()
		task, err := m.Submit(t.Context(), "work.slow", inputs, c, nil)
		if err != nil {
			t.Fatal(err)
		}
		inputs["n"] = "changed"
		if id, err := uuid.Parse(task); err != nil || id.Version() != 4 {
			t.Errorf("task id %q: %v", task, err)
		}
		synctest.Wait() // the first has the only slot
		synctest.Wait()
		second := submitTask(t, m, "work.slow", nil)
		synctest.Wait()
		wantStatus(t, m, task, apcore.TaskRunning)
		wantStatus(t, m, second, apcore.TaskPending)
		_, err = m.GetResult(t.Context(), second)
		wantTaskCode(t, err, apcore.CodeInvalidInput)
		if want := "Task " + second + " is not completed (status=pending)"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		time.Sleep(5 * time.Second) // a module that ignores its context runs on after a shutdown: let both end
		want := apcore.TaskInfo{
			TaskID: task, ModuleID: "work.slow", Status: apcore.TaskCompleted, SubmittedAt: *seconds(start),
			StartedAt: seconds(start), CompletedAt: seconds(start.Add(2 * time.Second)), Result: obj{"in": "first", "trace": c.TraceID()},
		}
		if diff := cmp.Diff(want, wantStatus(t, m, task, apcore.TaskCompleted)); diff != "" {
			t.Error(diff)
		}
		result, err := m.GetResult(t.Context(), task)
		if diff := cmp.Diff(want.Result, result); diff != "" || err != nil {
			t.Error(diff, err)
		}
		_, err = m.GetResult(t.Context(), "nobody")
		wantTaskCode(t, err, apcore.CodeInvalidInput)
		if err == nil || !strings.Contains(err.Error(), "Task not found: nobody") {
			t.Errorf("error %v", err)
		}
	})
}

func TestTaskOfBadModuleFails(t *testing.T) {
	inTaskBubble(t, apcore.AsyncTaskOptions{}, func(h *host, m *apcore.AsyncTaskManager) {
		t := h.t // of the bubble
		t.Helper()
		for id, code := range map[string]apcore.Code{"no.such": apcore.CodeModuleNotFound, "No Such!": apcore.CodeInvalidModuleID} {
			task := submitTask(t, m, id, nil)
			synctest.Wait()
			info := wantStatus(t, m, task, apcore.TaskFailed)
			if info.Error == nil || !strings.Contains(*info.Error, string(code)) || info.CompletedAt == nil || info.Result != nil {
				t.Errorf("record %v", wire(info))
			}
		}
	})
}

// Scenario 76: started_at is the first start, the pauses are the formula's, and the
// slot is free in a pause.
func TestTaskRetries(t *testing.T) {
	inTaskBubble(t, apcore.AsyncTaskOptions{MaxConcurrent: 1}, func(h *host, m *apcore.AsyncTaskManager) {
		t := h.t // of the bubble
		t.Helper()
		h.module("work.fails", failingTask).module("work.quick", nil)
		start := time.Now()
		task := submitTask(t, m, "work.fails", retries(2))
		synctest.Wait()
		info := wantStatus(t, m, task, apcore.TaskPending)
		if info.RetryCount != 1 || info.Error != nil || info.CompletedAt != nil {
			t.Errorf("in the first pause: %v", wire(info))
		}
		quick := submitTask(t, m, "work.quick", nil)
		synctest.Wait()
		wantStatus(t, m, quick, apcore.TaskCompleted) // the only slot is free in the pause
		time.Sleep(time.Second)
		synctest.Wait()
		time.Sleep(2*time.Second - 1)
		synctest.Wait()
		if info := wantStatus(t, m, task, apcore.TaskPending); info.RetryCount != 2 {
			t.Errorf("in the second pause: %v", wire(info))
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		want := apcore.TaskInfo{
			TaskID: task, ModuleID: "work.fails", Status: apcore.TaskFailed, SubmittedAt: *seconds(start), StartedAt: seconds(start),
			CompletedAt: seconds(start.Add(3 * time.Second)), RetryCount: 2, MaxRetries: 2,
		}
		got := wantStatus(t, m, task, apcore.TaskFailed)
		if got.Error == nil || !strings.Contains(*got.Error, "no luck") {
			t.Errorf("error %v", wire(got)["error"])
		}
		got.Error = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if ran := h.effects.count(); ran != 4 {
			t.Errorf("%v ran, want 3 attempts and the quick one", h.effects.all())
		}
	})
}

func TestTaskAttemptsStartFromTheSubmittedContext(t *testing.T) {
	inTaskBubble(t, apcore.AsyncTaskOptions{}, func(h *host, m *apcore.AsyncTaskManager) {
		t := h.t // of the bubble
		t.Helper()
		h.module("work.counts", func(_ context.Context, _ map[string]any, c *apcore.Context) (map[string]any, error) {
			seen, _ := c.Data().Get("seen")
			n, _ := seen.(int)
			c.Data().Set("seen", n+1)
			if n < 4 {
				return nil, errors.New("again")
			}
			return obj{"chain": strings.Join(c.CallChain(), " ")}, nil
		})
		c := apcore.NewContext(apcore.ContextOptions{Data: obj{"seen": 0}})
		token := apcore.NewCancelToken()
		token.Cancel()
		ctx, cancel := context.WithCancel(t.Context())
		task, err := m.Submit(ctx, "work.counts", nil, c.WithCancelToken(token), retries(4))
		cancel() // neither this nor the token is the task's
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		info := wantStatus(t, m, task, apcore.TaskCompleted)
		if info.Result["chain"] != "work.counts" || info.RetryCount != 4 {
			t.Errorf("record %v", wire(info))
		}
	})
}

// Scenario 76: only what is pending or running counts, ended tasks do not.
func TestTaskLimit(t *testing.T) {
	inTaskBubble(t, apcore.AsyncTaskOptions{MaxTasks: 3}, func(h *host, m *apcore.AsyncTaskManager) {
		t := h.t // of the bubble
		t.Helper()
		h.module("work.quick", nil).module("work.waits", untilCancelled)
		for range 2 { // tasks that have ended do not count
			for range 3 {
				submitTask(t, m, "work.quick", nil)
			}
			synctest.Wait()
		}
		for range 2 {
			submitTask(t, m, "work.waits", nil)
		}
		task := submitTask(t, m, "work.waits", nil)
		_, err := m.Submit(t.Context(), "work.quick", nil, nil, nil)
		wantTaskCode(t, err, apcore.CodeTaskLimitExceeded)
		if found := apcore.AsError(err); found == nil || found.Retryable == nil || !*found.Retryable {
			t.Errorf("%v is not retryable", err)
		}
		if cancelled, err := m.Cancel(t.Context(), task); !cancelled || err != nil {
			t.Errorf("cancel: %t, %v", cancelled, err)
		}
		submitTask(t, m, "work.quick", nil) // at once, though the module may still be at it
	})
}

func TestTaskCleanup(t *testing.T) {
	inTaskBubble(t, apcore.AsyncTaskOptions{}, func(h *host, m *apcore.AsyncTaskManager) {
		t := h.t // of the bubble
		t.Helper()
		h.module("work.waits", untilCancelled)
		for _, info := range []apcore.TaskInfo{
			{TaskID: "exact", Status: apcore.TaskFailed, CompletedAt: seconds(time.Now())},
			{TaskID: "by submission", Status: apcore.TaskCancelled, SubmittedAt: *seconds(time.Now())},
			{TaskID: "younger", Status: apcore.TaskCompleted, CompletedAt: seconds(time.Now().Add(time.Millisecond))},
			{TaskID: "active", Status: apcore.TaskPending},
		} {
			if err := m.Store().Save(t.Context(), info); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		if removed, err := m.Cleanup(t.Context(), time.Hour); removed != 2 || err != nil {
			t.Errorf("removed %d, %v, want the one of the exact age and the one submitted then", removed, err)
		}
		if removed, err := m.Cleanup(t.Context(), 0); removed != 1 || err != nil {
			t.Errorf("removed %d, %v, want all that ended", removed, err)
		}
		_, err := m.Cleanup(t.Context(), -1)
		wantTaskCode(t, err, apcore.CodeInvalidInput)
		infos, err := m.ListTasks(t.Context(), nil)
		if diff := cmp.Diff([]string{"active"}, idsOf(infos)); diff != "" || err != nil {
			t.Error(diff, err)
		}
	})
}

func TestTaskOptionsAreChecked(t *testing.T) {
	h := newHost(t, apcore.ExecutorOptions{})
	for _, opts := range []apcore.AsyncTaskOptions{{MaxConcurrent: -1}, {MaxTasks: -1}} {
		_, err := apcore.NewAsyncTaskManager(h.Executor, opts)
		wantTaskCode(t, err, apcore.CodeInvalidInput)
	}
	_, err := apcore.NewAsyncTaskManager(nil, apcore.AsyncTaskOptions{})
	wantTaskCode(t, err, apcore.CodeInvalidInput)
	m := newTaskManager(t, h, apcore.AsyncTaskOptions{})
	for _, retry := range []apcore.RetryConfig{
		{MaxRetries: -1}, {RetryDelayMS: -1}, {BackoffMultiplier: math.NaN()}, {MaxRetryDelayMS: math.Inf(1)},
	} {
		_, err := m.Submit(t.Context(), "work.any", nil, nil, &retry)
		wantTaskCode(t, err, apcore.CodeInvalidInput)
	}
	_, err = m.Submit(t.Context(), "work.any", obj{"f": func() {}}, nil, nil)
	wantTaskCode(t, err, apcore.CodeInvalidInput)
	if infos, err := m.ListTasks(t.Context(), nil); len(infos) != 0 || err != nil {
		t.Errorf("%d records, %v", len(infos), err)
	}
}

func TestTaskRetryDelays(t *testing.T) {
	for name, test := range map[string]struct {
		retry   apcore.RetryConfig
		attempt int
		want    float64
	}{
		"default first":       {apcore.DefaultRetryConfig(), 0, 1000},
		"default is bounded":  {apcore.DefaultRetryConfig(), 6, 60000},
		"overflow is bounded": {apcore.DefaultRetryConfig(), 5000, 60000},
		"no delay stays none": {apcore.RetryConfig{BackoffMultiplier: 2, MaxRetryDelayMS: 5}, 5000, 0},
		"fractions stay":      {apcore.RetryConfig{RetryDelayMS: 0.5, BackoffMultiplier: 1.5, MaxRetryDelayMS: 5}, 1, 0.75},
		"zero to the zero":    {apcore.RetryConfig{RetryDelayMS: 7, MaxRetryDelayMS: 9}, 0, 7},
		"shrinking":           {apcore.RetryConfig{RetryDelayMS: 8, BackoffMultiplier: 0.5, MaxRetryDelayMS: 9}, 2, 2},
	} {
		if got := test.retry.DelayMS(test.attempt); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestTaskInfoOnTheWire(t *testing.T) {
	const empty = `{"task_id":"t","module_id":"m","status":"pending","submitted_at":1.5,"started_at":null,"completed_at":null,"result":null,"error":null,"retry_count":0,"max_retries":0}`
	data, err := json.Marshal(apcore.TaskInfo{TaskID: "t", ModuleID: "m", Status: apcore.TaskPending, SubmittedAt: 1.5})
	if err != nil || string(data) != empty {
		t.Errorf("wrote %s, %v", data, err)
	}
	var info apcore.TaskInfo
	if err := json.Unmarshal([]byte(`{"task_id":"t","error":"e","result":{"n":12345678901234567890}}`), &info); err != nil {
		t.Fatal(err)
	}
	if info.Result["n"] != json.Number("12345678901234567890") || info.TaskID != "t" || *info.Error != "e" {
		t.Errorf("read %v", wire(info))
	}
	if err := json.Unmarshal([]byte(`{"result":[1]}`), &info); err == nil {
		t.Error("a result that is no object was read")
	}
	_, err = apcore.TaskInfo{Result: obj{"f": func() {}}}.Clone()
	wantTaskCode(t, err, apcore.CodeInvalidInput)
}
