package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
	"github.com/apcore-temporal/apcore-temporal/workflows"
)

// site is a worker on a real server.
type site struct {
	t         *testing.T
	client    client.Client
	approvals *temporal.Approvals
	executor  *apcore.Executor
	queue     string
	ran       atomic.Int64
	cancelled chan error
}

type want struct {
	How string `json:"how,omitempty"`
}

// newSite hosts test.gated (gated, at most once), test.charge (at most once),
// test.read (readonly), each of which does what its input says.
func newSite(t *testing.T, fns ...any) *site {
	t.Helper()
	s := &site{t: t, queue: "site-" + uuid.NewString(), cancelled: make(chan error, 10)}
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	must(t, errors.Join(
		apcore.Register(registry, "test.gated", s.act, apcore.Spec{Description: "Is gated", Annotations: apcore.Annotations{RequiresApproval: true}}),
		apcore.Register(registry, "test.charge", s.act, apcore.Spec{Description: "Charges"}),
		apcore.Register(registry, "test.keyed", s.key, apcore.Spec{Description: "Gives its key", Annotations: apcore.Annotations{RequiresApproval: true}}),
		apcore.Register(registry, "test.read", s.act, apcore.Spec{Description: "Reads", Annotations: apcore.Annotations{Readonly: true}}),
	))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{ApprovalHandler: temporal.NewApprovalHandler(), Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	s.executor = executor
	s.client = testsuite.DevServer(t).Client(t, client.Options{Interceptors: []interceptor.ClientInterceptor{temporal.NewClientInterceptor()}})
	s.approvals, err = temporal.NewApprovals(s.client, temporal.ApprovalsOptions{Timeout: time.Minute})
	must(t, err)
	w, err := worker.New(s.client, s.queue, executor, worker.Options{StopTimeout: time.Second})
	must(t, err)
	for _, fn := range fns {
		w.Registry().RegisterWorkflow(fn)
	}
	must(t, w.Start())
	t.Cleanup(w.Stop)
	return s
}

func (s *site) key(ctx context.Context, _ map[string]any) (map[string]any, error) {
	s.ran.Add(1)
	c, _ := apcore.FromContext(ctx)
	key, _ := apcore.NewKey[string](durable.IdempotencyKey).Get(c)
	return map[string]any{"key": key}, nil
}

func (s *site) act(ctx context.Context, in want) (map[string]any, error) {
	s.ran.Add(1)
	denied := apcore.NewError(apcore.CodeACLDenied, "not yours")
	switch in.How {
	case "fail":
		return nil, errors.New("boom")
	case "denied, joined":
		return nil, errors.Join(errors.New("other"), fmt.Errorf("x: %w", denied))
	case "wait for cancel":
		<-ctx.Done()
		s.cancelled <- context.Cause(ctx)
		return nil, ctx.Err()
	case "sleep past the timeout":
		time.Sleep(3 * time.Second) // it does not look at its context
	case "panic":
		panic("boom")
	case "who":
		c, _ := apcore.FromContext(ctx)
		return map[string]any{"identity": c.Identity(), "trace_id": c.TraceID(), "chain": c.CallChain(), "caller": c.CallerID()}, nil
	}
	return map[string]any{"ok": true}, nil
}

func (s *site) start(ctx context.Context, fn any, args ...any) client.WorkflowRun {
	s.t.Helper()
	run, err := s.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "run-" + uuid.NewString(), TaskQueue: s.queue}, fn, args...)
	must(s.t, err)
	return run
}

func (s *site) end(run client.WorkflowRun, out any) error {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	err := run.Get(ctx, out)
	if ctx.Err() != nil {
		s.t.Fatalf("workflow %s did not end", run.GetID())
	}
	return err
}

func (s *site) pending(id string) durable.Approval {
	s.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		if list, err := s.approvals.List(s.t.Context(), id); err == nil && len(list) > 0 && list[0].Status == durable.ApprovalIsPending {
			return list[0]
		}
		time.Sleep(20 * time.Millisecond) // a query has nothing to wait on
	}
	s.t.Fatalf("no approval in workflow %s", id)
	return durable.Approval{}
}

func (s *site) events(id string) map[enums.EventType]int {
	s.t.Helper()
	counts := map[enums.EventType]int{}
	for _, event := range testsuite.History(s.t, s.client, id).Events {
		counts[event.EventType]++
	}
	return counts
}

// Call is the workflow of most tests.
func Call(ctx workflow.Context, module string, in map[string]any, opts temporal.CallOptions) (map[string]any, error) {
	return temporal.Call[map[string]any](temporal.WithCallOptions(ctx, opts), module, in)
}

func approve(id string) durable.Decision {
	return durable.Decision{ApprovalID: id, Status: apcore.ApprovalApproved, ApprovedBy: "ana"}
}

