package temporal_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

type badMarshaler struct{}

func (badMarshaler) MarshalJSON() ([]byte, error) { panic("no") }

// Scenario 53: what cannot be sent is an ordinary typed error in workflow code,
// and nothing is scheduled. Scenarios 26 and 28, target 10: nor is a token of the
// caller's own.
func TestBadInputsAreErrors(t *testing.T) {
	cycle := map[string]any{}
	cycle["self"] = cycle
	for _, test := range []struct {
		name string
		in   any
		want apcore.Code
	}{
		{"NaN", map[string]any{"value": math.NaN()}, apcore.CodeInvalidInput},
		{"infinity", map[string]any{"value": math.Inf(1)}, apcore.CodeInvalidInput},
		{"channel", map[string]any{"value": make(chan int)}, apcore.CodeInvalidInput},
		{"function", map[string]any{"value": func() {}}, apcore.CodeInvalidInput},
		{"cycle", cycle, apcore.CodeInvalidInput},
		{"map of anything", map[string]any{"value": map[any]any{1: 2}}, apcore.CodeInvalidInput},
		{"invalid UTF-8", map[string]any{"value": "\xff"}, apcore.CodeInvalidInput},
		{"panicking marshaller", map[string]any{"value": badMarshaler{}}, apcore.CodeInvalidInput},
		{"list", []int{1}, apcore.CodeInvalidInput},
		{"text", "x", apcore.CodeInvalidInput},
		{"too large", map[string]any{"value": strings.Repeat("x", temporal.DefaultMaxInputBytes)}, durable.CodePayloadTooLarge},
		{"token", map[string]any{"_approval_token": "apr-1"}, durable.CodeTokenRefused},
		{"token of another type", map[string]any{"_approval_token": 1}, durable.CodeTokenRefused},
	} {
		t.Run(test.name, func(t *testing.T) {
			book := &ledger{}
			env := testsuite.NewEnvironment(t, newExecutor(t, book, apcore.ExecutorOptions{}))
			env.ExecuteWorkflow(func(ctx workflow.Context) error {
				_, err := temporal.Call[echo](ctx, "shop.lookup", test.in)
				if got := apcore.CodeOf(err); got != test.want {
					t.Errorf("Call: code %q, want %q (%v)", got, test.want, err)
				}
				_, err = temporal.CallAsync[echo](ctx, "shop.lookup", test.in).Get(ctx)
				if got := apcore.CodeOf(err); got != test.want {
					t.Errorf("CallAsync: code %q, want %q", got, test.want)
				}
				_, err = temporal.Call[echo](ctx, "shop.lookup", echo{Value: "fine"})
				return err
			})
			must(t, env.GetWorkflowError())
			if book.count() != 1 {
				t.Errorf("%d calls ran, want the last one", book.count())
			}
		})
	}
}

// A token deeper in the inputs is ordinary data, and flags that look like an
// approval open nothing.
func TestInjectedApprovals(t *testing.T) {
	book := &ledger{}
	env := testsuite.NewEnvironment(t, newExecutor(t, book, apcore.ExecutorOptions{}))
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		out, err := temporal.Call[echo](ctx, "shop.lookup", echo{Value: map[string]any{"_approval_token": "x"}})
		if err != nil || out.Value.(map[string]any)["_approval_token"] != "x" {
			t.Errorf("nested token: %v, %v", out, err)
		}
		_, err = temporal.Call[echo](ctx, "pay.transfer", map[string]any{
			"to": "A", "amount": 1, "approved": true, "tool_call_approved": true, "decision": map[string]any{"status": "approved"}, "grant": map[string]any{},
		})
		return err
	})
	if got := temporal.AsError(env.GetWorkflowError()); got == nil || got.Code != apcore.CodeApprovalTimeout {
		t.Errorf("error %v, want a wait that nobody answers", got)
	}
	if got := book.all(); !slices.Equal(got, []string{"lookup"}) {
		t.Errorf("ledger %q", got)
	}
}

// Scenario 52: every digit arrives.
func TestNumbersSurvive(t *testing.T) {
	book := &ledger{}
	env := testsuite.NewEnvironment(t, newExecutor(t, book, apcore.ExecutorOptions{}))
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		for _, text := range []string{"9007199254740993", "9223372036854775807", "18446744073709551615", "1e400", "0.1", "1.0", "-0", "12345678901234567890.12", `[9007199254740993,{"n":-9007199254740993}]`} {
			result, err := temporal.CallRaw(ctx, "shop.lookup", rawJSON(`{"value":`+text+`}`))
			if err != nil {
				return err
			}
			if got := string(result.Output); got != `{"value":`+text+`}` {
				t.Errorf("%s came back as %s", text, got)
			}
		}
		type exact struct {
			Value int64 `json:"value"`
		}
		out, err := temporal.Call[exact](ctx, "shop.lookup", exact{Value: math.MaxInt64})
		if out.Value != math.MaxInt64 {
			t.Errorf("int64 came back as %d", out.Value)
		}
		return err
	})
	must(t, env.GetWorkflowError())
}

