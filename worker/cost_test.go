package worker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdktemporal "go.temporal.io/sdk/temporal"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// The order that both sides move: what is compared is the way, not the work.
var order = map[string]any{
	"order_id": "ord-4711", "amount": 12900, "currency": "EUR",
	"lines": []any{map[string]any{"sku": "A-1", "count": 2}, map[string]any{"sku": "B-7", "count": 1}},
}

func receipt(context.Context, map[string]any) (map[string]any, error) {
	return map[string]any{"receipt": "r-1", "status": "booked", "amount": 12900}, nil
}

// handwritten is the activity that somebody writes without this project.
const handwritten = "Book"

// byHandOptions bound a hand-written call like one of this project: one attempt.
var byHandOptions = workflow.ActivityOptions{
	StartToCloseTimeout: 40 * time.Second, ScheduleToStartTimeout: time.Hour, HeartbeatTimeout: 10 * time.Second,
	RetryPolicy: &sdktemporal.RetryPolicy{MaximumAttempts: 1}, Summary: "Does as told",
}

// Steps is how many calls a run makes: Rounds one after the other, each of Wide
// at a time.
type Steps struct{ Rounds, Wide int }

// ByHand makes the calls as a workflow without this project does.
func ByHand(ctx workflow.Context, steps Steps, in map[string]any) error {
	ctx = workflow.WithActivityOptions(ctx, byHandOptions)
	for range steps.Rounds {
		calls := make([]workflow.Future, steps.Wide)
		for i := range calls {
			calls[i] = workflow.ExecuteActivity(ctx, handwritten, in)
		}
		for _, call := range calls {
			var out map[string]any
			if err := call.Get(ctx, &out); err != nil {
				return err
			}
		}
	}
	return nil
}

