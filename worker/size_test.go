package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

type sizeText struct {
	Text string `json:"text"`
}

type sizeOrder struct {
	Bytes int `json:"bytes"`
}

// newSizeExecutor hosts size.take, which says how much it got, size.make, which
// returns a text of a length, size.note, which notes one in the context's data,
// size.fail, which fails with a message of a length, and size.gated.
func newSizeExecutor(t *testing.T) *apcore.Executor {
	t.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	readonly := apcore.Annotations{Readonly: true}
	take := func(_ context.Context, in sizeText) (sizeOrder, error) { return sizeOrder{len(in.Text)}, nil }
	must(t, errors.Join(
		apcore.Register(registry, "size.take", take, apcore.Spec{Description: "Takes", Annotations: readonly}),
		apcore.Register(registry, "size.gated", take, apcore.Spec{Description: "Takes", Annotations: apcore.Annotations{RequiresApproval: true}}),
		apcore.Register(registry, "size.make", func(_ context.Context, in sizeOrder) (sizeText, error) {
			return sizeText{strings.Repeat("x", in.Bytes)}, nil
		}, apcore.Spec{Description: "Makes", Annotations: readonly}),
		apcore.Register(registry, "size.note", func(ctx context.Context, in sizeOrder) (sizeOrder, error) {
			c, _ := apcore.FromContext(ctx)
			c.Data().Set("note", strings.Repeat("x", in.Bytes))
			return in, nil
		}, apcore.Spec{Description: "Notes", Annotations: readonly}),
		apcore.Register(registry, "size.fail", func(_ context.Context, in sizeOrder) (sizeOrder, error) {
			return in, apcore.NewError("SIZE_FAILED", "%s", strings.Repeat("x", in.Bytes)).WithDetail("dump", strings.Repeat("y", in.Bytes)).WithRetryable(new(false))
		}, apcore.Spec{Description: "Fails", Annotations: readonly}),
	))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{ApprovalHandler: temporal.NewApprovalHandler(), Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	return executor
}

// serve runs a worker with these options until the test ends.
func serve(t *testing.T, c client.Client, executor *apcore.Executor, opts worker.Options, fns ...any) *site {
	t.Helper()
	s := &site{t: t, queue: "site-" + uuid.NewString(), client: c}
	var err error
	s.approvals, err = temporal.NewApprovals(c, temporal.ApprovalsOptions{Timeout: time.Minute})
	must(t, err)
	opts.StopTimeout = time.Second
	// Large values on a slow machine are no deadlock.
	opts.SDK.DeadlockDetectionTimeout = 30 * time.Second
	w, err := worker.New(c, s.queue, executor, opts)
	must(t, err)
	for _, fn := range fns {
		w.Registry().RegisterWorkflow(fn)
	}
	must(t, w.Start())
	t.Cleanup(w.Stop)
	return s
}

// FanOut makes many calls in one workflow task and adds up what arrived.
func FanOut(ctx workflow.Context, count, size int) (int, error) {
	var calls []*temporal.Future[sizeOrder]
	for range count {
		calls = append(calls, temporal.CallAsync[sizeOrder](ctx, "size.take", sizeText{strings.Repeat("x", size)}))
	}
	sum := 0
	for _, call := range calls {
		got, err := call.Get(ctx)
		if err != nil {
			return 0, err
		}
		sum += got.Bytes
	}
	return sum, nil
}

// largestTask returns the most bytes of activity inputs that one workflow task
// scheduled.
func largestTask(history *historypb.History) int {
	tasks := map[int64]int{}
	largest := 0
	for _, event := range history.Events {
		if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled != nil {
			tasks[scheduled.WorkflowTaskCompletedEventId] += scheduled.Input.Size()
			largest = max(largest, tasks[scheduled.WorkflowTaskCompletedEventId])
		}
	}
	return largest
}

// Scenario 58, pitfall 23, target 30: what many calls send together stays below
// what a server takes at once. The rest waits for the next workflow task, and a
// replay decides the same.
func TestSumOfInputs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ count, size, timers int }{
		"20 x 200 KB": {20, 200_000, 1}, "40 x 150 KB": {40, 150_000, 1}, "few": {10, 200_000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, testsuite.DevServer(t).Client(t, client.Options{}), newSizeExecutor(t), worker.Options{}, FanOut)
			run := s.start(t.Context(), FanOut, test.count, test.size)
			var sum int
			must(t, s.end(run, &sum))
			if sum != test.count*test.size {
				t.Errorf("%d bytes arrived", sum)
			}
			counts := s.events(run.GetID())
			if counts[enums.EVENT_TYPE_WORKFLOW_TASK_FAILED] > 0 || counts[enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED] != test.count {
				t.Errorf("events %v", counts)
			}
			if got := counts[enums.EVENT_TYPE_TIMER_STARTED]; got != test.timers {
				t.Errorf("%d timers, want %d", got, test.timers)
			}
			history := testsuite.History(t, s.client, run.GetID())
			if got := largestTask(history); got > temporal.DefaultMaxTaskBytes {
				t.Errorf("one task sent %d bytes", got)
			}
			must(t, testsuite.Replay(newSizeExecutor(t), history, FanOut))
		})
	}
}

