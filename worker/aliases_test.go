package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// billing is an executor with one gated module that counts its executions.
func billing(t testing.TB, id string, ran *atomic.Int64) *apcore.Executor {
	t.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	must(t, apcore.Register(registry, id, func(context.Context, map[string]any) (map[string]any, error) {
		ran.Add(1)
		return map[string]any{"ran": id}, nil
	}, apcore.Spec{Description: "Charges", Annotations: apcore.Annotations{RequiresApproval: true}}))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{ApprovalHandler: temporal.NewApprovalHandler(), Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	return executor
}

// ChargeTwice calls the module by the id it had when this was written.
func ChargeTwice(ctx workflow.Context) (map[string]any, error) {
	if _, err := temporal.Call[map[string]any](ctx, "billing.charge", nil); err != nil {
		return nil, err
	}
	return temporal.Call[map[string]any](ctx, "billing.charge", nil)
}

// Scenario 64, target 3, pitfall 35: a run that waits for an approval under the
// old name goes on at a worker that knows the module by its new one, approval
// included; its history replays; and without the alias the check before the
// deploy says which is missing.
func TestRenamedModule(t *testing.T) {
	t.Parallel()
	s := &site{t: t, queue: "alias-" + uuid.NewString(), client: testsuite.DevServer(t).Client(t, client.Options{})}
	var err error
	s.approvals, err = temporal.NewApprovals(s.client, temporal.ApprovalsOptions{Timeout: time.Minute})
	must(t, err)
	serve := func(id string, aliases durable.Aliases, check bool) (*apcore.Executor, *worker.Worker, error) {
		executor := billing(t, id, &s.ran)
		w, err := worker.New(s.client, s.queue, executor, worker.Options{
			PluginOptions: worker.PluginOptions{Invoker: durable.InvokerOptions{Aliases: aliases, SealKey: []byte("key")}},
			StopTimeout:   time.Second, CheckNames: check,
			SDK: sdkworker.Options{StickyScheduleToStartTimeout: time.Second},
		})
		must(t, err)
		w.Registry().RegisterWorkflow(ChargeTwice)
		err = w.Start()
		return executor, w, err
	}
	_, old, err := serve("billing.charge", nil, false)
	must(t, err)
	run := s.start(t.Context(), ChargeTwice)
	first := s.pending(run.GetID())
	old.Stop()

	// The deploy without the alias: refused, and it says what is missing.
	refused := func() error {
		_, _, err := serve("payments.charge", nil, true)
		return err
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) { // visibility lags
		if err = refused(); err != nil || time.Now().After(deadline) {
			break
		}
	}
	if !errors.Is(err, apcore.CodeConfigInvalid) || !strings.Contains(err.Error(), "billing.charge") || !strings.Contains(err.Error(), run.GetID()) {
		t.Fatalf("a deploy that strands a run: %v", err)
	}

	aliases := durable.Aliases{"billing.charge": "payments.charge"}
	renamed, w, err := serve("payments.charge", aliases, true)
	must(t, err)
	t.Cleanup(w.Stop)
	must(t, s.approvals.Decide(t.Context(), run.GetID(), approve(first.ApprovalID)))
	second := s.other(run.GetID(), first.ApprovalID)
	if second.Module.ID != "billing.charge" {
		t.Errorf("the approval under the old name is bound to %q", second.Module.ID)
	}
	must(t, s.approvals.Decide(t.Context(), run.GetID(), approve(second.ApprovalID)))
	var out map[string]any
	must(t, s.end(run, &out))
	if out["ran"] != "payments.charge" || s.ran.Load() != 2 {
		t.Errorf("output %v after %d executions", out, s.ran.Load())
	}
	history := testsuite.History(t, s.client, run.GetID())
	if err := testsuite.Replay(renamed, history, ChargeTwice); err != nil {
		t.Errorf("the history of before and after: %v", err)
	}
}

// other waits for a pending approval with another id.
func (s *site) other(id, known string) durable.Approval {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		list, err := s.approvals.List(s.t.Context(), id)
		if err != nil {
			continue
		}
		for _, approval := range list {
			if approval.ApprovalID != known && approval.Status == durable.ApprovalIsPending {
				return approval
			}
		}
	}
	s.t.Fatalf("no further approval in workflow %s: %v", id, testsuite.History(s.t, s.client, id))
	return durable.Approval{}
}
