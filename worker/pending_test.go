package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// Relay makes a gated call, goes over to a successor while it waits, and makes
// it again there.
func Relay(ctx workflow.Context, runsLeft int) (map[string]any, error) {
	call := temporal.CallAsync[map[string]any](ctx, "test.gated", want{How: "who"})
	if runsLeft == 0 {
		return call.Get(ctx)
	}
	if err := workflow.Sleep(ctx, 500*time.Millisecond); err != nil { // it is pending by then, or it runs
		return nil, err
	}
	if call.IsReady() {
		return call.Get(ctx)
	}
	return nil, temporal.ContinueAsNew(ctx, Relay, runsLeft-1)
}

// Target 21, scenario 13: a call that waits goes along when its run continues as
// new: the reference that an approver has stays good, nothing is asked twice.
func TestPendingApprovalSurvivesContinueAsNew(t *testing.T) {
	t.Parallel()
	s := newSite(t, Relay)
	run := s.start(t.Context(), Relay, 2)
	first := s.pending(run.GetID())
	s.awaitRun(run.GetID(), 3)
	now := s.pending(run.GetID())
	if diff := cmp.Diff(first, now); diff != "" {
		t.Errorf("the approval changed on the way (-first run +third run):\n%s", diff)
	}
	must(t, s.approvals.Decide(t.Context(), run.GetID(), approve(first.ApprovalID)))
	must(t, s.end(run, nil))
	if s.ran.Load() != 1 {
		t.Errorf("%d effects", s.ran.Load())
	}
	if got := s.events(run.GetID())[enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED]; got != 1 {
		t.Errorf("the last run scheduled %d activities, want the approved call alone", got)
	}
}

// A decision may come at any moment of the hand-over.
func TestDecisionsDuringContinueAsNew(t *testing.T) {
	t.Parallel()
	s := newSite(t, Relay)
	for i := range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			id := "relay-" + uuid.NewString()
			run, err := s.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: s.queue}, Relay, 3)
			must(t, err)
			first := s.pending(id)
			time.Sleep(time.Duration(i) * 70 * time.Millisecond) // spread over the hand-over; any moment must do
			must(t, s.approvals.Send(t.Context(), id, approve(first.ApprovalID)))
			must(t, s.end(run, nil))
		})
	}
	t.Cleanup(func() {
		if s.ran.Load() != 8 {
			t.Errorf("%d effects of 8 calls", s.ran.Load())
		}
	})
}

// awaitRun waits until a workflow is in its n-th run.
func (s *site) awaitRun(id string, n int) {
	s.t.Helper()
	seen := map[string]bool{}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		description, err := s.client.DescribeWorkflow(s.t.Context(), id, "")
		must(s.t, err)
		if seen[description.WorkflowExecution.RunID] = true; len(seen) == n {
			return
		}
	}
	s.t.Fatalf("workflow %s had %d runs, want %d", id, len(seen), n)
}

// Target 15: the server's own list shows what waits, and no longer when it is
// decided.
func TestPendingIsListed(t *testing.T) {
	t.Parallel()
	s := newSite(t, Call)
	run := s.start(t.Context(), Call, "test.gated", nil, temporal.CallOptions{})
	approval := s.pending(run.GetID())
	filter := temporal.PendingOptions{Query: "WorkflowId = '" + run.GetID() + "'", Namespace: testsuite.DevServer(t).Namespace()}
	listed := s.awaitListed(filter, 1)
	if got := listed[0].Approvals; len(got) != 1 || got[0].ApprovalID != approval.ApprovalID || got[0].ModuleID != "test.gated" {
		t.Errorf("listed %+v", listed)
	}
	must(t, s.approvals.Decide(t.Context(), run.GetID(), approve(approval.ApprovalID)))
	must(t, s.end(run, nil))
	s.awaitListed(filter, 0)
}

// awaitListed polls, for the list follows some time behind.
func (s *site) awaitListed(filter temporal.PendingOptions, count int) []temporal.PendingRun {
	s.t.Helper()
	var listed []temporal.PendingRun
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		listed = nil
		for run, err := range s.approvals.Pending(s.t.Context(), filter) {
			must(s.t, err)
			listed = append(listed, run)
		}
		if len(listed) == count {
			return listed
		}
	}
	s.t.Fatalf("listed %+v, want %d", listed, count)
	return nil
}

