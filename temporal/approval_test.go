package temporal_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	sdktestsuite "go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

// The test environment gives every workflow these ids.
const testRun = "default-test-workflow-id/default-test-run-id"

func firstID() string { return durable.ApprovalID(testRun+"/1", 0) }

func approvals(t testing.TB, env *sdktestsuite.TestWorkflowEnvironment) []durable.Approval {
	t.Helper()
	value, err := env.QueryWorkflow("apcore/approvals")
	must(t, err)
	var list []durable.Approval
	must(t, value.Get(&list))
	return list
}

func signal(env *sdktestsuite.TestWorkflowEnvironment, d durable.Decision, after time.Duration) {
	env.RegisterDelayedCallback(func() { env.SignalWorkflow("apcore/approval", d) }, after)
}

func TestApprove(t *testing.T) {
	book := &ledger{}
	env := testsuite.NewEnvironment(t, newExecutor(t, book, apcore.ExecutorOptions{}))
	env.RegisterDelayedCallback(func() {
		list := approvals(t, env)
		if len(list) != 1 || list[0].Status != durable.ApprovalIsPending || list[0].ApprovalID != firstID() {
			t.Fatalf("approvals %+v", list)
		}
		if list[0].Arguments["card"] == "4242" || list[0].Module.ID != "pay.transfer" {
			t.Errorf("the approver sees %v", list[0].Arguments)
		}
		env.SignalWorkflow("apcore/approval", decision(firstID(), apcore.ApprovalApproved))
	}, time.Minute)
	env.ExecuteWorkflow(transferFlow, transfer{To: "A", Amount: 100, Card: "4242"})
	must(t, env.GetWorkflowError())
	if got := book.all(); !slices.Equal(got, []string{"transfer A 100"}) {
		t.Errorf("ledger %q", got)
	}
	list := approvals(t, env)
	if list[0].Status != durable.ApprovalIsApproved || list[0].Decision.ApprovedBy != "ana" {
		t.Errorf("record %+v", list[0])
	}
}

// Scenario 1: a decision that arrives before anybody waits counts, whether it
// comes before the first workflow task or while another activity runs.
func TestEarlyDecision(t *testing.T) {
	for name, after := range map[string]time.Duration{"before the first task": 0, "while it looks up": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			book := &ledger{}
			env := testsuite.NewEnvironment(t, newExecutor(t, book, apcore.ExecutorOptions{}))
			signal(env, decision(durable.ApprovalID(testRun+"/2", 0), apcore.ApprovalApproved), after)
			env.ExecuteWorkflow(func(ctx workflow.Context) error {
				if _, err := temporal.Call[echo](ctx, "shop.lookup", echo{Value: 1}); err != nil {
					return err
				}
				must(t, workflow.Sleep(ctx, time.Second))
				_, err := temporal.Call[map[string]any](ctx, "pay.transfer", transfer{To: "A", Amount: 100})
				return err
			})
			must(t, env.GetWorkflowError())
			if got := book.all(); !slices.Equal(got, []string{"lookup", "transfer A 100"}) {
				t.Errorf("ledger %q", got)
			}
			if list := approvals(t, env); len(list) != 1 || list[0].Status != durable.ApprovalIsApproved {
				t.Errorf("approvals %+v", list)
			}
		})
	}
}

