package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// desk is a server with a worker whose one module is gated.
type desk struct {
	t      *testing.T
	server *testsuite.Server
	client client.Client
	queue  string
}

type secretInput struct {
	Card string `json:"card" apcore:"sensitive"`
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	must(t, apcore.Register(registry, "test.gated", func(context.Context, secretInput) (map[string]any, error) {
		return map[string]any{"ok": true}, nil
	}, apcore.Spec{Description: "Is gated", Annotations: apcore.Annotations{RequiresApproval: true}}))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{ApprovalHandler: temporal.NewApprovalHandler(), Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	server := testsuite.DevServer(t)
	d := &desk{t: t, server: server, client: server.Client(t, client.Options{}), queue: "cli-" + uuid.NewString()}
	w, err := worker.New(d.client, d.queue, executor, worker.Options{StopTimeout: time.Second})
	must(t, err)
	w.Registry().RegisterWorkflow(gated)
	must(t, w.Start())
	t.Cleanup(w.Stop)
	return d
}

func gated(ctx workflow.Context) error {
	_, err := temporal.Call[map[string]any](ctx, "test.gated", secretInput{Card: "4242424242424242"})
	return err
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (d *desk) start() client.WorkflowRun {
	d.t.Helper()
	started, err := d.client.ExecuteWorkflow(d.t.Context(), client.StartWorkflowOptions{ID: d.queue + uuid.NewString(), TaskQueue: d.queue}, gated)
	must(d.t, err)
	return started
}

// cli runs the command line in this process.
func (d *desk) cli(args ...string) (code int, stdout, stderr string) {
	d.t.Helper()
	var out, errs bytes.Buffer
	code = run(d.t.Context(), append([]string{"--address", d.server.Address(), "--namespace", d.server.Namespace()}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

// pending asks the command line itself until the approval is there.
func (d *desk) pending(workflowID string) string {
	d.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		_, out, _ := d.cli("approvals", "list", workflowID, "--json")
		var list []durable.Approval
		if json.Unmarshal([]byte(out), &list) == nil && len(list) == 1 {
			return list[0].ApprovalID
		}
	}
	d.t.Fatal("no approval came up")
	return ""
}

func TestApprove(t *testing.T) {
	d := newDesk(t)
	started := d.start()
	id := d.pending(started.GetID())
	for _, view := range [][]string{{"approvals", "list", started.GetID()}, {"approvals", "show", started.GetID(), id}, {"approvals", "show", started.GetID(), id, "--json"}} {
		code, out, errs := d.cli(view...)
		if code != 0 || errs != "" || !strings.Contains(out, id) || !strings.Contains(out, "test.gated") || strings.Contains(out, "4242424242424242") {
			t.Errorf("%v: exit %d\n%s%s", view, code, out, errs)
		}
	}
	code, out, errs := d.cli("approvals", "approve", started.GetID(), id, "--by", "ana")
	if code != 0 || !strings.Contains(out, id+" approved by ana") {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	must(t, started.Get(t.Context(), nil))
	if code, _, errs := d.cli("approvals", "approve", started.GetID(), id, "--by", "ana"); code != exitLate || !strings.Contains(errs, "RUN_CLOSED") {
		t.Errorf("a closed run: exit %d, %s", code, errs)
	}
}

func TestReject(t *testing.T) {
	d := newDesk(t)
	started := d.start()
	id := d.pending(started.GetID())
	code, out, errs := d.cli("approvals", "reject", started.GetID(), id, "--by", "ana", "--reason", "no receipt", "--no-wait")
	if code != 0 || !strings.Contains(out, "sent as rejected") {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	if e := temporal.AsError(started.Get(t.Context(), nil)); e == nil || !errors.Is(e, apcore.CodeApprovalDenied) || e.Details["reason"] != "no receipt" {
		t.Errorf("ended with %v", e)
	}
}

// Every refusal has its exit code and says what is wrong.
func TestExitCodes(t *testing.T) {
	d := newDesk(t)
	started := d.start()
	id := d.pending(started.GetID())
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"approvals", "approve", "run-of-nobody", id, "--by", "ana"}, exitUnknown, "RUN_NOT_FOUND"},
		{[]string{"approvals", "approve", started.GetID(), "apr-of-nobody", "--by", "ana"}, exitUnknown, "DECISION_UNKNOWN_APPROVAL"},
		{[]string{"approvals", "show", started.GetID(), "apr-of-nobody"}, exitUnknown, "DECISION_UNKNOWN_APPROVAL"},
		{[]string{"approvals", "approve", started.GetID(), id}, exitUsage, "--by"},
		{[]string{"approvals", "approve", started.GetID(), id, "--by", " "}, exitUsage, "approved_by"},
		{[]string{"approvals", "show"}, exitUsage, "workflow-id"},
		{[]string{"approvals", "approve", started.GetID(), id, "--by", "ana", "--set", "card=4242 4242"}, exitUsage, "--set card"},
		{[]string{"approvals", "approve", started.GetID(), id, "--by", "ana", "--verdict", "retry"}, exitUsage, "DECISION_INVALID"},
		{[]string{"approvals", "approve", started.GetID(), id, "--by", "ana", "--output", "{"}, exitUsage, "--output"},
		{[]string{"approvals", "watch", "--interval", "1ms"}, exitUsage, "--interval"},
		{[]string{"no-such-command"}, exitUsage, "no-such-command"},
	} {
		if code, out, errs := d.cli(test.args...); code != test.code || !strings.Contains(errs, test.says) {
			t.Errorf("%v: exit %d, want %d\n%s%s", test.args, code, test.code, out, errs)
		}
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"--address", "127.0.0.1:1", "approvals", "list", "x"}, &out, &errs); code != exitFailed || !strings.Contains(errs.String(), "TEMPORAL_ADDRESS") {
		t.Errorf("no server: exit %d, %s", code, errs.String())
	}
	if code, help, _ := d.cli("--help"); code != 0 || !strings.Contains(help, "approvals") {
		t.Errorf("help: exit %d, %s", code, help)
	}
}
