package worker_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

// Either ends as soon as one of two gated calls is done.
func Either(ctx workflow.Context) error {
	a := temporal.CallAsync[map[string]any](ctx, "test.gated", map[string]any{"how": "a"})
	b := temporal.CallAsync[map[string]any](ctx, "test.gated", map[string]any{"how": "b"})
	selector := workflow.NewSelector(ctx)
	selector.AddFuture(a.Done(), func(workflow.Future) {}).AddFuture(b.Done(), func(workflow.Future) {})
	selector.Select(ctx)
	return nil
}

// Scenario 6: what a run leaves undecided when it ends does not stay pending.
func TestApprovalsOfAnEndedRun(t *testing.T) {
	t.Parallel()
	s := newSite(t, Either)
	run := s.start(t.Context(), Either)
	var list []durable.Approval
	for end := time.Now().Add(time.Minute); len(list) < 2 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		list, _ = s.approvals.List(t.Context(), run.GetID())
	}
	must(t, s.approvals.Decide(t.Context(), run.GetID(), approve(list[0].ApprovalID)))
	must(t, s.end(run, nil))
	list, err := s.approvals.List(t.Context(), run.GetID())
	must(t, err)
	if list[0].Status != durable.ApprovalIsApproved || list[1].Status != durable.ApprovalIsWithdrawn {
		t.Errorf("statuses %q and %q", list[0].Status, list[1].Status)
	}
	if err := s.approvals.Decide(t.Context(), run.GetID(), approve(list[1].ApprovalID)); !errors.Is(err, durable.CodeRunClosed) {
		t.Errorf("a late decision: %v", err)
	}
}

// Scenarios 20, 68 and 69: a run that is asked five hundred times and loses its
// cache in the middle answers the same before and after, and goes on as one that
// nobody asked.
func TestQueriesAndLostCacheChangeNothing(t *testing.T) {
	s := newSite(t, Call) // not parallel: it empties the cache of the process
	quiet, asked := s.start(t.Context(), Call, "test.gated", nil, temporal.CallOptions{}), s.start(t.Context(), Call, "test.gated", nil, temporal.CallOptions{})
	s.pending(quiet.GetID())
	before := s.pending(asked.GetID())
	for i := range 500 {
		switch i % 5 {
		case 0:
			if _, err := s.client.QueryWorkflow(t.Context(), asked.GetID(), "", "apcore/no-such-query"); err == nil {
				t.Fatal("an unknown query has an answer")
			}
		case 1:
			_, _ = s.client.QueryWorkflow(t.Context(), asked.GetID(), "", "apcore/approvals", "an argument too many", 7)
		default:
			list, err := s.approvals.List(t.Context(), asked.GetID())
			must(t, err)
			list[0].Arguments["how"] = "changed by the reader"
		}
		if i == 250 {
			sdkworker.PurgeStickyWorkflowCache()
		}
	}
	if diff := cmp.Diff(before, s.pending(asked.GetID())); diff != "" {
		t.Errorf("the answer changed (-before +after):\n%s", diff)
	}
	for _, run := range []client.WorkflowRun{quiet, asked} {
		must(t, s.approvals.Decide(t.Context(), run.GetID(), approve(s.pending(run.GetID()).ApprovalID)))
		must(t, s.end(run, nil))
		must(t, testsuite.Replay(s.executor, testsuite.History(t, s.client, run.GetID()), Call))
	}
	if diff := cmp.Diff(commands(s.events(quiet.GetID())), commands(s.events(asked.GetID()))); diff != "" || s.ran.Load() != 2 {
		t.Errorf("%d effects; events (-quiet +asked):\n%s", s.ran.Load(), diff)
	}
}

// commands drops what depends on timing only.
func commands(events map[enums.EventType]int) map[enums.EventType]int {
	for _, kind := range []enums.EventType{
		enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, enums.EVENT_TYPE_WORKFLOW_TASK_STARTED, enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
		enums.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
	} {
		delete(events, kind)
	}
	return events
}

// Keyed makes a gated call whose module notes its idempotency key.
func Keyed(ctx workflow.Context) (map[string]any, error) {
	return temporal.Call[map[string]any](ctx, "test.keyed", map[string]any{"amount": 1})
}

