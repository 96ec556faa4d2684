package temporal_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

// rawExecutor hosts one readonly module without schemas that returns what fn does.
func rawExecutor(t *testing.T, annotations apcore.Annotations, fn func(context.Context, map[string]any) (map[string]any, error)) *apcore.Executor {
	t.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	module, err := apcore.NewRawFunc(fn, apcore.Spec{Description: "Does as told", Annotations: annotations, InputSchema: map[string]any{}, OutputSchema: map[string]any{}})
	must(t, err)
	must(t, registry.Register("test.raw", module, apcore.RegisterOptions{}))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{ApprovalHandler: temporal.NewApprovalHandler(), Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	return executor
}

// Scenario 41: every error of the standard, and one of the future, crosses from
// module to workflow to client with everything it says.
func TestEveryErrorCrossesWhole(t *testing.T) {
	for _, code := range append(apcore.FrameworkCodes(), "ACME_FROM_THE_FUTURE") {
		if code == apcore.CodeExecutionCancelled || code == apcore.CodeApprovalPending {
			continue // they mean something to the call itself, see their own tests
		}
		t.Run(string(code), func(t *testing.T) {
			given := apcore.NewError(code, "it went wrong").WithDetail("account", int64(9007199254740993)).WithDetail("list", []any{"a", true, nil}).
				WithCause(errors.New("the cause")).WithSuggestion("try the other door").WithRetryable(new(false))
			given.AIGuidance, given.UserFixable, given.TraceID = "ask the user", new(true), "4bf92f3577b34da6a3ce929d0e0e4736"
			executor := rawExecutor(t, apcore.Annotations{Readonly: true}, func(context.Context, map[string]any) (map[string]any, error) { return nil, given })
			want := given.WithDetail("module_id", "test.raw").WithDetail("call_chain", []any{"test.raw"}).Map()
			env := testsuite.NewEnvironment(t, executor)
			env.ExecuteWorkflow(func(ctx workflow.Context) error {
				_, err := temporal.Call[map[string]any](ctx, "test.raw", nil)
				if diff := cmp.Diff(asJSON(t, want), asJSON(t, apcore.AsError(err).Map())); diff != "" {
					t.Errorf("in the workflow (-want +got):\n%s", diff)
				}
				return err
			})
			if diff := cmp.Diff(asJSON(t, want), asJSON(t, temporal.AsError(env.GetWorkflowError()).Map())); diff != "" {
				t.Errorf("in the client (-want +got):\n%s", diff)
			}
		})
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := apcore.EncodeJSON(value)
	must(t, err)
	return string(text)
}

// Scenario 53, the way back: an output that cannot be sent has one effect and
// ends the call, however often the module might be repeated.
func TestBadOutputsAreErrors(t *testing.T) {
	cycle := map[string]any{}
	cycle["self"] = cycle
	for name, output := range map[string]map[string]any{
		"nothing": nil, "NaN": {"x": math.NaN()}, "channel": {"x": make(chan int)}, "cycle": cycle,
		"panicking marshaller": {"x": badMarshaler{}}, "invalid UTF-8": {"x": "\xff"}, "too large": {"x": make([]byte, durable.DefaultMaxOutputBytes)},
	} {
		t.Run(name, func(t *testing.T) {
			effects := 0
			executor := rawExecutor(t, apcore.Annotations{Readonly: true}, func(context.Context, map[string]any) (map[string]any, error) {
				effects++
				return output, nil
			})
			env := testsuite.NewEnvironment(t, executor)
			env.ExecuteWorkflow(func(ctx workflow.Context) error {
				_, err := temporal.Call[map[string]any](ctx, "test.raw", nil)
				return err
			})
			e := temporal.AsError(env.GetWorkflowError())
			if name == "nothing" { // a raw function that has nothing to say returns {}
				if e != nil || effects != 1 {
					t.Errorf("ended with %v after %d effects", e, effects)
				}
				return
			}
			want := apcore.CodeModuleExecuteError
			if name == "too large" {
				want = durable.CodePayloadTooLarge
			}
			if e == nil || e.Code != want || effects != 1 {
				t.Errorf("ended with %v after %d effects, want %s after one", e, effects, want)
			}
		})
	}
}

// Scenario 52, the other hops: what an approver sees, what travels as context
// data, and what the resumed module gets keep every digit.
func TestNumbersSurviveApprovalAndContext(t *testing.T) {
	const big = "18446744073709551615"
	got := ""
	executor := rawExecutor(t, apcore.Annotations{RequiresApproval: true}, func(ctx context.Context, in map[string]any) (map[string]any, error) {
		got = in["n"].(json.Number).String()
		c, _ := apcore.FromContext(ctx)
		c.Data().Set("n", in["n"])
		return map[string]any{}, nil
	})
	env := testsuite.NewEnvironment(t, executor)
	env.RegisterDelayedCallback(func() {
		list := approvals(t, env)
		if text := asJSON(t, list[0].Arguments); text != `{"n":`+big+`}` {
			t.Errorf("the approver sees %s", text)
		}
		env.SignalWorkflow("apcore/approval", decision(list[0].ApprovalID, apcore.ApprovalApproved))
	}, time.Second)
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		if _, err := temporal.Call[map[string]any](ctx, "test.raw", rawJSON(`{"n":`+big+`}`)); err != nil {
			return err
		}
		if text := asJSON(t, temporal.ContextData(ctx)); text != `{"n":`+big+`}` {
			t.Errorf("context data %s", text)
		}
		return nil
	})
	must(t, env.GetWorkflowError())
	if got != big {
		t.Errorf("the module got %s", got)
	}
}
