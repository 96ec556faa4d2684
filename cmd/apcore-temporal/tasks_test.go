package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

type job struct {
	How string `json:"how,omitempty"`
}

// newTaskDesk is a server with a worker that runs tasks.
func newTaskDesk(t *testing.T) (tasks func(args ...string) (code int, stdout, stderr string)) {
	t.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	must(t, apcore.Register(registry, "test.job", func(ctx context.Context, in job) (map[string]any, error) {
		switch in.How {
		case "fail":
			return nil, apcore.NewError(apcore.CodeModuleExecuteError, "boom")
		case "wait":
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return map[string]any{"total": 42}, nil
	}, apcore.Spec{Description: "Does a job", Annotations: apcore.Annotations{Idempotent: true}}))
	must(t, apcore.Register(registry, "test.gated", func(context.Context, job) (map[string]any, error) { return nil, nil }, apcore.Spec{Description: "Is gated", Annotations: apcore.Annotations{RequiresApproval: true}}))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{ApprovalHandler: temporal.NewApprovalHandler(), Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	server := testsuite.DevServer(t)
	d := &desk{t: t, server: server, client: server.Client(t, client.Options{}), queue: "cli-" + uuid.NewString()}
	w, err := worker.New(d.client, d.queue, executor, worker.Options{StopTimeout: time.Second})
	must(t, err)
	must(t, w.Start())
	t.Cleanup(w.Stop)
	return func(args ...string) (int, string, string) {
		return d.cli(append([]string{"tasks", "--task-queue", d.queue, "--store", d.queue}, args...)...)
	}
}

func TestTasks(t *testing.T) {
	tasks := newTaskDesk(t)
	code, out, errs := tasks("submit", "test.job", "--wait")
	if code != 0 || !strings.Contains(out, "completed") {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	id, _, _ := strings.Cut(out, " ")
	if code, out, errs := tasks("result", id); code != 0 || strings.Join(strings.Fields(out), "") != `{"total":42}` {
		t.Errorf("result: exit %d\n%s%s", code, out, errs)
	}
	code, out, errs = tasks("submit", "test.job", "--inputs", `{"how":"fail"}`, "--max-retries", "1", "--retry-delay", "1ms", "--wait", "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var last durable.TaskRecord
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); code != 0 || err != nil || last.Task.Status != apcore.TaskFailed || last.Task.RetryCount != 1 {
		t.Errorf("failed: exit %d, %v\n%s%s", code, err, out, errs)
	}
	for _, view := range [][]string{{"list"}, {"list", "--json"}, {"list", "--status", "completed"}, {"get", id}, {"get", id, "--json"}, {"watch", id}} {
		if code, out, errs := tasks(view...); code != 0 || errs != "" || !strings.Contains(out, id) {
			t.Errorf("%v: exit %d\n%s%s", view, code, out, errs)
		}
	}
	if code, out, _ := tasks("list", "--limit", "1"); code != 0 || strings.Contains(out, id) || !strings.Contains(out, last.Task.TaskID) || !strings.Contains(out, "boom") {
		t.Errorf("list --limit 1: exit %d\n%s", code, out)
	}
	var removed struct{ Removed int }
	for deadline := time.Now().Add(time.Minute); removed.Removed == 0 && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		_, out, _ := tasks("cleanup", "--max-age", "0s", "--json")
		must(t, json.Unmarshal([]byte(out), &removed))
	}
	if removed.Removed == 0 {
		t.Error("nothing was removed")
	}
}

func TestTaskCancelAndApproval(t *testing.T) {
	tasks := newTaskDesk(t)
	_, id, _ := tasks("submit", "test.job", "--inputs", `{"how":"wait"}`, "--key", "k")
	_, again, _ := tasks("submit", "test.job", "--inputs", `{"how":"wait"}`, "--key", "k", "--json")
	if id = strings.TrimSpace(id); !strings.Contains(again, id) {
		t.Errorf("one key, two tasks: %s, %s", id, again)
	}
	if code, out, errs := tasks("cancel", id); code != 0 || !strings.Contains(out, "cancelled") {
		t.Errorf("cancel: exit %d\n%s%s", code, out, errs)
	}
	_, gated, _ := tasks("submit", "test.gated")
	gated = strings.TrimSpace(gated)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		_, out, _ := tasks("get", gated)
		if strings.Contains(out, "waits for approval apr-") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not wait for an approval:\n%s", out)
		}
	}
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"cancel", id}, exitLate, "TASK_ENDED"},
		{[]string{"result", id}, exitLate, "status=cancelled"},
		{[]string{"get", "nobody"}, exitUnknown, "nobody"},
		{[]string{"cancel", "nobody"}, exitUnknown, "nobody"},
		{[]string{"watch", "nobody"}, exitUnknown, "nobody"},
		{[]string{"submit", "test.job", "--inputs", "[]"}, exitUsage, "--inputs"},
		{[]string{"submit", "test.job", "--max-retries=-1"}, exitUsage, "MaxRetries"},
		{[]string{"list", "--status", "odd"}, exitUsage, "odd"},
		{[]string{"list", "--store", "a/b"}, exitUsage, "Name"},
	} {
		if code, out, errs := tasks(test.args...); code != test.code || !strings.Contains(errs, test.says) {
			t.Errorf("%v: exit %d, want %d\n%s%s", test.args, code, test.code, out, errs)
		}
	}
	tasks("cancel", gated)
}
