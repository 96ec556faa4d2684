package temporal_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

// rich is a module that says all a module can say: warnings, predicted changes,
// an output with a secret in it, and context data.
type rich struct{ apcore.Module }

func (rich) Preflight(context.Context, map[string]any, *apcore.Context) ([]string, error) {
	return []string{"the account is nearly empty"}, nil
}

func (rich) Preview(_ context.Context, inputs map[string]any, _ *apcore.Context) ([]apcore.Change, error) {
	return []apcore.Change{{Action: "transfer", Target: "account", Summary: "moves money", Before: 1, After: inputs["amount"]}}, nil
}

type richOutput struct {
	Receipt string         `json:"receipt"`
	Token   string         `json:"token" apcore:"sensitive"`
	Meta    map[string]any `json:"meta"`
}

func newRichExecutor(t *testing.T) *apcore.Executor {
	t.Helper()
	module, err := apcore.NewFunc(func(ctx context.Context, in transfer) (richOutput, error) {
		c, _ := apcore.FromContext(ctx)
		c.Data().Set("receipts", []any{"r-1", in.Amount})
		return richOutput{"r-1", "s3cret", map[string]any{"fee": 0.5, "none": nil, "list": []any{}}}, nil
	}, apcore.Spec{Description: "Moves money", Annotations: apcore.Annotations{Readonly: true}})
	must(t, err)
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	must(t, registry.Register("pay.rich", rich{module}, apcore.RegisterOptions{}))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	return executor
}

// Scenario 57: field by field, a call through a workflow brings back what the
// same call in process does: the output, which module ran, the context data, and
// from a look ahead the warnings and predicted changes. What stays on the worker
// is the callee's own context, with its redacted copies.
func TestNothingOfAResultIsLost(t *testing.T) {
	executor, in := newRichExecutor(t), map[string]any{"to": "A", "amount": int64(9007199254740993)}
	caller := apcore.NewContext(apcore.ContextOptions{})
	outcome, err := executor.Do(t.Context(), apcore.Request{ModuleID: "pay.rich", Inputs: in, Context: caller})
	must(t, err)
	looked := executor.Validate(t.Context(), "pay.rich", in, nil)
	env := testsuite.NewEnvironment(t, executor)
	var result *durable.CallResult
	var data map[string]any
	var checked *apcore.PreflightResult
	env.ExecuteWorkflow(func(ctx workflow.Context) (err error) {
		if result, err = temporal.CallRaw(ctx, "pay.rich", in); err != nil {
			return err
		}
		data = temporal.ContextData(ctx)
		checked, err = temporal.Validate(ctx, "pay.rich", in)
		return err
	})
	must(t, env.GetWorkflowError())
	for name, pair := range map[string][2]any{
		"output":       {outcome.Output, result.Output},
		"module":       {outcome.Module, result.Module},
		"context data": {outcome.Context.Serialize()["data"], data},
		"preflight":    {looked, checked},
	} {
		if diff := cmp.Diff(asJSON(t, pair[0]), asJSON(t, pair[1])); diff != "" {
			t.Errorf("%s (-in process +through a workflow):\n%s", name, diff)
		}
	}
	if len(checked.PredictedChanges) != 1 || asJSON(t, outcome.Output) == "{}" || len(data) != 1 {
		t.Errorf("too little to compare: %+v, %v, %v", checked, outcome.Output, data)
	}
}