// Scenario 3: the first decision wins in either order; later ones are noted.
func TestDuplicateDecisions(t *testing.T) {
	for _, test := range []struct {
		first, second apcore.ApprovalStatus
		want          apcore.Code
		effects       int
	}{
		{apcore.ApprovalApproved, apcore.ApprovalRejected, "", 1},
		{apcore.ApprovalRejected, apcore.ApprovalApproved, apcore.CodeApprovalDenied, 0},
	} {
		t.Run(string(test.first)+" first", func(t *testing.T) {
			book := &ledger{}
			env := testsuite.NewEnvironment(t, newExecutor(t, book, apcore.ExecutorOptions{}))
			env.RegisterDelayedCallback(func() {
				for _, status := range []apcore.ApprovalStatus{test.first, test.first, test.second} {
					env.SignalWorkflow("apcore/approval", decision(firstID(), status))
				}
			}, time.Minute)
			env.ExecuteWorkflow(func(ctx workflow.Context) error {
				_, err := temporal.Call[map[string]any](ctx, "pay.transfer", transfer{To: "A", Amount: 1})
				must(t, workflow.Sleep(ctx, time.Hour)) // still there when the late ones come
				return err
			})
			if got := temporal.AsError(env.GetWorkflowError()); (got == nil) != (test.want == "") || got != nil && got.Code != test.want {
				t.Errorf("error %v, want %q", got, test.want)
			}
			if book.count() != test.effects {
				t.Errorf("%d effects, want %d", book.count(), test.effects)
			}
			ignored := approvals(t, env)[0].Ignored
			if len(ignored) != 2 || ignored[1].Code != string(durable.CodeDecisionDuplicate) || ignored[1].Reason == "" {
				t.Errorf("ignored %+v", ignored)
			}
		})
	}
}

// A rejection is a typed denial with the approver's reason.
func TestReject(t *testing.T) {
	book := &ledger{}
	env := testsuite.NewEnvironment(t, newExecutor(t, book, apcore.ExecutorOptions{}))
	signal(env, decision(firstID(), apcore.ApprovalRejected), time.Second)
	env.ExecuteWorkflow(transferFlow, transfer{To: "A"})
	e := temporal.AsError(env.GetWorkflowError())
	if e == nil || e.Code != apcore.CodeApprovalDenied || e.Details["reason"] != "because" || e.Details["approved_by"] != "ana" {
		t.Errorf("error %v, details %v", e, e.Details)
	}
	if book.count() != 0 {
		t.Error("a rejected call ran")
	}
}

// Scenario 8: cancelling ends the wait with a cancellation, with and without a
// deadline, in no time; clean-up in a disconnected context still works.
func TestCancelWhileWaiting(t *testing.T) {
	for _, timeout := range []time.Duration{durable.NoDeadline, 48 * time.Hour} {
		t.Run(timeout.String(), func(t *testing.T) {
			book := &ledger{}
			env := testsuite.NewEnvironment(t, newExecutor(t, book, apcore.ExecutorOptions{}))
			env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
			var waited time.Duration
			var code apcore.Code
			env.ExecuteWorkflow(func(ctx workflow.Context) error {
				begin := workflow.Now(ctx)
				ctx = temporal.WithCallOptions(ctx, temporal.CallOptions{ApprovalTimeout: timeout})
				_, err := temporal.Call[map[string]any](ctx, "pay.transfer", transfer{To: "A"})
				code, waited = apcore.CodeOf(err), workflow.Now(ctx).Sub(begin)
				detached, _ := workflow.NewDisconnectedContext(ctx)
				if _, err := temporal.Call[echo](detached, "shop.lookup", echo{}); err != nil {
					t.Errorf("clean-up: %v", err)
				}
				return err
			})
			if code != apcore.CodeExecutionCancelled || waited != time.Minute {
				t.Errorf("code %q after %v, want %q after 1m", code, waited, apcore.CodeExecutionCancelled)
			}
			if got := temporal.AsError(env.GetWorkflowError()).Code; got != apcore.CodeExecutionCancelled {
				t.Errorf("the workflow ended with %q", got)
			}
			if got := book.all(); !slices.Equal(got, []string{"lookup"}) {
				t.Errorf("ledger %q", got)
			}
			if got := approvals(t, env)[0].Status; got != durable.ApprovalIsCancelled {
				t.Errorf("status %q", got)
			}
		})
	}
}