// LocalFanOut has many results of one size arrive in one workflow task.
func LocalFanOut(ctx workflow.Context, count, size int) (int, error) {
	ctx = temporal.WithCallOptions(ctx, temporal.CallOptions{Execution: durable.ExecutionLocal})
	var calls []*temporal.Future[sizeText]
	for range count {
		calls = append(calls, temporal.CallAsync[sizeText](ctx, "size.make", sizeOrder{size}))
	}
	sum := 0
	for _, call := range calls {
		got, err := call.Get(ctx)
		if err != nil {
			return 0, err
		}
		sum += len(got.Text)
	}
	return sum, nil
}

// Results of local units are sent with the workflow task: they are small, and
// many of them do not come together.
func TestLocalResultsAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, testsuite.DevServer(t).Client(t, client.Options{}), newSizeExecutor(t), worker.Options{}, LocalFanOut)
	run := s.start(t.Context(), LocalFanOut, 100, 64_000)
	var sum int
	must(t, s.end(run, &sum))
	if counts := s.events(run.GetID()); sum != 6_400_000 || counts[enums.EVENT_TYPE_WORKFLOW_TASK_FAILED] > 0 || counts[enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED] > 0 {
		t.Errorf("%d bytes, events %v", sum, counts)
	}
	must(t, testsuite.Replay(newSizeExecutor(t), testsuite.History(t, s.client, run.GetID()), LocalFanOut))
	run = s.start(t.Context(), LocalFanOut, 1, 65<<10)
	if e := temporal.AsError(s.end(run, nil)); e == nil || e.Code != durable.CodePayloadTooLarge || e.Details["path"] != "local result" || e.ModuleID() != "size.make" {
		t.Errorf("ended with %v", e)
	}
}

// Sized sends a value of a size along one path; overhead is what the value has
// around its text.
func Sized(ctx workflow.Context, path string, size, run int) (string, error) {
	text := strings.Repeat("x", size)
	if err := workflow.SetQueryHandler(ctx, "text", func() (string, error) { return text, nil }); err != nil {
		return "", err
	}
	done := workflow.NewBufferedChannel(ctx, 1)
	if err := workflow.SetUpdateHandler(ctx, "text", func(ctx workflow.Context) (string, error) {
		done.Send(ctx, true)
		return text, nil
	}); err != nil {
		return "", err
	}
	var err error
	switch path {
	case "inputs":
		_, err = temporal.Call[sizeOrder](ctx, "size.take", sizeText{text})
	case "escaped inputs":
		_, err = temporal.Call[sizeOrder](ctx, "size.take", sizeText{strings.Repeat("<", size)})
	case "output":
		_, err = temporal.Call[sizeText](ctx, "size.make", sizeOrder{size})
	case "context":
		if _, err = temporal.Call[sizeOrder](ctx, "size.note", sizeOrder{size}); err == nil {
			_, err = temporal.Call[sizeOrder](ctx, "size.take", sizeText{})
		}
	case "result":
		return text, nil
	case "arguments of the next run":
		if run == 1 {
			return "", workflow.NewContinueAsNewErrorWithOptions(ctx, workflow.ContinueAsNewErrorOptions{}, Sized, text, 0, 2)
		}
	case "arguments of workflow Sized":
		err = workflow.ExecuteChildWorkflow(ctx, Sized, text, 0, 2).Get(ctx, nil)
	case "update text", "query text":
		done.Receive(ctx, nil)
	case "gated":
		_, err = temporal.Call[sizeOrder](ctx, "size.gated", sizeText{text})
	case "error":
		_, err = temporal.Call[sizeOrder](ctx, "size.fail", sizeOrder{size})
	}
	return "", err
}

