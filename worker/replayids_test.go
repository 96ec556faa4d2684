package worker_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// eavesdropper writes down what a workflow hands to its activities.
type eavesdropper struct {
	interceptor.WorkerInterceptorBase
	heard []string
}

func (l *eavesdropper) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &listening{interceptor.WorkflowInboundInterceptorBase{Next: next}, l}
}

type listening struct {
	interceptor.WorkflowInboundInterceptorBase
	to *eavesdropper
}

func (l *listening) Init(next interceptor.WorkflowOutboundInterceptor) error {
	return l.Next.Init(&overhearing{interceptor.WorkflowOutboundInterceptorBase{Next: next}, l.to})
}

type overhearing struct {
	interceptor.WorkflowOutboundInterceptorBase
	to *eavesdropper
}

func (o *overhearing) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	payload, err := converter.GetDefaultDataConverter().ToPayload(args[0])
	if err == nil {
		o.to.heard = append(o.to.heard, name+" "+string(payload.Data))
	}
	return o.Next.ExecuteActivity(ctx, name, args...)
}

// Tenfold makes ten gated calls at once and then one more, which sees their data.
func Tenfold(ctx workflow.Context) error {
	calls := make([]*temporal.Future[map[string]any], 10)
	for i := range calls {
		calls[i] = temporal.CallAsync[map[string]any](ctx, "test.gated", map[string]any{"how": string(rune('a' + i))})
	}
	for _, call := range calls {
		if _, err := call.Get(ctx); err != nil {
			return err
		}
	}
	_, err := temporal.Call[map[string]any](ctx, "test.read", nil)
	return err
}

// Pitfalls 3 and 5: a replay makes not only the commands of the run but their
// very contents, which the SDK does not compare: ids, times, contexts, grants and
// the order in which ten approved calls went on, a hundred times. Pitfall 30: the
// worker beside goes on working.
func TestReplayRepeatsEveryID(t *testing.T) {
	t.Parallel()
	s := newSite(t, Tenfold, Call)
	run := s.start(t.Context(), Tenfold)
	var list []durable.Approval
	s.until("ten approvals", func() (done bool) {
		list, _ = s.approvals.List(t.Context(), run.GetID())
		return len(list) == 10
	})
	for i := range list { // in another order than they were asked
		must(t, s.approvals.Send(t.Context(), run.GetID(), approve(list[(i*7)%10].ApprovalID)))
	}
	must(t, s.end(run, nil))
	history := testsuite.History(t, s.client, run.GetID())
	recorded := scheduledInputs(history)
	if len(recorded) != 21 || s.ran.Load() != 11 {
		t.Fatalf("%d units and %d effects of ten gated calls and one more", len(recorded), s.ran.Load())
	}
	for range 100 {
		time.Sleep(2 * time.Millisecond) // a clock that was asked would tell another time
		heard := &eavesdropper{}
		replayer, err := sdkworker.NewWorkflowReplayerWithOptions(sdkworker.WorkflowReplayerOptions{
			Plugins: []sdkworker.Plugin{pluginOf(t, s)}, Interceptors: []interceptor.WorkerInterceptor{heard},
		})
		must(t, err)
		replayer.RegisterWorkflow(Tenfold)
		must(t, replayer.ReplayWorkflowHistoryWithOptions(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), history, sdkworker.ReplayWorkflowHistoryOptions{
			OriginalExecution: workflow.Execution{ID: run.GetID(), RunID: run.GetRunID()},
		}))
		if diff := cmp.Diff(recorded, heard.heard); diff != "" {
			t.Fatalf("what was sent (-run +replay):\n%s", diff)
		}
	}
	must(t, s.end(s.start(t.Context(), Call, "test.read", nil, temporal.CallOptions{}), nil))
}

func pluginOf(t *testing.T, s *site) sdkworker.Plugin {
	t.Helper()
	plugin, err := worker.NewPlugin(s.executor, worker.PluginOptions{})
	must(t, err)
	return plugin
}

func scheduledInputs(history *historypb.History) []string {
	var inputs []string
	for _, event := range history.Events {
		if a := event.GetActivityTaskScheduledEventAttributes(); a != nil {
			inputs = append(inputs, a.ActivityType.Name+" "+string(a.Input.Payloads[0].Data))
		}
	}
	return inputs
}
