package temporal_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

// badOptions are options out of bounds with what their error has to say.
var badOptions = []struct {
	opts   temporal.CallOptions
	module string // empty means shop.lookup, which is readonly
	says   string
}{
	{temporal.CallOptions{StartToClose: -1}, "", "CallOptions.StartToClose is -1ns: give 1ms to 720h0m0s"},
	{temporal.CallOptions{StartToClose: time.Microsecond}, "", "CallOptions.StartToClose is 1µs: give"},
	{temporal.CallOptions{StartToClose: 721 * time.Hour}, "", "CallOptions.StartToClose is 721h0m0s: give"},
	{temporal.CallOptions{ScheduleToStart: -time.Second}, "", "CallOptions.ScheduleToStart is -1s: give"},
	{temporal.CallOptions{ScheduleToStart: 721 * time.Hour}, "", "CallOptions.ScheduleToStart is 721h0m0s: give"},
	{temporal.CallOptions{ScheduleToClose: -time.Second}, "", "CallOptions.ScheduleToClose is -1s: give"},
	{temporal.CallOptions{ScheduleToClose: 721 * time.Hour}, "", "CallOptions.ScheduleToClose is 721h0m0s: give"},
	{temporal.CallOptions{ScheduleToClose: time.Second, StartToClose: time.Minute}, "", "CallOptions.StartToClose is 1m0s: one attempt cannot be longer"},
	{temporal.CallOptions{ScheduleToClose: time.Second, ScheduleToStart: time.Minute}, "", "CallOptions.ScheduleToStart is 1m0s: the wait cannot be longer"},
	{temporal.CallOptions{Heartbeat: -1}, "", "CallOptions.Heartbeat is -1ns: give 100ms to 720h0m0s"},
	{temporal.CallOptions{Heartbeat: 99 * time.Millisecond}, "", "CallOptions.Heartbeat is 99ms: give"},
	{temporal.CallOptions{Attempts: -1}, "", "CallOptions.Attempts is -1: give 1 to 1000"},
	{temporal.CallOptions{Attempts: 1001}, "", "CallOptions.Attempts is 1001: give"},
	{temporal.CallOptions{RetryPolicy: &sdktemporal.RetryPolicy{MaximumAttempts: -1}}, "", "CallOptions.Attempts is -1: give"},
	{temporal.CallOptions{RetryPolicy: &sdktemporal.RetryPolicy{InitialInterval: -1}}, "", "CallOptions.RetryPolicy.InitialInterval is -1ns: give"},
	{temporal.CallOptions{RetryPolicy: &sdktemporal.RetryPolicy{InitialInterval: 25 * time.Hour}}, "", "CallOptions.RetryPolicy.InitialInterval is 25h0m0s: give"},
	{temporal.CallOptions{RetryPolicy: &sdktemporal.RetryPolicy{MaximumInterval: -1}}, "", "CallOptions.RetryPolicy.MaximumInterval is -1ns: give"},
	{temporal.CallOptions{RetryPolicy: &sdktemporal.RetryPolicy{InitialInterval: time.Minute, MaximumInterval: time.Second}}, "", "CallOptions.RetryPolicy.InitialInterval is 1m0s: the first wait"},
	{temporal.CallOptions{RetryPolicy: &sdktemporal.RetryPolicy{BackoffCoefficient: 0.5}}, "", "CallOptions.RetryPolicy.BackoffCoefficient is 0.5: give 1 to 100"},
	{temporal.CallOptions{RetryPolicy: &sdktemporal.RetryPolicy{BackoffCoefficient: -1}}, "", "CallOptions.RetryPolicy.BackoffCoefficient is -1: give"},
	{temporal.CallOptions{RetryPolicy: &sdktemporal.RetryPolicy{NonRetryableErrorTypes: []string{"not a code"}}}, "", `CallOptions.RetryPolicy.NonRetryableErrorTypes is "not a code": give`},
	{temporal.CallOptions{RetryPolicy: &sdktemporal.RetryPolicy{NonRetryableErrorTypes: slices.Repeat([]string{"X"}, 101)}}, "", "CallOptions.RetryPolicy.NonRetryableErrorTypes is 101: give"},
	{temporal.CallOptions{TaskQueue: strings.Repeat("q", 1001)}, "", "CallOptions.TaskQueue is a text of 1001 bytes: give"},
	{temporal.CallOptions{TaskQueue: "/_sys/x"}, "", `CallOptions.TaskQueue is "/_sys/x": give`},
	{temporal.CallOptions{TaskQueue: "\xff"}, "", `CallOptions.TaskQueue is "\xff": give`},
	{temporal.CallOptions{Priority: -1}, "", "CallOptions.Priority is -1: give 1 to 1000"},
	{temporal.CallOptions{Priority: 1001}, "", "CallOptions.Priority is 1001: give"},
	{temporal.CallOptions{FairnessKey: strings.Repeat("k", 65)}, "", "CallOptions.FairnessKey is a text of 65 bytes: give"},
	{temporal.CallOptions{FairnessWeight: 1}, "", "CallOptions.FairnessWeight is 1: a weight needs a fairness key"},
	{temporal.CallOptions{FairnessKey: "k", FairnessWeight: -1}, "", "CallOptions.FairnessWeight is -1: give"},
	{temporal.CallOptions{Execution: "remote"}, "", `CallOptions.Execution is "remote": give`},
	{temporal.CallOptions{Execution: durable.ExecutionLocal}, "pay.charge", `CallOptions.Execution is "local": a local unit may run twice`},
	{temporal.CallOptions{Execution: durable.ExecutionLocal}, "no.such", `CallOptions.Execution is "local": a local unit may run twice`},
	{temporal.CallOptions{Execution: durable.ExecutionLocal, AcceptRepeatedEffects: true}, "pay.charge", `CallOptions.Execution is "local": a local unit may run twice`},
	{temporal.CallOptions{Execution: durable.ExecutionLocal, TaskQueue: "q"}, "", `CallOptions.Execution is "local": a local unit has no`},
	{temporal.CallOptions{ApprovalTimeout: -5}, "", "CallOptions.ApprovalTimeout is -5ns: give"},
	{temporal.CallOptions{IdempotencyKey: strings.Repeat("k", 1001)}, "", "CallOptions.IdempotencyKey is a text of 1001 bytes: give"},
}