const kib = 1 << 10

// Pitfalls 21 and 22, scenario 58, target 30: on every path, a value at the limit
// passes and one byte more is an error that names path, size and limit; nothing
// ever fails a workflow task.
func TestEveryPathHasALimit(t *testing.T) {
	t.Parallel()
	c := testsuite.DevServer(t).Client(t, client.Options{})
	// One limit for all paths that a value of the run itself takes.
	limits := temporal.Limits{MaxInputBytes: 64 * kib, MaxContextBytes: 32 * kib, MaxResultBytes: 96 * kib}
	s := serve(t, c, newSizeExecutor(t), worker.Options{PluginOptions: worker.PluginOptions{
		Limits: limits, Invoker: durable.InvokerOptions{MaxOutputBytes: 64 * kib},
	}}, Sized)
	for path, limit := range map[string]int{
		"inputs": limits.MaxInputBytes, "output": 64 * kib, "context": limits.MaxContextBytes, "result": limits.MaxResultBytes,
		"arguments of the next run": limits.MaxResultBytes, "arguments of workflow Sized": limits.MaxResultBytes,
		"update text": limits.MaxResultBytes, "query text": limits.MaxResultBytes,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			around := s.around(t, path, limit)
			for _, delta := range []int{-1, 0, 1} {
				id, err := s.sendSized(t, path, limit-around+delta)
				e := temporal.AsError(err)
				switch {
				case delta <= 0 && err != nil:
					t.Errorf("limit%+d: %v", delta, err)
				case delta > 0 && (e == nil || e.Code != durable.CodePayloadTooLarge):
					t.Errorf("limit%+d: %v", delta, err)
				case delta > 0 && path != "query text": // a query's answer has a text only
					if number(e.Details["size"]) != limit+1 || number(e.Details["limit"]) != limit || e.Details["path"] != path {
						t.Errorf("details %v", e.Details)
					}
				}
				if n := s.events(id)[enums.EVENT_TYPE_WORKFLOW_TASK_FAILED]; n > 0 {
					t.Errorf("limit%+d: %d workflow tasks failed", delta, n)
				}
			}
		})
	}
}

func number(value any) int {
	text, _ := json.Marshal(value)
	var n int
	_ = json.Unmarshal(text, &n)
	return n
}

// around finds how much a path puts around a text, from the size that a value
// twice as large as the limit is refused with.
func (s *site) around(t *testing.T, path string, limit int) int {
	t.Helper()
	_, err := s.sendSized(t, path, limit*2-kib)
	e := temporal.AsError(err)
	if e == nil || e.Code != durable.CodePayloadTooLarge {
		t.Fatalf("%s: %v", path, err)
	}
	size := number(e.Details["size"])
	if path == "query text" {
		size = number(json.RawMessage(between(e.Message, "has ", " bytes")))
	}
	around := size - (limit*2 - kib)
	if around < 0 || around > kib {
		t.Fatalf("%s: %d bytes around the text: %v", path, around, e.Details)
	}
	return around
}

func between(text, before, after string) string {
	_, rest, _ := strings.Cut(text, before)
	found, _, _ := strings.Cut(rest, after)
	return found
}

// sendSized runs Sized and returns the error of the path, as the client sees it.
func (s *site) sendSized(t *testing.T, path string, size int) (string, error) {
	t.Helper()
	run := s.start(t.Context(), Sized, path, size, 1)
	var err error
	switch path {
	case "update text":
		var handle client.WorkflowUpdateHandle
		handle, err = s.client.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{WorkflowID: run.GetID(), UpdateName: "text", WaitForStage: client.WorkflowUpdateStageCompleted})
		if err == nil {
			err = handle.Get(t.Context(), nil)
		}
	case "query text":
		_, err = s.client.QueryWorkflow(t.Context(), run.GetID(), "", "text")
		must(t, s.client.TerminateWorkflow(t.Context(), run.GetID(), "", "asked enough"))
		// A query that is answered together with a workflow task loses its failure
		// on the server and keeps the text.
		if err != nil && strings.Contains(err.Error(), string(durable.CodePayloadTooLarge)) {
			err = apcore.NewError(durable.CodePayloadTooLarge, "%w", err)
		}
		return run.GetID(), err
	}
	return run.GetID(), errors.Join(err, s.end(run, nil))
}

