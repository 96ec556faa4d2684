package worker_test

import (
	"context"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// quickly makes the grace short, for tests; it stays as many units.
var quickly = &sdktemporal.RetryPolicy{InitialInterval: 20 * time.Millisecond, BackoffCoefficient: 1}

// Scenario 67 (a) on the server: a module that nobody knows has a bounded grace,
// then the call fails; no workflow task does, and neither hangs (pitfall 35).
func TestUnknownModuleOnTheServer(t *testing.T) {
	t.Parallel()
	s := newQueue(t)
	s.work(executorOf(t, apcore.ExecutorOptions{}), worker.Options{}, OneCall)
	run := s.start(t.Context(), OneCall, "no.such", nil, temporal.CallOptions{RetryPolicy: quickly})
	if err := s.end(run, nil); codeOf(err) != apcore.CodeModuleNotFound {
		t.Errorf("ended with %v", err)
	}
	s.noTaskFailed(run.GetID())
	if got := s.events(run.GetID()); got[enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED] != durable.DefaultAttempts || got[enumspb.EVENT_TYPE_TIMER_STARTED] != durable.DefaultAttempts-1 {
		t.Errorf("events %v", got)
	}
}

// Pitfall 35: a queue that no worker hosts does not hang a call: the wait for a
// worker is bounded, and the error says that nothing ran.
func TestNobodyHostsTheQueue(t *testing.T) {
	t.Parallel()
	s := newQueue(t)
	s.work(executorOf(t, apcore.ExecutorOptions{}, module{id: "test.charge", run: actor(&ledger{})}), worker.Options{}, OneCall)
	run := s.start(t.Context(), OneCall, "test.charge", nil, temporal.CallOptions{TaskQueue: s.queue + "-of-nobody", ScheduleToStart: 200 * time.Millisecond})
	err := s.end(run, nil)
	if e := temporal.AsError(err); e == nil || e.Code != apcore.CodeModuleTimeout || e.ModuleID() != "test.charge" {
		t.Errorf("ended with %v", err)
	}
	s.noTaskFailed(run.GetID())
}

// Scenario 67 (b): the module is gone when its unit is taken: the worker that
// schedules knows it, the worker that works no longer does.
func TestModuleGoneAfterScheduling(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		annotations apcore.Annotations
	}{{"at most once", apcore.Annotations{}}, {"safe", apcore.Annotations{Readonly: true}}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			book := &ledger{}
			s, hosts := newQueue(t), newQueue(t)
			s.work(executorOf(t, apcore.ExecutorOptions{}, module{id: "test.act", annotations: test.annotations, run: actor(book)}), worker.Options{}, OneCall)
			run := s.start(t.Context(), OneCall, "test.act", nil, temporal.CallOptions{TaskQueue: hosts.queue, RetryPolicy: quickly})
			s.awaitEvent(run.GetID(), enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
			hosts.work(executorOf(t, apcore.ExecutorOptions{}, module{id: "test.other", run: actor(book)}), worker.Options{})
			if err := s.end(run, nil); codeOf(err) != apcore.CodeModuleNotFound || len(book.all()) != 0 {
				t.Errorf("ended with %v, ledger %v", err, book.all())
			}
			s.noTaskFailed(run.GetID())
		})
	}
}

// Scenario 67 (c): a module that is switched off after its unit was scheduled
// answers MODULE_DISABLED, at once and without a run.
func TestModuleDisabledAfterScheduling(t *testing.T) {
	t.Parallel()
	for _, annotations := range []apcore.Annotations{{}, {Readonly: true}} {
		book := &ledger{}
		s, hosts := newQueue(t), newQueue(t)
		act := module{id: "test.act", annotations: annotations, run: actor(book)}
		s.work(executorOf(t, apcore.ExecutorOptions{}, act), worker.Options{}, OneCall)
		run := s.start(t.Context(), OneCall, "test.act", nil, temporal.CallOptions{TaskQueue: hosts.queue, RetryPolicy: quickly})
		s.awaitEvent(run.GetID(), enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
		off := executorOf(t, apcore.ExecutorOptions{}, act)
		off.Disable("test.act", "maintenance")
		hosts.work(off, worker.Options{})
		if err := s.end(run, nil); codeOf(err) != apcore.CodeModuleDisabled || len(book.all()) != 0 {
			t.Errorf("ended with %v, ledger %v", err, book.all())
		}
		if n := len(s.scheduled(run.GetID())); n != 1 {
			t.Errorf("%d units", n)
		}
	}
}

// Scenario 67 (d): while a deploy rolls, the old worker takes the unit of a module
// that only the new one has; the call succeeds within the grace.
func TestHalfTheFleetLacksTheModule(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		annotations apcore.Annotations
		refused     enumspb.EventType // what shows that the old worker was asked
	}{
		{"at most once", apcore.Annotations{}, enumspb.EVENT_TYPE_TIMER_STARTED},
		{"safe", apcore.Annotations{Readonly: true}, enumspb.EVENT_TYPE_UNSPECIFIED},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			book := &ledger{}
			act := module{id: "test.act", annotations: test.annotations, run: actor(book)}
			s, hosts := newQueue(t), newQueue(t)
			s.work(executorOf(t, apcore.ExecutorOptions{}, act), worker.Options{}, OneCall)
			stopOld := hosts.work(executorOf(t, apcore.ExecutorOptions{}), worker.Options{})
			run := s.start(t.Context(), OneCall, "test.act", nil, temporal.CallOptions{TaskQueue: hosts.queue, RetryPolicy: &sdktemporal.RetryPolicy{InitialInterval: 2 * time.Second}})
			if test.refused != enumspb.EVENT_TYPE_UNSPECIFIED {
				s.awaitEvent(run.GetID(), test.refused)
			} else {
				s.until("the old worker refuses", func() bool {
					described, err := s.client.DescribeWorkflow(t.Context(), run.GetID(), "")
					return err == nil && len(described.RawResponse.PendingActivities) > 0 && described.RawResponse.PendingActivities[0].LastFailure != nil
				})
			}
			hosts.work(executorOf(t, apcore.ExecutorOptions{}, act), worker.Options{})
			stopOld()
			if err := s.end(run, nil); err != nil || book.count("") != 1 {
				t.Errorf("ended with %v, ledger %v", err, book.all())
			}
			s.noTaskFailed(run.GetID())
		})
	}
}

