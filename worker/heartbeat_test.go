package worker_test

import (
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// Pitfall 26: a module that never says a word outlives its heartbeat timeout
// twice over, for the adapter speaks for it.
func TestSilentModuleOutlivesItsHeartbeat(t *testing.T) {
	t.Parallel()
	s := newSite(t, Call)
	run := s.start(t.Context(), Call, "test.charge", map[string]any{"how": "sleep past the timeout"}, temporal.CallOptions{Heartbeat: time.Second})
	must(t, s.end(run, nil))
	if n := s.events(run.GetID())[enums.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT]; n != 0 || s.ran.Load() != 1 {
		t.Errorf("%d timeouts, %d executions", n, s.ran.Load())
	}
}

// HangingCleanUp waits for an approval and, when it is cancelled, calls a module
// to clean up that never comes to an end.
func HangingCleanUp(ctx workflow.Context) error {
	_, err := temporal.Call[map[string]any](ctx, "test.gated", nil)
	detached, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	detached = temporal.WithCallOptions(detached, temporal.CallOptions{StartToClose: time.Second, Heartbeat: time.Second, Attempts: 1})
	_, cleanUp := temporal.Call[map[string]any](detached, "test.charge", map[string]any{"how": "wait for cancel"})
	if codeOf(cleanUp) != durable.CodeOutcomeUnknown {
		return workflow.NewContinueAsNewError(ctx, HangingCleanUp) // wrong, and seen as such
	}
	return err
}

// Pitfall 29: clean-up in a disconnected context has limits of its own, so that
// one that hangs does not keep a cancelled run open.
func TestHangingCleanUpEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, HangingCleanUp)
	run := s.start(t.Context(), HangingCleanUp)
	s.pending(run.GetID())
	must(t, s.client.CancelWorkflow(t.Context(), run.GetID(), ""))
	_ = s.end(run, nil)
	description, err := s.client.DescribeWorkflow(t.Context(), run.GetID(), "")
	must(t, err)
	if description.Status != enums.WORKFLOW_EXECUTION_STATUS_CANCELED || s.ran.Load() != 1 {
		t.Errorf("status %s after %d executions", description.Status, s.ran.Load())
	}
}