// Scenario 9: twenty gates in a row leave no timer behind.
func TestTimersAreCleanedUp(t *testing.T) {
	book := &ledger{}
	env := testsuite.NewEnvironment(t, newExecutor(t, book, apcore.ExecutorOptions{}))
	started, cancelled, fired := 0, 0, 0
	env.SetOnTimerScheduledListener(func(_ string, d time.Duration) {
		if d > time.Hour && d < 25*time.Hour {
			started++
		}
	})
	env.SetOnTimerCanceledListener(func(string) { cancelled++ })
	env.SetOnTimerFiredListener(func(string) { fired++ })
	const gates = 20
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		for n := 1; n <= gates; n++ {
			signal(env, decision(durable.ApprovalID(fmt.Sprintf("%s/%d", testRun, n), 0), apcore.ApprovalApproved), time.Second)
			if _, err := temporal.Call[map[string]any](ctx, "pay.transfer", transfer{To: "A"}); err != nil {
				return err
			}
		}
		return workflow.Sleep(ctx, 25*time.Hour)
	})
	must(t, env.GetWorkflowError())
	if started != gates || cancelled != gates || fired != 1 {
		t.Errorf("%d timers started, %d cancelled, %d fired; want %d, %d and the sleep", started, cancelled, fired, gates, gates)
	}
	if book.count() != gates {
		t.Errorf("%d effects", book.count())
	}
}

// Scenario 10, targets 13 and 14: silence is never consent; a decision counts up
// to the deadline, exclusive, measured in the run's time; a wait of thirty days
// costs nothing.
func TestDeadline(t *testing.T) {
	const month = 30 * 24 * time.Hour
	for _, test := range []struct {
		name    string
		timeout time.Duration
		answer  time.Duration // zero: nobody answers
		want    apcore.Code
	}{
		{"nobody answers, by default", 0, 0, apcore.CodeApprovalTimeout},
		{"nobody answers", time.Minute, 0, apcore.CodeApprovalTimeout},
		{"one nanosecond before", time.Minute, time.Minute - 1, ""},
		{"at the deadline", time.Minute, time.Minute, apcore.CodeApprovalTimeout},
		{"one nanosecond after", time.Minute, time.Minute + 1, apcore.CodeApprovalTimeout},
		{"thirty days", month + time.Hour, month, ""},
		{"no deadline", durable.NoDeadline, month, ""},
		{"negative", -2, 0, apcore.CodeInvalidInput},
	} {
		t.Run(test.name, func(t *testing.T) {
			book := &ledger{}
			env := testsuite.NewEnvironment(t, newExecutor(t, book, apcore.ExecutorOptions{}))
			env.SetStartTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			env.SetTestTimeout(time.Minute)
			if test.answer > 0 {
				signal(env, decision(firstID(), apcore.ApprovalApproved), test.answer)
			}
			env.ExecuteWorkflow(func(ctx workflow.Context) error {
				ctx = temporal.WithCallOptions(ctx, temporal.CallOptions{ApprovalTimeout: test.timeout})
				_, err := temporal.Call[map[string]any](ctx, "pay.transfer", transfer{To: "A"})
				return err
			})
			got := apcore.Code("")
			if e := temporal.AsError(env.GetWorkflowError()); e != nil {
				got = e.Code
			}
			if got != test.want {
				t.Errorf("code %q, want %q", got, test.want)
			}
			if want := map[bool]int{true: 1}[test.want == ""]; book.count() != want {
				t.Errorf("%d effects, want %d", book.count(), want)
			}
			if test.want == apcore.CodeApprovalTimeout {
				if a := approvals(t, env)[0]; a.Status != durable.ApprovalIsTimeout || a.Decision != nil {
					t.Errorf("record: %q decided by %v", a.Status, a.Decision)
				}
			}
		})
	}
}

