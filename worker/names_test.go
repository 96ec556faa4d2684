package worker_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

// send is a workflow that calls one activity by name.
func send(name string) func(ctx workflow.Context) error {
	return func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		return workflow.ExecuteActivity(ctx, name).Get(ctx, nil)
	}
}

// recordSend runs the workflow on the server and returns its history.
func recordSend(t *testing.T, name string) *historypb.History {
	t.Helper()
	c := testsuite.DevServer(t).Client(t, client.Options{})
	queue := "names-" + uuid.NewString()
	w := sdkworker.New(c, queue, sdkworker.Options{})
	w.RegisterWorkflowWithOptions(send(name), workflow.RegisterOptions{Name: "send"})
	w.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: name})
	must(t, w.Start())
	defer w.Stop()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, "send")
	must(t, err)
	must(t, run.Get(t.Context(), nil))
	return testsuite.History(t, c, queue)
}

func replaySend(t *testing.T, history *historypb.History, name string) error {
	t.Helper()
	replayer := sdkworker.NewWorkflowReplayer()
	replayer.RegisterWorkflowWithOptions(send(name), workflow.RegisterOptions{Name: "send"})
	return replayer.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), history)
}

// Scenario 63: Temporal's replay compares an activity name from its last dot on,
// so dotted names would let another module pass as the recorded one. Names
// without dots are compared whole.
func TestReplayTellsModulesApart(t *testing.T) {
	t.Parallel()
	dotted := recordSend(t, "email.send")
	if err := replaySend(t, dotted, "sms.send"); err != nil {
		t.Errorf("the replayer compares whole names now, so the reason for names without dots is gone: %v", err)
	}
	var names durable.Namer
	ours := recordSend(t, names.Unit(durable.OperationCall, "email.send"))
	if err := replaySend(t, ours, names.Unit(durable.OperationCall, "email.send")); err != nil {
		t.Errorf("the same module: %v", err)
	}
	for _, other := range []string{"sms.send", "email.send_v2", "email.other.send"} {
		if err := replaySend(t, ours, names.Unit(durable.OperationCall, other)); err == nil {
			t.Errorf("a history of email.send replays with %s", other)
		}
	}
}