// Scenario 17: after a reset to before the request, a decision that the server
// applies again counts, for it is about the same approval of the same arguments;
// without it the same approval is pending again. Both times the module sees the
// key of the first run.
func TestReset(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		exclude []enums.ResetReapplyExcludeType
		pending bool
	}{
		{name: "decision applied again"},
		{name: "decision left out", exclude: []enums.ResetReapplyExcludeType{enums.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL}, pending: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, Keyed)
			run := s.start(t.Context(), Keyed)
			first := s.pending(run.GetID())
			must(t, s.approvals.Send(t.Context(), run.GetID(), approve(first.ApprovalID)))
			var before, after map[string]any
			must(t, s.end(run, &before))
			reset, err := s.client.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
				Namespace:         testsuite.DevServer(t).Namespace(),
				WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.GetID(), RunId: run.GetRunID()}, Reason: "test", RequestId: run.GetRunID(),
				WorkflowTaskFinishEventId: 4, ResetReapplyExcludeTypes: test.exclude,
			})
			must(t, err)
			if test.pending {
				again := s.pending(run.GetID())
				if again.ApprovalID != first.ApprovalID || !again.RequestedAt.Equal(first.RequestedAt) && again.ArgumentsDigest != first.ArgumentsDigest {
					t.Errorf("after the reset %+v, before %+v", again, first)
				}
				must(t, s.approvals.Decide(t.Context(), run.GetID(), approve(again.ApprovalID)))
			}
			must(t, s.end(s.client.GetWorkflow(t.Context(), run.GetID(), reset.GetRunId()), &after))
			if before["key"] == "" || before["key"] != after["key"] || s.ran.Load() != 2 {
				t.Errorf("keys %v and %v, %d runs of the module", before["key"], after["key"], s.ran.Load())
			}
		})
	}
}

// Scenario 35: the first decision is final, also while no worker looks; taking
// an approval back is cancelling the call, before the module starts and while it
// runs.
func TestTakingAnApprovalBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, Call)
	run := s.start(t.Context(), Call, "test.gated", map[string]any{"how": "wait for cancel"}, temporal.CallOptions{Heartbeat: time.Second})
	id := s.pending(run.GetID()).ApprovalID
	must(t, s.approvals.Send(t.Context(), run.GetID(), approve(id)))
	back := approve(id)
	back.Status, back.ApprovedBy = apcore.ApprovalRejected, "ben"
	must(t, s.approvals.Send(t.Context(), run.GetID(), back))
	for end := time.Now().Add(time.Minute); s.ran.Load() == 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
	}
	list, err := s.approvals.List(t.Context(), run.GetID())
	must(t, err)
	if list[0].Status != durable.ApprovalIsApproved || len(list[0].Ignored) != 1 || list[0].Ignored[0].Code != string(durable.CodeDecisionDuplicate) {
		t.Errorf("record %+v", list[0])
	}
	must(t, s.client.CancelWorkflow(t.Context(), run.GetID(), ""))
	select {
	case cause := <-s.cancelled:
		if cause == nil {
			t.Error("the module's context ended without a cause")
		}
	case <-time.After(time.Minute):
		t.Fatal("the cancellation did not reach the module")
	}
	if err := s.end(run, nil); err == nil {
		t.Error("a cancelled run ended well")
	}
}

// Lanes makes many calls side by side and goes over to a successor when it is
// time.
func Lanes(ctx workflow.Context, from, total int) (int, error) {
	const lanes = 25
	for from < total {
		var calls []*temporal.Future[map[string]any]
		for i := from; i < min(from+lanes, total); i++ {
			calls = append(calls, temporal.CallAsync[map[string]any](ctx, "test.read", want{}))
		}
		for _, call := range calls {
			if _, err := call.Get(ctx); err != nil {
				return from, err
			}
			from++
		}
		if temporal.ShouldContinueAsNew(ctx) {
			return from, temporal.ContinueAsNew(ctx, Lanes, from, total)
		}
	}
	return from, nil
}

// Scenario 19: a long loop never comes near the server's limit of 51,200 events.
func TestLongLoop(t *testing.T) {
	t.Parallel()
	total := 5000
	if testing.Short() || underRace {
		total = 500
	}
	s := newSite(t, Lanes)
	run := s.start(t.Context(), Lanes, 0, total)
	var done int
	must(t, s.end(run, &done))
	if done != total || s.ran.Load() != int64(total) {
		t.Errorf("%d calls done, %d ran", done, s.ran.Load())
	}
	events := 0
	for _, count := range s.events(run.GetID()) {
		events += count
	}
	if events > 11_000 {
		t.Errorf("the last run has %d events", events)
	}
}