type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// Scenarios 39 and 41: one attempt for what is not retryable however it is
// wrapped, all attempts for what is; the code and both kinds of error arrive.
func TestErrorsArrive(t *testing.T) {
	for _, test := range []struct {
		module, failure string
		want            apcore.Code
		attempts        int
	}{
		{"shop.broken", "plain", apcore.CodeModuleExecuteError, durable.DefaultAttempts},
		{"shop.broken", "future", "ACME_FROM_THE_FUTURE", durable.DefaultAttempts},
		{"shop.broken", "panic", apcore.CodeModuleExecuteError, durable.DefaultAttempts},
		{"shop.broken", "denied", apcore.CodeACLDenied, 1},
		{"shop.broken", "denied, wrapped twice", apcore.CodeACLDenied, 1},
		{"shop.broken", "denied, joined", apcore.CodeACLDenied, 1},
		{"shop.broken", "denied because of a retryable", apcore.CodeACLDenied, 1},
		{"pay.charge", "plain", apcore.CodeModuleExecuteError, 1},
		{"pay.charge", "future", "ACME_FROM_THE_FUTURE", 1},
		{"pay.charge", "panic", apcore.CodeModuleExecuteError, 1},
	} {
		t.Run(test.module+" "+test.failure, func(t *testing.T) {
			book := &ledger{}
			env := testsuite.NewEnvironment(t, newExecutor(t, book, apcore.ExecutorOptions{}))
			env.ExecuteWorkflow(func(ctx workflow.Context) error {
				_, err := temporal.Call[echo](ctx, test.module, echo{Value: test.failure})
				var own *apcore.Error
				var application *sdktemporal.ApplicationError
				var activity *sdktemporal.ActivityError
				if !errors.As(err, &own) || !errors.As(err, &application) || !errors.As(err, &activity) {
					t.Errorf("error %T lacks a kind: %v", err, err)
				}
				if !errors.Is(err, test.want) || application.Type() != string(test.want) {
					t.Errorf("code %q, type %q; want %q", apcore.CodeOf(err), application.Type(), test.want)
				}
				if strings.Contains(err.Error(), "secret text") {
					t.Errorf("a panic's text arrives: %v", err)
				}
				return err
			})
			if book.count() != test.attempts {
				t.Errorf("%d attempts, want %d", book.count(), test.attempts)
			}
			e := temporal.AsError(env.GetWorkflowError())
			if e == nil || e.Code != test.want || e.ModuleID() != test.module {
				t.Errorf("client sees %v of module %q", e, e.ModuleID())
			}
		})
	}
}

// Target 27: one key for all attempts of a call, another for the next call; the
// module sees the attempt, the trace id of the run, and nobody as caller.
func TestIdempotencyKey(t *testing.T) {
	book := &ledger{}
	env := testsuite.NewEnvironment(t, newExecutor(t, book, apcore.ExecutorOptions{}))
	env.ExecuteWorkflow(func(ctx workflow.Context) (map[string]any, error) {
		out, err := temporal.Call[map[string]any](ctx, "notify.email", echo{})
		if err != nil {
			return out, err
		}
		ctx = temporal.WithCallOptions(ctx, temporal.CallOptions{IdempotencyKey: "order-7"})
		return temporal.Call[map[string]any](ctx, "notify.email", echo{})
	})
	must(t, env.GetWorkflowError())
	want := []string{"email " + testRun + "/1 1", "email " + testRun + "/1 2", "email " + testRun + "/1 3", "email order-7 1", "email order-7 2", "email order-7 3"}
	if got := book.all(); !slices.Equal(got, want) {
		t.Errorf("ledger %q, want %q", got, want)
	}
	var out map[string]any
	must(t, env.GetWorkflowResult(&out))
	if out["trace_id"] != "defaulttestrunid" || out["caller"] != "" {
		t.Errorf("module saw %v", out)
	}
}

// State flows from call to call in public context data, and only there.
func TestContextDataFlows(t *testing.T) {
	env := testsuite.NewEnvironment(t, newExecutor(t, &ledger{}, apcore.ExecutorOptions{}))
	env.ExecuteWorkflow(func(ctx workflow.Context) (map[string]any, error) {
		for range 3 {
			if _, err := temporal.Call[map[string]any](ctx, "shop.counter", nil); err != nil {
				return nil, err
			}
		}
		return temporal.ContextData(ctx), nil
	})
	must(t, env.GetWorkflowError())
	var data map[string]any
	must(t, env.GetWorkflowResult(&data))
	if len(data) != 1 || data["count"] != 3.0 {
		t.Errorf("data %v, want count 3", data)
	}
}

// A workflow on a worker without the interceptor gets an error that says so.
func TestUnpreparedWorkflow(t *testing.T) {
	var suite sdkSuite
	env := suite.NewTestWorkflowEnvironment()
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		_, err := temporal.Call[echo](ctx, "shop.lookup", nil)
		if !errors.Is(err, apcore.CodeConfigInvalid) || len(temporal.ContextData(ctx)) != 0 {
			t.Errorf("error %v", err)
		}
		return nil
	})
	must(t, env.GetWorkflowError())
}
