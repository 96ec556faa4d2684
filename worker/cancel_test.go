package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	sdktemporal "go.temporal.io/sdk/temporal"
	sdktestsuite "go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// Ended says how a call ended that may have been cancelled.
func Ended(ctx workflow.Context, id string, in map[string]any, opts temporal.CallOptions) (string, error) {
	out, err := temporal.Call[map[string]any](temporal.WithCallOptions(ctx, opts), id, in)
	switch {
	case err == nil && out["ok"] == true:
		return "kept", nil
	case apcore.CodeOf(err) == apcore.CodeExecutionCancelled:
		return "cancelled", nil
	default:
		return "", fmt.Errorf("output %v: %w", out, err)
	}
}

// storm is one call that is cancelled at some time.
type storm struct {
	module string
	opts   temporal.CallOptions
	decide bool // at a random time, too
}

// stormy is every kind of waiting that a cancellation can meet.
func stormy() []storm {
	retry := &sdktemporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 1}
	return []storm{
		{module: "test.charge"},
		{module: "test.read"},
		{module: "test.read", opts: temporal.CallOptions{Execution: durable.ExecutionLocal}},
		{module: "test.flaky", opts: temporal.CallOptions{RetryPolicy: retry}},
		{module: "test.limited", opts: temporal.CallOptions{RetryPolicy: retry}},
		{module: "test.gated", decide: true},
		{module: "no.such", opts: temporal.CallOptions{RetryPolicy: retry}},
	}
}

// stormHost hosts the modules; cancel, if given, is called in the middle of those
// that run at once.
func stormHost(t testing.TB, book *ledger, cancel, pause func()) *apcore.Executor {
	t.Helper()
	effect := func(name string) moduleFunc {
		return func(ctx context.Context, _ map[string]any) (map[string]any, error) {
			if cancel != nil {
				go cancel()
			}
			pause()
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			book.write(name)
			pause()
			return map[string]any{"ok": true}, nil
		}
	}
	flaky := func(context.Context, map[string]any) (map[string]any, error) {
		if book.write("tries") < 4 {
			return nil, errBoom
		}
		book.write("test.flaky")
		return map[string]any{"ok": true}, nil
	}
	readonly := apcore.Annotations{Readonly: true}
	return executorOf(t, apcore.ExecutorOptions{ApprovalHandler: temporal.NewApprovalHandler(), Middleware: []apcore.Middleware{busyAtFirst{book: book}}},
		module{id: "test.charge", run: effect("test.charge")},
		module{id: "test.read", annotations: readonly, run: effect("test.read")},
		module{id: "test.flaky", annotations: readonly, run: flaky},
		module{id: "test.limited", run: effect("test.limited")},
		module{id: "test.gated", annotations: apcore.Annotations{RequiresApproval: true}, run: effect("test.gated")},
	)
}

// busyAtFirst refuses test.limited three times before it starts.
type busyAtFirst struct {
	apcore.BaseMiddleware
	book *ledger
}

func (b busyAtFirst) Before(_ context.Context, call *apcore.MiddlewareCall) (map[string]any, error) {
	if call.ModuleID == "test.limited" && b.book.write("refusals") < 4 {
		return nil, apcore.NewError(apcore.CodeCircuitBreakerOpen, "busy")
	}
	return nil, nil
}