// Target 29: options out of bounds are ordinary errors in workflow code, with
// module, field, value and bound; nothing is scheduled and no workflow task fails.
func TestBadCallOptions(t *testing.T) {
	book := &ledger{}
	env := testsuite.NewEnvironment(t, newExecutor(t, book, apcore.ExecutorOptions{}))
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		for _, test := range badOptions {
			module := test.module
			if module == "" {
				module = "shop.lookup"
			}
			ctx := temporal.WithCallOptions(ctx, test.opts)
			_, err := temporal.Call[echo](ctx, module, nil)
			_, later := temporal.CallAsync[echo](ctx, module, nil).Get(ctx)
			for _, err := range []error{err, later} {
				if !errors.Is(err, apcore.CodeInvalidInput) || !strings.Contains(err.Error(), test.says) || apcore.AsError(err).ModuleID() != module || !strings.Contains(err.Error(), module) {
					t.Errorf("%+v: %v, want %q", test.opts, err, test.says)
				}
			}
		}
		return nil
	})
	must(t, env.GetWorkflowError())
	if book.count() > 0 {
		t.Errorf("%d calls ran", book.count())
	}
}

// Local execution is for modules that repeat, in every version: where one version
// runs at most once, the settings of another make nothing local.
func TestOneVersionKeepsUnitsFromBeingLocal(t *testing.T) {
	for _, test := range []struct {
		older apcore.Annotations
		local int
	}{{apcore.Annotations{}, 0}, {apcore.Annotations{Idempotent: true}, 1}} {
		registry := apcore.NewRegistry(apcore.RegistryOptions{})
		asks := apcore.Annotations{Readonly: true, Extra: map[string]any{"x-temporal": map[string]any{"execution": "local"}}}
		for version, annotations := range map[string]apcore.Annotations{"1.0.0": test.older, "2.0.0": asks} {
			must(t, apcore.Register(registry, "a.b", func(context.Context, struct{}) (map[string]any, error) { return map[string]any{}, nil },
				apcore.Spec{Description: "Has versions", Version: version, Annotations: annotations}))
		}
		executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{})
		must(t, err)
		env := testsuite.NewEnvironment(t, executor)
		local := 0
		env.SetOnLocalActivityStartedListener(func(*activity.Info, context.Context, []any) { local++ })
		env.ExecuteWorkflow(func(ctx workflow.Context) error {
			_, err := temporal.Call[map[string]any](ctx, "a.b", nil)
			return err
		})
		must(t, env.GetWorkflowError())
		if local != test.local {
			t.Errorf("beside %+v: %d local units, want %d", test.older, local, test.local)
		}
	}
}
