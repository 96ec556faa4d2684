package refund_test

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/examples/refund"
	"github.com/apcore-temporal/apcore-temporal/examples/refund/internal/changed"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

var record = flag.Bool("record", false, "write the histories of the three endings to testdata/histories")

// TestMain lets the test binary be the worker process that a test kills.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if os.Getenv(workerEnv) != "" {
		workerProcess()
		return
	}
	os.Exit(m.Run())
}

const card = "4242424242424242"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shop is a running example: a server, a client of an employee and an approver.
type shop struct {
	t         *testing.T
	server    *testsuite.Server
	client    client.Client
	approvals *temporal.Approvals
	queue     string
	ledger    string
}

func newShop(t *testing.T) *shop {
	t.Helper()
	server := testsuite.DevServer(t)
	c := server.Client(t, client.Options{Interceptors: []interceptor.ClientInterceptor{temporal.NewClientInterceptor()}})
	approvals, err := temporal.NewApprovals(c, temporal.ApprovalsOptions{Timeout: time.Minute})
	must(t, err)
	return &shop{t: t, server: server, client: c, approvals: approvals, queue: "refunds-" + uuid.NewString(), ledger: filepath.Join(t.TempDir(), "ledger")}
}

// work runs the example's worker in this process.
func (s *shop) work() {
	s.t.Helper()
	executor, err := refund.NewExecutor(s.ledger)
	must(s.t, err)
	w, err := worker.New(s.client, s.queue, executor, worker.Options{SDK: sdkworker.Options{StickyScheduleToStartTimeout: time.Second}})
	must(s.t, err)
	w.Registry().RegisterWorkflow(refund.Refund)
	must(s.t, w.Start())
	s.t.Cleanup(w.Stop)
}

func (s *shop) start(request refund.Request) client.WorkflowRun {
	s.t.Helper()
	caller := apcore.NewContext(apcore.ContextOptions{Identity: apcore.NewIdentity("maria", apcore.IdentityUser, nil, nil)})
	run, err := s.client.ExecuteWorkflow(temporal.WithContext(s.t.Context(), caller), client.StartWorkflowOptions{
		ID: s.queue + "-" + request.OrderID, TaskQueue: s.queue,
	}, refund.Refund, request)
	must(s.t, err)
	return run
}

// pending waits for the refund to ask.
func (s *shop) pending(workflowID string) durable.Approval {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	for {
		list, err := s.approvals.List(ctx, workflowID)
		if err == nil && len(list) > 0 && list[0].Status == durable.ApprovalIsPending {
			return list[0]
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("no approval came up: %v, %v", list, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *shop) decide(workflowID, approvalID string, status apcore.ApprovalStatus) {
	s.t.Helper()
	must(s.t, s.approvals.Decide(s.t.Context(), workflowID, durable.Decision{ApprovalID: approvalID, Status: status, ApprovedBy: "ana", Reason: "because"}))
}

func (s *shop) end(run client.WorkflowRun) (refund.Receipt, *apcore.Error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 3*time.Minute)
	defer cancel()
	var receipt refund.Receipt
	err := run.Get(ctx, &receipt)
	if ctx.Err() != nil {
		s.t.Fatalf("workflow %s did not end in time", run.GetID())
	}
	return receipt, temporal.AsError(err)
}

func (s *shop) lines() int {
	s.t.Helper()
	text, err := os.ReadFile(s.ledger)
	if os.IsNotExist(err) {
		return 0
	}
	must(s.t, err)
	return strings.Count(string(text), "\n")
}

// TestEndings plays the three endings of the demo on a real server and replays
// each history through the plugin, the fresh one here and the recorded one in
// TestRecordedHistories.
func TestEndings(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.work()
	for _, ending := range []struct {
		name   string
		status apcore.ApprovalStatus // empty: nobody answers
		want   apcore.Code
		lines  int
	}{
		{"approved", apcore.ApprovalApproved, "", 1},
		{"rejected", apcore.ApprovalRejected, apcore.CodeApprovalDenied, 1},
		{"expired", "", apcore.CodeApprovalTimeout, 1},
	} {
		request := refund.Request{OrderID: ending.name, Card: card}
		if ending.status == "" {
			request.ApprovalSeconds = 1
		}
		run := s.start(request)
		if ending.status != "" {
			approval := s.pending(run.GetID())
			if approval.Requester != "user:maria" || approval.Arguments["card"] == card {
				t.Errorf("%s: the approver sees %q, %v", ending.name, approval.Requester, approval.Arguments)
			}
			s.decide(run.GetID(), approval.ApprovalID, ending.status)
		}
		receipt, e := s.end(run)
		if got := codeOf(e); got != ending.want {
			t.Fatalf("%s: %v, want %q", ending.name, e, ending.want)
		}
		if ending.want == "" && (receipt.MailedTo == "" || receipt.Refund.Key != run.GetID()+"/"+run.GetRunID()+"/2") {
			t.Errorf("%s: receipt %+v", ending.name, receipt)
		}
		if ending.want == apcore.CodeApprovalDenied && e.Details["reason"] != "because" {
			t.Errorf("the approver's reason got lost: %v", e.Details)
		}
		if got := s.lines(); got != ending.lines {
			t.Errorf("%s: %d ledger lines, want %d", ending.name, got, ending.lines)
		}
		history := testsuite.History(t, s.client, run.GetID())
		for _, event := range history.Events {
			switch event.EventType { //nolint:exhaustive // only failures matter
			case enums.EVENT_TYPE_ACTIVITY_TASK_FAILED, enums.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT, enums.EVENT_TYPE_WORKFLOW_TASK_FAILED:
				t.Errorf("%s: the history holds %s", ending.name, event.EventType)
			}
		}
		if *record {
			testsuite.WriteHistory(t, historyPath(ending.name), history)
		}
		replays(t, ending.name, func() error { return testsuite.Replay(exampleExecutor(t), history, refund.Refund) })
	}
}

func codeOf(e *apcore.Error) apcore.Code {
	if e == nil {
		return ""
	}
	return e.Code
}

func historyPath(name string) string { return filepath.Join("testdata", "histories", name+".json") }

func exampleExecutor(t testing.TB) *apcore.Executor {
	t.Helper()
	executor, err := refund.NewExecutor(filepath.Join(t.TempDir(), "ledger"))
	must(t, err)
	return executor
}

func replays(t *testing.T, name string, replay func() error) {
	t.Helper()
	if err := replay(); err != nil {
		t.Errorf("history %q does not replay: %v", name, err)
	}
}

// TestRecordedHistories replays what the demo's runs left behind when this
// version was new. A recorded history is never written again: a running workflow
// of that time has to go on with today's code.
func TestRecordedHistories(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"approved", "rejected", "expired"} {
		replays(t, name, func() error {
			return testsuite.Replay(exampleExecutor(t), testsuite.ReadHistory(t, historyPath(name)), refund.Refund)
		})
	}
}

// TestChangedWorkflowFailsReplay proves that the replay above can fail: the mail
// before the refund is another workflow.
func TestChangedWorkflowFailsReplay(t *testing.T) {
	t.Parallel()
	history := testsuite.ReadHistory(t, historyPath("approved"))
	if err := testsuite.Replay(exampleExecutor(t), history, changed.Refund); err == nil {
		t.Error("a workflow in another order replays as if it were the same")
	}
}
