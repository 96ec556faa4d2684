package worker_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// ticket is an application's handler with ids of its own.
type ticket struct{}

func (ticket) RequestApproval(context.Context, *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
	return &apcore.ApprovalResult{Status: apcore.ApprovalPending, ApprovalID: "ticket-7"}, nil
}

func (ticket) CheckApproval(_ context.Context, id string) (*apcore.ApprovalResult, error) {
	return &apcore.ApprovalResult{Status: apcore.ApprovalApproved, ApprovalID: id, ApprovedBy: "desk"}, nil
}

// LaterCall makes its gated call only in its second run.
func LaterCall(ctx workflow.Context, run int) (map[string]any, error) {
	if run == 1 {
		if err := workflow.Sleep(ctx, time.Second); err != nil { // the decision arrives meanwhile
			return nil, err
		}
		return nil, workflow.NewContinueAsNewError(ctx, LaterCall, 2)
	}
	return temporal.Call[map[string]any](ctx, "test.gated", nil)
}

// Target 12: a decision that comes before its request goes along when the run
// continues as new, and so do identity and trace.
func TestEarlyDecisionSurvivesContinueAsNew(t *testing.T) {
	t.Parallel()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	must(t, apcore.Register(registry, "test.gated", func(ctx context.Context, _ map[string]any) (map[string]any, error) {
		c, _ := apcore.FromContext(ctx)
		return map[string]any{"who": c.Identity().ID()}, nil
	}, apcore.Spec{Description: "Is gated", Annotations: apcore.Annotations{RequiresApproval: true}}))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{ApprovalHandler: ticket{}, Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	s := newSite(t)
	queue := "carry-" + uuid.NewString()
	w, err := worker.New(testsuite.DevServer(t).Client(t, client.Options{}), queue, executor, worker.Options{StopTimeout: time.Second})
	must(t, err)
	w.Registry().RegisterWorkflow(LaterCall)
	must(t, w.Start())
	t.Cleanup(w.Stop)
	caller := apcore.NewContext(apcore.ContextOptions{Identity: apcore.NewIdentity("maria", "", nil, nil)})
	run, err := s.client.ExecuteWorkflow(temporal.WithContext(t.Context(), caller), client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, LaterCall, 1)
	must(t, err)
	must(t, s.approvals.Send(t.Context(), queue, approve("ticket-7")))
	var out map[string]any
	must(t, s.end(run, &out))
	if out["who"] != "maria" {
		t.Errorf("output %v", out)
	}
}