// ByModule makes the same calls through this project.
func ByModule(ctx workflow.Context, steps Steps, in map[string]any) error {
	for range steps.Rounds {
		if steps.Wide == 1 {
			if _, err := temporal.Call[map[string]any](ctx, "bench.book", in); err != nil {
				return err
			}
			continue
		}
		calls := make([]*temporal.Future[map[string]any], steps.Wide)
		for i := range calls {
			calls[i] = temporal.CallAsync[map[string]any](ctx, "bench.book", in)
		}
		for _, call := range calls {
			if _, err := call.Get(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// ApprovedByHand waits for a signal, for a day at most, before it makes its call.
func ApprovedByHand(ctx workflow.Context, in map[string]any) error {
	inTime, _, err := awaitSignal(ctx)
	if err != nil || !inTime {
		return err
	}
	return ByHand(ctx, Steps{1, 1}, in)
}

func awaitSignal(ctx workflow.Context) (inTime bool, decision durable.Decision, err error) {
	timer, stop := workflow.WithCancel(ctx)
	defer stop()
	workflow.NewSelector(ctx).
		AddReceive(workflow.GetSignalChannel(ctx, "decide"), func(c workflow.ReceiveChannel, _ bool) { inTime = c.ReceiveAsync(&decision) }).
		AddFuture(workflow.NewTimer(timer, 24*time.Hour), func(f workflow.Future) { err = f.Get(ctx, nil) }).
		Select(ctx)
	return inTime, decision, err
}

// ApprovedByModule makes a gated call.
func ApprovedByModule(ctx workflow.Context, in map[string]any) error {
	_, err := temporal.Call[map[string]any](ctx, "bench.gated", in)
	return err
}

// contest has both sides on one server, each with a worker and a queue.
type contest struct {
	tb        testing.TB
	client    client.Client
	executor  *apcore.Executor
	queues    map[string]string
	approvals *temporal.Approvals
}

const byHand, byModule = "by hand", "by module"

func newContest(tb testing.TB, server *testsuite.Server) *contest {
	tb.Helper()
	executor := executorOf(tb, apcore.ExecutorOptions{ApprovalHandler: temporal.NewApprovalHandler()},
		module{id: "bench.book", run: receipt}, module{id: "bench.gated", annotations: apcore.Annotations{RequiresApproval: true}, run: receipt})
	c := &contest{
		tb: tb, executor: executor, queues: map[string]string{byHand: "hand-" + uuid.NewString(), byModule: "module-" + uuid.NewString()},
		client: server.Client(tb, client.Options{Interceptors: []interceptor.ClientInterceptor{temporal.NewClientInterceptor()}}),
	}
	var err error
	c.approvals, err = temporal.NewApprovals(c.client, temporal.ApprovalsOptions{Timeout: time.Minute})
	must(tb, err)
	ours, err := worker.New(c.client, c.queues[byModule], executor, worker.Options{StopTimeout: time.Second})
	must(tb, err)
	ours.Registry().RegisterWorkflow(ByModule)
	ours.Registry().RegisterWorkflow(ApprovedByModule)
	must(tb, ours.Start())
	tb.Cleanup(ours.Stop)
	plain := sdkworker.New(c.client, c.queues[byHand], sdkworker.Options{WorkerStopTimeout: time.Second})
	plain.RegisterWorkflow(ByHand)
	plain.RegisterWorkflow(ApprovedByHand)
	plain.RegisterActivityWithOptions(receipt, activity.RegisterOptions{Name: handwritten})
	must(tb, plain.Start())
	tb.Cleanup(plain.Stop)
	return c
}

// start begins a run of one side, for a client with a small context.
func (c *contest) start(side string, fn any, args ...any) client.WorkflowRun {
	c.tb.Helper()
	ctx := c.tb.Context()
	if side == byModule {
		ctx = temporal.WithContext(ctx, smallContext())
	}
	run, err := c.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "cost-" + uuid.NewString(), TaskQueue: c.queues[side]}, fn, args...)
	must(c.tb, err)
	return run
}

func (c *contest) run(side string, fn any, args ...any) *historypb.History {
	c.tb.Helper()
	run := c.start(side, fn, args...)
	must(c.tb, run.Get(c.tb.Context(), nil))
	return testsuite.History(c.tb, c.client, run.GetID())
}

func smallContext() *apcore.Context {
	return apcore.NewContext(apcore.ContextOptions{
		Identity: apcore.NewIdentity("maria", apcore.IdentityUser, []string{"clerk"}, nil), TraceParent: &apcore.TraceParent{TraceID: "4bf92f3577b34da6a3ce929d0e0e4736"},
	})
}

func eventTypes(history *historypb.History) []string {
	types := make([]string, len(history.Events))
	for i, event := range history.Events {
		types[i] = event.EventType.String()
	}
	return types
}

// Cost: a call without approval leaves the very events of a
// hand-written one, in the same order.
func TestACallLeavesNoEventMore(t *testing.T) {
	t.Parallel()
	c := newContest(t, testsuite.DevServer(t))
	hand := eventTypes(c.run(byHand, ByHand, Steps{3, 1}, order))
	ours := eventTypes(c.run(byModule, ByModule, Steps{3, 1}, order))
	if diff := cmp.Diff(hand, ours); diff != "" {
		t.Errorf("events of three calls (-by hand +by module):\n%s", diff)
	}
	if n := strings.Count(strings.Join(hand, " "), "ActivityTaskCompleted"); n != 3 {
		t.Errorf("the hand-written run completed %d activities: %v", n, hand)
	}
}

// tally counts the events that calls and approvals make, without those of
// workflow tasks, which depend on who looks when.
func tally(history *historypb.History) map[string]int {
	counts := map[string]int{}
	for _, event := range history.Events {
		if name := event.EventType.String(); !strings.HasPrefix(name, "WorkflowTask") {
			counts[name]++
		}
	}
	return counts
}

// Cost: an approved call has one activity more than the hand-written one that
// waits for a signal under a timer, and against a call without approval one
// activity, one timer and one signal or update. That is without search
// attributes: where they are registered, the approvals that are pending are shown
// in them, which takes an upsert and a change of the memo each time.
func TestAnApprovedCallLeavesOneActivityMore(t *testing.T) {
	t.Parallel()
	c := newContest(t, testsuite.StartServer(t, testsuite.ServerOptions{}))
	by := c.start(byHand, ApprovedByHand, order)
	must(t, c.client.SignalWorkflow(t.Context(), by.GetID(), "", "decide", approve("")))
	must(t, by.Get(t.Context(), nil))
	hand := tally(testsuite.History(t, c.client, by.GetID()))
	for name, test := range map[string]struct {
		decide func(ctx context.Context, workflowID string, decision durable.Decision) error
		more   map[string]int
	}{
		"signal": {c.approvals.Send, map[string]int{"WorkflowExecutionSignaled": 1}},
		"update": {c.approvals.Decide, map[string]int{"WorkflowExecutionUpdateAccepted": 1, "WorkflowExecutionUpdateCompleted": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &site{t: t, client: c.client, approvals: c.approvals}
			run := c.start(byModule, ApprovedByModule, order)
			must(t, test.decide(t.Context(), run.GetID(), approve(s.pending(run.GetID()).ApprovalID)))
			must(t, run.Get(t.Context(), nil))
			want := map[string]int{}
			for event, n := range hand {
				want[event] = n
			}
			delete(want, "WorkflowExecutionSignaled")
			for event, n := range test.more {
				want[event] = n
			}
			for _, event := range []string{"ActivityTaskScheduled", "ActivityTaskStarted", "ActivityTaskCompleted"} {
				want[event]++
			}
			if diff := cmp.Diff(want, tally(testsuite.History(t, c.client, run.GetID()))); diff != "" {
				t.Errorf("events (-by hand, and one activity; +by module):\n%s", diff)
			}
		})
	}
}

// callBytes are the bytes of every payload that the calls of a run moved: inputs
// and headers there, results back.
func callBytes(history *historypb.History) (there, back int) {
	for _, event := range history.Events {
		if attributes := event.GetActivityTaskScheduledEventAttributes(); attributes != nil {
			there += attributes.Input.Size() + attributes.Header.Size()
		}
		if attributes := event.GetActivityTaskCompletedEventAttributes(); attributes != nil {
			back += attributes.Result.Size()
		}
	}
	return there, back
}

// What a call may carry beside its inputs, and a result beside its output. Ids
// count: the run's, which the test makes 41 bytes long, the server's and the
// module's. Of a result, 64 are the hash of the schemas that ran.
const (
	maxCallBytes   = 400
	maxResultBytes = 200
)

// Cost: with a small context (an identity with a role, a trace, no shared data) a
// call sends at most 400 bytes above its inputs.
func TestPayloadBytesPerCall(t *testing.T) {
	t.Parallel()
	c := newContest(t, testsuite.DevServer(t))
	const calls = 20
	there, back := callBytes(c.run(byModule, ByModule, Steps{2, 10}, order))
	handThere, handBack := callBytes(c.run(byHand, ByHand, Steps{2, 10}, order))
	more, moreBack := (there-handThere)/calls, (back-handBack)/calls
	t.Logf("a call of %d bytes by hand has %d more, a result of %d has %d more", handThere/calls, more, handBack/calls, moreBack)
	if more > maxCallBytes || more < 1 {
		t.Errorf("%d bytes above the inputs, want up to %d", more, maxCallBytes)
	}
	if moreBack > maxResultBytes || moreBack < 1 {
		t.Errorf("%d bytes above the output, want up to %d", moreBack, maxResultBytes)
	}
}