// Scenario 4: closed run, no such run and unknown approval are three answers,
// and nothing is started by asking.
func TestApproverTellsApart(t *testing.T) {
	t.Parallel()
	s := newSite(t, Call)
	closed := s.start(t.Context(), Call, "test.gated", nil, temporal.CallOptions{ApprovalTimeout: time.Millisecond})
	if e := temporal.AsError(s.end(closed, nil)); e == nil || e.Code != apcore.CodeApprovalTimeout {
		t.Fatalf("ended with %v", e)
	}
	open := s.start(t.Context(), Call, "test.gated", nil, temporal.CallOptions{})
	approval := s.pending(open.GetID())
	for name, test := range map[string]struct {
		workflowID, approvalID string
		want                   apcore.Code
	}{
		"closed run":       {closed.GetID(), approval.ApprovalID, durable.CodeRunClosed},
		"no such run":      {"run-of-nobody", approval.ApprovalID, durable.CodeRunNotFound},
		"unknown approval": {open.GetID(), "apr-of-nobody", durable.CodeDecisionUnknown},
	} {
		err := s.approvals.Decide(t.Context(), test.workflowID, approve(test.approvalID))
		if !errors.Is(err, test.want) {
			t.Errorf("%s: Decide: %v, want %s", name, err, test.want)
		}
		if test.want == durable.CodeRunClosed && apcore.AsError(err).Details["status"] != "Failed" {
			t.Errorf("%s: details %v", name, apcore.AsError(err).Details)
		}
		if test.want != durable.CodeDecisionUnknown {
			if err := s.approvals.Send(t.Context(), test.workflowID, approve(test.approvalID)); !errors.Is(err, test.want) {
				t.Errorf("%s: Send: %v", name, err)
			}
		}
	}
	if _, err := s.approvals.List(t.Context(), "run-of-nobody"); !errors.Is(err, durable.CodeRunNotFound) {
		t.Errorf("List of no run: %v", err)
	}
	if _, err := s.approvals.Get(t.Context(), open.GetID(), "apr-of-nobody"); !errors.Is(err, durable.CodeDecisionUnknown) {
		t.Errorf("Get of no approval: %v", err)
	}
	if _, err := s.client.DescribeWorkflow(t.Context(), "run-of-nobody", ""); err == nil {
		t.Error("asking started a run")
	}
	must(t, s.approvals.Decide(t.Context(), open.GetID(), approve(approval.ApprovalID)))
	must(t, s.end(open, nil))
}

// Target 11: a refused update leaves nothing in the history and the request as
// it was.
func TestRefusedUpdateLeavesNoTrace(t *testing.T) {
	t.Parallel()
	s := newSite(t, Call)
	run := s.start(t.Context(), Call, "test.gated", nil, temporal.CallOptions{})
	approval := s.pending(run.GetID())
	before := len(testsuite.History(t, s.client, run.GetID()).Events)
	for _, bad := range []durable.Decision{
		approve("apr-other"), {ApprovalID: approval.ApprovalID, Status: "yes", ApprovedBy: "ana"}, {ApprovalID: approval.ApprovalID, Status: apcore.ApprovalApproved},
	} {
		if err := s.approvals.Decide(t.Context(), run.GetID(), bad); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
	if got, err := s.approvals.Get(t.Context(), run.GetID(), approval.ApprovalID); err != nil || got.Status != durable.ApprovalIsPending || len(got.Ignored) > 0 {
		t.Errorf("after refusals: %+v, %v", got, err)
	}
	for _, event := range testsuite.History(t, s.client, run.GetID()).Events[before:] {
		switch event.EventType { //nolint:exhaustive // workflow tasks come and go
		case enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED, enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_REJECTED, enums.EVENT_TYPE_WORKFLOW_TASK_FAILED:
			t.Errorf("a refused update left %s", event.EventType)
		}
	}
	must(t, s.approvals.Decide(t.Context(), run.GetID(), approve(approval.ApprovalID)))
	must(t, s.end(run, nil))
	if s.ran.Load() != 1 {
		t.Errorf("%d executions", s.ran.Load())
	}
}

// Scenarios 36, 39 and 40: the server counts attempts as the test environment
// does, and codes arrive.
func TestAttemptsOnTheServer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		module, how string
		want        apcore.Code
		attempts    int64
	}{
		{"test.read", "fail", apcore.CodeModuleExecuteError, 3},
		{"test.read", "denied, joined", apcore.CodeACLDenied, 1},
		{"test.charge", "fail", apcore.CodeModuleExecuteError, 1},
		{"test.charge", "panic", apcore.CodeModuleExecuteError, 1},
		{"test.charge", "sleep past the timeout", durable.CodeOutcomeUnknown, 1},
	} {
		t.Run(test.module+" "+test.how, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, Call)
			opts := temporal.CallOptions{Attempts: 3}
			if test.want == durable.CodeOutcomeUnknown {
				opts.StartToClose = 2 * time.Second
			}
			run := s.start(t.Context(), Call, test.module, map[string]any{"how": test.how}, opts)
			err := s.end(run, nil)
			var application *sdktemporal.ApplicationError
			if e := temporal.AsError(err); e == nil || e.Code != test.want || !errors.As(err, &application) || application.Type() != string(test.want) {
				t.Errorf("ended with %v, want %s", err, test.want)
			}
			if got := s.ran.Load(); got != test.attempts {
				t.Errorf("%d attempts, want %d", got, test.attempts)
			}
			if n := s.events(run.GetID())[enums.EVENT_TYPE_WORKFLOW_TASK_FAILED]; n > 0 {
				t.Errorf("%d workflow tasks failed", n)
			}
		})
	}
}

