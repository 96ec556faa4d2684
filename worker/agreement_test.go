package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
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

// agreement is one call that must end alike everywhere.
type agreement struct {
	name    string
	module  string
	in      any
	want    apcore.Code
	effects int
}

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("no") }

// agreements are the calls of scenarios 36 (always fails), 39 (not retryable,
// wrapped), 53 (cannot be sent, either way) and the ways a module breaks.
func agreements() []agreement {
	var all []agreement
	for _, module := range []string{"test.read", "test.put"} {
		for _, how := range []agreement{
			{name: "fail", want: apcore.CodeModuleExecuteError, effects: durable.DefaultAttempts},
			{name: "fail twice", effects: 3},
			{name: "retryable", want: "ACME_BUSY", effects: durable.DefaultAttempts},
			{name: "denied", want: apcore.CodeACLDenied, effects: 1},
			{name: "denied, wrapped twice", want: apcore.CodeACLDenied, effects: 1},
			{name: "denied, joined", want: apcore.CodeACLDenied, effects: 1},
			{name: "denied because of a retryable", want: apcore.CodeACLDenied, effects: 1},
			{name: "retryable says denied", want: apcore.CodeACLDenied, effects: 1},
			{name: "panic", want: apcore.CodeModuleExecuteError, effects: durable.DefaultAttempts},
			{name: "output NaN", want: apcore.CodeModuleExecuteError, effects: 1},
			{name: "output panics", want: apcore.CodeModuleExecuteError, effects: 1},
			{name: "output too large", want: durable.CodePayloadTooLarge, effects: 1},
		} {
			how.module, how.in = module, map[string]any{"how": how.name}
			all = append(all, how)
		}
	}
	return append(all,
		agreement{name: "NaN", module: "test.read", in: map[string]any{"x": math.NaN()}, want: apcore.CodeInvalidInput},
		agreement{name: "channel", module: "test.read", in: map[string]any{"x": make(chan int)}, want: apcore.CodeInvalidInput},
		agreement{name: "panicking marshaller", module: "test.read", in: panics{}, want: apcore.CodeInvalidInput},
		agreement{name: "list", module: "test.read", in: []int{1}, want: apcore.CodeInvalidInput},
		agreement{name: "token", module: "test.read", in: map[string]any{"_approval_token": "x"}, want: durable.CodeTokenRefused},
	)
}

// actor does what its input says and writes a line for each time.
func actor(book *ledger) moduleFunc {
	denied := apcore.NewError(apcore.CodeACLDenied, "not yours")
	busy := apcore.NewError("ACME_BUSY", "busy").WithRetryable(new(true))
	return func(_ context.Context, in map[string]any) (map[string]any, error) {
		how, _ := in["how"].(string)
		lane, _ := in["lane"].(string)
		times := book.write(lane + how)
		switch how {
		case "fail":
			return nil, errBoom
		case "fail twice":
			if times < 3 {
				return nil, errBoom
			}
		case "retryable":
			return nil, busy
		case "denied":
			return nil, denied
		case "denied, wrapped twice":
			return nil, fmt.Errorf("a: %w", fmt.Errorf("b: %w", denied))
		case "denied, joined":
			return nil, errors.Join(errBoom, denied)
		case "denied because of a retryable":
			return nil, denied.WithCause(busy)
		case "retryable says denied":
			return nil, denied.WithRetryable(new(true))
		case "panic":
			panic("secret text")
		case "output NaN":
			return map[string]any{"x": math.NaN()}, nil
		case "output panics":
			return map[string]any{"x": panics{}}, nil
		case "output too large":
			return map[string]any{"x": strings.Repeat("x", durable.DefaultMaxOutputBytes)}, nil
		}
		return map[string]any{"ok": true}, nil
	}
}

func actors(t testing.TB, book *ledger) *apcore.Executor {
	t.Helper()
	return executorOf(t, apcore.ExecutorOptions{},
		module{id: "test.read", annotations: apcore.Annotations{Readonly: true}, run: actor(book)},
		module{id: "test.put", annotations: apcore.Annotations{Idempotent: true}, run: actor(book)},
	)
}

// Agree makes every call of the scenarios, side by side, and returns their codes.
func Agree(ctx workflow.Context, lane string, execution durable.Execution) ([]string, error) {
	ctx = temporal.WithCallOptions(ctx, temporal.CallOptions{
		Execution: execution, RetryPolicy: &sdktemporal.RetryPolicy{InitialInterval: time.Millisecond, BackoffCoefficient: 1},
	})
	var calls []*temporal.Future[map[string]any]
	for _, each := range agreements() {
		in := each.in
		if object, ok := in.(map[string]any); ok && object["how"] != nil {
			in = map[string]any{"how": object["how"], "lane": lane + each.module + " "}
		}
		calls = append(calls, temporal.CallAsync[map[string]any](ctx, each.module, in))
	}
	var codes []string
	for at, each := range agreements() {
		out, err := calls[at].Get(ctx)
		if err == nil && out["ok"] != true {
			return nil, fmt.Errorf("%s: output %v", each.name, out)
		}
		codes = append(codes, string(apcore.CodeOf(err)))
	}
	return codes, nil
}

// Scenario 40: the same calls end alike, with the same effects, in the test
// environment and on a server, as activities and as local ones.
func TestEveryLaneAgrees(t *testing.T) {
	t.Parallel()
	for _, execution := range []durable.Execution{durable.ExecutionActivity, durable.ExecutionLocal} {
		t.Run("environment, "+string(execution), func(t *testing.T) {
			t.Parallel()
			book := &ledger{}
			env := testsuite.NewEnvironment(t, actors(t, book))
			env.ExecuteWorkflow(Agree, "", execution)
			must(t, env.GetWorkflowError())
			var codes []string
			must(t, env.GetWorkflowResult(&codes))
			check(t, codes, book)
		})
		t.Run("server, "+string(execution), func(t *testing.T) {
			t.Parallel()
			book := &ledger{}
			s := newQueue(t)
			s.work(actors(t, book), worker.Options{}, Agree)
			run := s.start(t.Context(), Agree, "", execution)
			var codes []string
			must(t, s.end(run, &codes))
			check(t, codes, book)
			s.noTaskFailed(run.GetID())
			local := s.events(run.GetID())[enumspb.EVENT_TYPE_MARKER_RECORDED] > 0
			if activities := len(s.scheduled(run.GetID())) > 0; activities == local || local != (execution == durable.ExecutionLocal) {
				t.Errorf("activities %t, local ones %t", activities, local)
			}
		})
	}
}

func check(t *testing.T, codes []string, book *ledger) {
	t.Helper()
	effects := map[string]int{}
	for at, each := range agreements() {
		if codes[at] != string(each.want) {
			t.Errorf("%s of %s ended with %q, want %q", each.name, each.module, codes[at], each.want)
		}
		if each.effects == 0 {
			continue
		}
		name := each.module + " " + each.name
		effects[name] = each.effects
		if got := book.count(name); got != each.effects {
			t.Errorf("%s had %d effects, want %d", name, got, each.effects)
		}
	}
	if len(book.all()) != len(effects) {
		t.Errorf("ledger %v", book.all())
	}
}
