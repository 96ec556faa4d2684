package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// Target 13 with nobody at work: what counts is what came first, the decision or
// the deadline, not when a worker looks.
func TestDeadlineWhileNoWorkerRuns(t *testing.T) {
	for _, test := range []struct {
		name          string
		decisionFirst bool
		want          apcore.Code
		ran           int64
	}{
		{"decision first", true, "", 1},
		{"deadline first", false, apcore.CodeApprovalTimeout, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := &site{t: t, queue: "deadline-" + uuid.NewString(), client: testsuite.DevServer(t).Client(t, client.Options{})}
			var err error
			s.approvals, err = temporal.NewApprovals(s.client, temporal.ApprovalsOptions{Timeout: time.Minute})
			must(t, err)
			var ran atomic.Int64
			first := gatedWorker(t, s, &ran)
			run := s.start(t.Context(), Call, "test.gated", nil, temporal.CallOptions{ApprovalTimeout: 10 * time.Second})
			approval := s.pending(run.GetID())
			first.Stop()
			decide := func() { must(t, s.approvals.Send(t.Context(), run.GetID(), approve(approval.ApprovalID))) }
			if test.decisionFirst {
				decide()
			}
			s.awaitEvent(run.GetID(), enums.EVENT_TYPE_TIMER_FIRED)
			if !test.decisionFirst {
				decide()
			}
			t.Cleanup(gatedWorker(t, s, &ran).Stop)
			e := temporal.AsError(s.end(run, nil))
			if got := apcore.CodeOf(errorOrNil(e)); got != test.want || ran.Load() != test.ran {
				t.Errorf("ended with %v after %d executions; want %q after %d", e, ran.Load(), test.want, test.ran)
			}
		})
	}
}

func errorOrNil(e *apcore.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// gatedWorker starts a worker with one gated module that counts.
func gatedWorker(t *testing.T, s *site, ran *atomic.Int64) *worker.Worker {
	t.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	must(t, apcore.Register(registry, "test.gated", func(context.Context, map[string]any) (map[string]any, error) {
		ran.Add(1)
		return map[string]any{}, nil
	}, apcore.Spec{Description: "Is gated", Annotations: apcore.Annotations{RequiresApproval: true}}))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{ApprovalHandler: temporal.NewApprovalHandler(), Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	w, err := worker.New(s.client, s.queue, executor, worker.Options{StopTimeout: time.Second, SDK: sdkworker.Options{StickyScheduleToStartTimeout: time.Second}})
	must(t, err)
	w.Registry().RegisterWorkflow(Call)
	must(t, w.Start())
	return w
}

// awaitEvent waits until a workflow's history holds an event.
func (s *site) awaitEvent(id string, kind enums.EventType) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if s.events(id)[kind] > 0 {
			return
		}
	}
	s.t.Fatal(errors.New("the event never came: " + kind.String()))
}