// BadInputs makes calls that cannot be made and goes on.
func BadInputs(ctx workflow.Context) ([]string, error) {
	var codes []string
	for _, in := range []any{map[string]any{"x": math.NaN()}, map[string]any{"x": make(chan int)}, map[string]any{"_approval_token": "x"}, 7} {
		_, err := temporal.Call[map[string]any](ctx, "test.read", in)
		codes = append(codes, string(apcore.CodeOf(err)))
	}
	_, err := temporal.Call[map[string]any](ctx, "test.read", nil)
	return codes, err
}

// Scenario 53 on a server: what cannot be sent fails the call, never the
// workflow task.
func TestBadInputsOnTheServer(t *testing.T) {
	t.Parallel()
	s := newSite(t, BadInputs)
	run := s.start(t.Context(), BadInputs)
	var codes []string
	must(t, s.end(run, &codes))
	if got := fmt.Sprint(codes); got != "[GENERAL_INVALID_INPUT GENERAL_INVALID_INPUT TOKEN_REFUSED GENERAL_INVALID_INPUT]" {
		t.Errorf("codes %s", got)
	}
	counts := s.events(run.GetID())
	if counts[enums.EVENT_TYPE_WORKFLOW_TASK_FAILED] > 0 || counts[enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED] != 1 {
		t.Errorf("events %v", counts)
	}
}

// Scenario 47: cancelling a workflow reaches a module that watches only its
// context, by default options but for a short heartbeat.
func TestCancelReachesTheModule(t *testing.T) {
	t.Parallel()
	s := newSite(t, Call)
	run := s.start(t.Context(), Call, "test.read", map[string]any{"how": "wait for cancel"}, temporal.CallOptions{Heartbeat: time.Second})
	for s.ran.Load() == 0 {
		time.Sleep(10 * time.Millisecond) // until the module is at it
	}
	must(t, s.client.CancelWorkflow(t.Context(), run.GetID(), ""))
	select {
	case cause := <-s.cancelled:
		t.Logf("the module learnt of it: %v", cause)
	case <-time.After(time.Minute):
		t.Fatal("the module never learnt of it")
	}
	if e := temporal.AsError(s.end(run, nil)); e == nil || e.Code != apcore.CodeExecutionCancelled {
		t.Errorf("ended with %v", e)
	}
	description, err := s.client.DescribeWorkflow(t.Context(), run.GetID(), "")
	must(t, err)
	if got := description.Status; got != enums.WORKFLOW_EXECUTION_STATUS_CANCELED {
		t.Errorf("status %s", got)
	}
}

// The identity and trace of a client reach the module through the header, and
// through a workflow that nobody wrote for the purpose.
func TestContextReachesTheModule(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	caller := apcore.NewContext(apcore.ContextOptions{
		Identity:    apcore.NewIdentity("maria", apcore.IdentityUser, []string{"clerk"}, nil),
		TraceParent: &apcore.TraceParent{TraceID: "4bf92f3577b34da6a3ce929d0e0e4736"},
	})
	run := s.start(temporal.WithContext(t.Context(), caller), "apcore/module-call", workflows.ModuleCallInput{ModuleID: "test.read", Inputs: []byte(`{"how":"who"}`)})
	var out workflows.ModuleCallOutput
	must(t, s.end(run, &out))
	if want := `{"caller":"","chain":["test.read"],"identity":{"attrs":{},"id":"maria","roles":["clerk"],"type":"user"},"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"}`; string(out.Output) != want {
		t.Errorf("output %s, want %s", out.Output, want)
	}
	if out.Module.ID != "test.read" || out.Module.Version != "1.0.0" || len(out.Module.SchemaHash) != 64 {
		t.Errorf("module %+v", out.Module)
	}
}