// Scenario 67 (a) and (c) in the test environment, where the same codes arrive;
// what needs two workers needs a server.
func TestMissingModulesInTheEnvironment(t *testing.T) {
	book := &ledger{}
	executor := executorOf(t, apcore.ExecutorOptions{}, module{id: "test.off", run: actor(book)}, module{id: "test.act", annotations: apcore.Annotations{Readonly: true}, run: actor(book)})
	executor.Disable("test.off", "maintenance")
	env := testsuite.NewEnvironment(t, executor)
	env.ExecuteWorkflow(func(ctx workflow.Context) ([]string, error) {
		var codes []string
		for _, id := range []string{"no.such", "test.off", "test.act"} {
			_, err := OneCall(ctx, id, nil, temporal.CallOptions{})
			codes = append(codes, string(apcore.CodeOf(err)))
		}
		return codes, nil
	})
	must(t, env.GetWorkflowError())
	var codes []string
	must(t, env.GetWorkflowResult(&codes))
	if len(codes) != 3 || codes[0] != "MODULE_NOT_FOUND" || codes[1] != "MODULE_DISABLED" || codes[2] != "" {
		t.Errorf("codes %q", codes)
	}
}

// Retried is a workflow that calls a module after a gated one.
func Retried(ctx workflow.Context, how string) (map[string]any, error) {
	if _, err := temporal.Call[map[string]any](ctx, "test.gated", nil); err != nil {
		return nil, err
	}
	return temporal.Call[map[string]any](ctx, "test.charge", map[string]any{"how": how})
}

// Scenario 43: a workflow retry policy does not run the workflow again, neither
// after a denial nor after an approved call and a failure; nobody is asked twice
// and nothing runs twice, whether the failure was retryable or not.
func TestWorkflowRetryPolicyAsksNobodyTwice(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		status apcore.ApprovalStatus
		how    string
		want   apcore.Code
		gated  int
	}{
		{"denied", apcore.ApprovalRejected, "", apcore.CodeApprovalDenied, 0},
		{"approved, then not retryable", apcore.ApprovalApproved, "denied", apcore.CodeACLDenied, 1},
		{"approved, then retryable", apcore.ApprovalApproved, "retryable", "ACME_BUSY", 1},
		{"approved, then foreign", apcore.ApprovalApproved, "fail", apcore.CodeModuleExecuteError, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			book := &ledger{}
			s := newQueue(t)
			s.work(executorOf(t, apcore.ExecutorOptions{ApprovalHandler: temporal.NewApprovalHandler()},
				module{id: "test.gated", annotations: apcore.Annotations{RequiresApproval: true}, run: func(context.Context, map[string]any) (map[string]any, error) {
					book.write("gated")
					return map[string]any{}, nil
				}},
				module{id: "test.charge", run: actor(book)},
			), worker.Options{}, Retried)
			run, err := s.client.ExecuteWorkflow(t.Context(), startOptions(s.queue, &sdktemporal.RetryPolicy{MaximumAttempts: 3, InitialInterval: time.Millisecond}), Retried, test.how)
			must(t, err)
			approval := s.pending(run.GetID())
			must(t, s.approvals.Decide(t.Context(), run.GetID(), durable.Decision{ApprovalID: approval.ApprovalID, Status: test.status, ApprovedBy: "ana", Reason: "because"}))
			if err := s.end(run, nil); codeOf(err) != test.want {
				t.Errorf("ended with %v, want %s", err, test.want)
			}
			described, err := s.client.DescribeWorkflow(t.Context(), run.GetID(), "")
			must(t, err)
			if last := described.RawResponse.WorkflowExecutionInfo.Execution.RunId; last != run.GetRunID() {
				t.Errorf("the workflow ran again as %s", last)
			}
			if book.count("gated") != test.gated || book.count(test.how) != test.gated && test.how != "" {
				t.Errorf("ledger %v", book.all())
			}
		})
	}
}