// book keeps audit records; it fails its first delivery.
type book struct {
	mu      sync.Mutex
	failed  bool
	records map[string]durable.AuditRecord
	order   []string
}

func (b *book) RecordApprovals(_ context.Context, records []durable.AuditRecord) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.failed {
		b.failed = true
		return errors.New("the book is closed")
	}
	for _, record := range records {
		if _, known := b.records[record.ID]; !known {
			b.order = append(b.order, string(record.Event))
		}
		b.records[record.ID] = record
	}
	return nil
}

// Two makes a gated call and gives up waiting when it is cancelled.
func Two(ctx workflow.Context, withdraw bool, opts temporal.CallOptions) error {
	call := temporal.CallAsync[map[string]any](temporal.WithCallOptions(ctx, opts), "test.gated", nil)
	if withdraw {
		return workflow.Sleep(ctx, time.Second)
	}
	_, err := call.Get(ctx)
	return err
}

// Target 23: every way an approval can end makes exactly one record of it, and
// an execution one more.
func TestAudit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		opts     temporal.CallOptions
		withdraw bool
		act      func(s *site, id string)
		want     []string
	}{
		{name: "approved", act: func(s *site, id string) {
			d := approve(s.pending(id).ApprovalID)
			d.Changes = durable.Object{"how": "ok"}
			must(s.t, s.approvals.Decide(s.t.Context(), id, d))
		}, want: []string{"requested", "approved", "executed"}},
		{name: "rejected", act: func(s *site, id string) {
			d := approve(s.pending(id).ApprovalID)
			d.Status = apcore.ApprovalRejected
			must(s.t, s.approvals.Decide(s.t.Context(), id, d))
		}, want: []string{"requested", "rejected"}},
		{name: "expired", opts: temporal.CallOptions{ApprovalTimeout: 300 * time.Millisecond}, act: func(*site, string) {}, want: []string{"requested", "timeout"}},
		{name: "cancelled", act: func(s *site, id string) {
			s.pending(id)
			must(s.t, s.client.CancelWorkflow(s.t.Context(), id, ""))
		}, want: []string{"requested", "cancelled"}},
		{name: "withdrawn", withdraw: true, act: func(*site, string) {}, want: []string{"requested", "withdrawn"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			sink := &book{records: map[string]durable.AuditRecord{}}
			s := newAuditedSite(t, sink)
			run := s.start(t.Context(), Two, test.withdraw, test.opts)
			test.act(s, run.GetID())
			_ = s.end(run, nil)
			sink.mu.Lock()
			defer sink.mu.Unlock()
			if !slices.Equal(sink.order, test.want) || len(sink.records) != len(test.want) {
				t.Errorf("records %q, want %q", sink.order, test.want)
			}
			for _, record := range sink.records {
				if record.WorkflowID != run.GetID() || record.At.IsZero() || record.Approval.Module.ID != "test.gated" {
					t.Errorf("record %+v", record)
				}
				if record.Event == durable.AuditExecuted && (record.Outcome != "completed" || record.ExecutedDigest == "" || record.ExecutedDigest == record.Approval.ArgumentsDigest) {
					t.Errorf("the execution does not show the changed arguments: %+v", record)
				}
			}
		})
	}
}

func newAuditedSite(t *testing.T, sink durable.AuditSink) *site {
	t.Helper()
	s := &site{t: t, queue: "audit-" + uuid.NewString()}
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	must(t, apcore.Register(registry, "test.gated", s.act, apcore.Spec{Description: "Is gated", Annotations: apcore.Annotations{RequiresApproval: true}}))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{ApprovalHandler: temporal.NewApprovalHandler(), Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	s.client = testsuite.DevServer(t).Client(t, client.Options{})
	s.approvals, err = temporal.NewApprovals(s.client, temporal.ApprovalsOptions{Timeout: time.Minute})
	must(t, err)
	w, err := worker.New(s.client, s.queue, executor, worker.Options{StopTimeout: time.Second, PluginOptions: worker.PluginOptions{AuditSink: sink}})
	must(t, err)
	w.Registry().RegisterWorkflow(Two)
	must(t, w.Start())
	t.Cleanup(w.Stop)
	return s
}