// Target 19: ten approvals side by side, decided in another order, run each once.
func TestParallelApprovals(t *testing.T) {
	book := &ledger{}
	env := testsuite.NewEnvironment(t, newExecutor(t, book, apcore.ExecutorOptions{}))
	const calls = 10
	for i := range calls {
		n := (i*7)%calls + 1
		signal(env, decision(durable.ApprovalID(fmt.Sprintf("%s/%d", testRun, n), 0), apcore.ApprovalApproved), time.Duration(i+1)*time.Second)
	}
	env.ExecuteWorkflow(func(ctx workflow.Context) (int64, error) {
		futures := make([]*temporal.Future[transfer], 0, calls)
		for n := range calls {
			futures = append(futures, temporal.CallAsync[transfer](ctx, "pay.transfer", transfer{To: "A", Amount: int64(n)}))
		}
		sum := int64(0)
		for _, future := range futures {
			out, err := future.Get(ctx)
			if err != nil {
				return 0, err
			}
			sum += out.Amount
		}
		return sum, nil
	})
	must(t, env.GetWorkflowError())
	var sum int64
	must(t, env.GetWorkflowResult(&sum))
	if sum != 45 || book.count() != calls {
		t.Errorf("sum %d, %d effects", sum, book.count())
	}
}

// Target 11: an update answers the sender with a code; a refused one leaves the
// request as it was.
func TestUpdate(t *testing.T) {
	book := &ledger{}
	env := testsuite.NewEnvironment(t, newExecutor(t, book, apcore.ExecutorOptions{}))
	refused := map[string]apcore.Code{}
	update := func(name string, d durable.Decision) {
		env.UpdateWorkflow("apcore/approval", name, &sdktestsuite.TestUpdateCallback{
			OnReject:   func(err error) { refused[name] = temporal.AsError(err).Code },
			OnAccept:   func() {},
			OnComplete: func(any, error) {},
		}, d)
	}
	env.RegisterDelayedCallback(func() {
		update("unknown", decision("apr-other", apcore.ApprovalApproved))
		update("invalid", decision(firstID(), "yes"))
		update("nobody", durable.Decision{ApprovalID: firstID(), Status: apcore.ApprovalApproved})
		if got := approvals(t, env)[0]; got.Status != durable.ApprovalIsPending || len(got.Ignored) != 0 {
			t.Errorf("after refusals: %+v", got)
		}
		update("good", decision(firstID(), apcore.ApprovalApproved))
		update("again", decision(firstID(), apcore.ApprovalRejected))
	}, time.Minute)
	env.ExecuteWorkflow(transferFlow, transfer{To: "A", Amount: 1})
	must(t, env.GetWorkflowError())
	want := map[string]apcore.Code{
		"unknown": durable.CodeDecisionUnknown, "invalid": durable.CodeDecisionInvalid,
		"nobody": durable.CodeDecisionInvalid, "again": durable.CodeDecisionDuplicate,
	}
	for name, code := range want {
		if refused[name] != code {
			t.Errorf("update %q refused with %q, want %q", name, refused[name], code)
		}
	}
	if _, bad := refused["good"]; bad || book.count() != 1 {
		t.Errorf("good update refused with %q; %d effects", refused["good"], book.count())
	}
}

// A signal that is no decision, or an odd one, disturbs nothing.
func TestMalformedSignals(t *testing.T) {
	book := &ledger{}
	env := testsuite.NewEnvironment(t, newExecutor(t, book, apcore.ExecutorOptions{}))
	env.RegisterDelayedCallback(func() {
		for _, payload := range []any{nil, 7, "approve", []string{"x"}, map[string]any{"approval_id": 7}, []byte{1, 2}, map[string]any{"approval_id": firstID(), "status": true}} {
			env.SignalWorkflow("apcore/approval", payload)
		}
		env.SignalWorkflow("apcore/approval", decision(firstID(), apcore.ApprovalApproved))
	}, time.Minute)
	env.ExecuteWorkflow(transferFlow, transfer{To: "A", Amount: 1})
	must(t, env.GetWorkflowError())
	if book.count() != 1 {
		t.Errorf("%d effects", book.count())
	}
}