// Defaults stay below what a server takes: values at them pass, also when JSON
// makes six bytes out of one and when a person has to approve them; 3 MB fails.
func TestDefaultLimitsPass(t *testing.T) {
	t.Parallel()
	s := serve(t, testsuite.DevServer(t).Client(t, client.Options{}), newSizeExecutor(t), worker.Options{}, Sized)
	longError := 3_000_000
	if underRace { // which takes half a minute to clean it of secrets
		longError = 300_000
	}
	for name, test := range map[string]struct {
		path string
		size int
		want apcore.Code
	}{
		"inputs at 1 MiB": {"inputs", 1<<20 - 11, ""}, "inputs of 3 MB": {"inputs", 3_000_000, durable.CodePayloadTooLarge},
		"escaped inputs": {"escaped inputs", 1<<20/6 - 2, ""}, "escaped inputs of 1.2 MB": {"escaped inputs", 200_000, durable.CodePayloadTooLarge},
		"output at 1 MiB": {"output", 1<<20 - 11, ""}, "output of 3 MB": {"output", 3_000_000, durable.CodePayloadTooLarge},
		"result of 1.4 MiB": {"result", 1_400 * kib, ""}, "result of 3 MB": {"result", 3_000_000, durable.CodePayloadTooLarge},
		"next run of 1.4 MiB": {"arguments of the next run", 1_400 * kib, ""}, "next run of 3 MB": {"arguments of the next run", 3_000_000, durable.CodePayloadTooLarge},
		"update of 3 MB": {"update text", 3_000_000, durable.CodePayloadTooLarge}, "query of 3 MB": {"query text", 3_000_000, durable.CodePayloadTooLarge},
		"query of 5 MB": {"query text", 5_000_000, durable.CodePayloadTooLarge},
		// Data of 2.5 MB is refused where it comes from already.
		"context of 2.5 MB": {"context", 2_500_000, durable.CodePayloadTooLarge},
		"long error":        {"error", longError, "SIZE_FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, err := s.sendSized(t, test.path, test.size)
			if e := temporal.AsError(err); (test.want == "") != (e == nil) || e != nil && e.Code != test.want {
				t.Errorf("ended with %v, want %q", err, test.want)
			}
			if n := s.events(id)[enums.EVENT_TYPE_WORKFLOW_TASK_FAILED]; n > 0 {
				t.Errorf("%d workflow tasks failed", n)
			}
		})
	}
	t.Run("approved", func(t *testing.T) {
		t.Parallel()
		run := s.start(t.Context(), Sized, "gated", 1<<20-11, 1)
		approval := s.pending(run.GetID())
		word := approve(approval.ApprovalID)
		word.Metadata = map[string]any{"essay": strings.Repeat("z", 100_000)}
		must(t, s.approvals.Decide(t.Context(), run.GetID(), word))
		must(t, s.end(run, nil))
	})
	t.Run("approved with too much to say", func(t *testing.T) {
		t.Parallel()
		run := s.start(t.Context(), Sized, "gated", 1<<20-11, 1)
		word := approve(s.pending(run.GetID()).ApprovalID)
		word.Metadata = map[string]any{"essay": strings.Repeat("z", 1_000_000)}
		err := s.approvals.Decide(t.Context(), run.GetID(), word)
		end := s.end(run, nil)
		if e := temporal.AsError(errors.Join(err, end)); e == nil || (e.Code != durable.CodePayloadTooLarge && e.Code != durable.CodeDecisionInvalid) {
			t.Errorf("decided with %v, ended with %v", err, end)
		}
		if n := s.events(run.GetID())[enums.EVENT_TYPE_WORKFLOW_TASK_FAILED]; n > 0 {
			t.Errorf("%d workflow tasks failed", n)
		}
	})
}