// Pitfall 28: a thousand calls are cancelled at random times, while they run, wait
// for another attempt, for a worker that knows the module or for an approver. Each
// ends; a result that arrived is kept, and what ended with none says cancelled.
func TestAThousandCancels(t *testing.T) {
	t.Parallel()
	const rounds = 1000
	random := rand.New(rand.NewPCG(7, 28)) //nolint:gosec // the same storm every time
	kept := map[string]int{}
	for round := range rounds {
		s := stormy()[round%len(stormy())]
		spins, at := random.IntN(40), time.Duration(random.IntN(8000))*time.Millisecond
		book := &ledger{}
		var env *sdktestsuite.TestWorkflowEnvironment
		var cancel func()
		if round%2 == 0 && s.module != "test.gated" { // in real time, while the module runs
			cancel = func() { env.CancelWorkflow() }
		}
		env = testsuite.NewEnvironment(t, stormHost(t, book, cancel, func() {
			for range spins {
				runtime.Gosched()
			}
		}))
		env.SetTestTimeout(time.Minute)
		if cancel == nil { // in the run's time, while it waits
			env.RegisterDelayedCallback(env.CancelWorkflow, at)
		}
		if s.decide {
			env.RegisterDelayedCallback(func() { decideFirst(env) }, time.Duration(random.IntN(8000))*time.Millisecond)
		}
		env.ExecuteWorkflow(Ended, s.module, nil, s.opts)
		if !env.IsWorkflowCompleted() {
			t.Fatalf("round %d: the call of %s hangs", round, s.module)
		}
		how := ""
		switch err := env.GetWorkflowError(); {
		case err == nil:
			must(t, env.GetWorkflowResult(&how))
		case s.module == "no.such" && codeOf(err) == apcore.CodeModuleNotFound:
			how = "not found"
		default:
			t.Errorf("round %d: %s ended with %v", round, s.module, err)
		}
		if effects := book.count(s.module); effects > 1 || how == "kept" && effects != 1 {
			t.Errorf("round %d: %s was %s after %d effects", round, s.module, how, effects)
		}
		kept[how]++
	}
	if kept["kept"] < rounds/20 || kept["cancelled"] < rounds/20 {
		t.Errorf("the storm blows from one side: %v", kept)
	}
	t.Logf("how they ended: %v", kept)
}

// decideFirst approves the first approval that waits, if the run still can.
func decideFirst(env *sdktestsuite.TestWorkflowEnvironment) {
	value, err := env.QueryWorkflow("apcore/approvals")
	if err != nil {
		return
	}
	var list []durable.Approval
	if value.Get(&list) == nil && len(list) > 0 {
		env.SignalWorkflow("apcore/approval", approve(list[0].ApprovalID))
	}
}

// Pitfall 28 on the server, with default options but for a short heartbeat.
func TestCancelsOnTheServer(t *testing.T) {
	t.Parallel()
	const rounds = 42
	random := rand.New(rand.NewPCG(7, 28)) //nolint:gosec // the same storm every time
	kept := map[string]int{}
	var ends []func()
	for round := range rounds {
		s := stormy()[round%len(stormy())]
		at := time.Duration(random.IntN(1500)) * time.Millisecond
		pause := time.Duration(random.IntN(500)) * time.Millisecond
		book := &ledger{}
		place := newQueue(t)
		place.work(stormHost(t, book, nil, func() { time.Sleep(pause) }), worker.Options{}, Ended)
		if s.opts.Execution == "" {
			s.opts.Heartbeat = 500 * time.Millisecond
		}
		s.opts.ApprovalTimeout = time.Minute
		run := place.start(t.Context(), Ended, s.module, nil, s.opts)
		time.AfterFunc(at, func() { _ = place.client.CancelWorkflow(t.Context(), run.GetID(), "") }) // it may have ended
		ends = append(ends, func() {
			how := ""
			if err := place.end(run, &how); err != nil && codeOf(err) != apcore.CodeExecutionCancelled && codeOf(err) != apcore.CodeModuleNotFound {
				t.Errorf("%s ended with %v", s.module, err)
			}
			if effects := book.count(s.module); effects > 1 || how == "kept" && effects != 1 {
				t.Errorf("%s was %s after %d effects", s.module, how, effects)
			}
			place.noTaskFailed(run.GetID())
			kept[how]++
		})
	}
	for _, end := range ends {
		end()
	}
	if kept["kept"] == 0 || kept["cancelled"] == 0 {
		t.Errorf("the storm blows from one side: %v", kept)
	}
	t.Logf("how they ended: %v", kept)
}
