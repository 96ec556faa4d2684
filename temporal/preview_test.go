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

// foretelling is a gated module that says what it would change.
type foretelling struct {
	apcore.Module
	book *ledger
}

func (f *foretelling) Preview(_ context.Context, inputs map[string]any, _ *apcore.Context) ([]apcore.Change, error) {
	f.book.write("previewed")
	return []apcore.Change{{Action: "transfer", Target: "account", Summary: "moves money", After: inputs["amount"]}}, nil
}

// Validate and Preview look at a call without making it: nothing runs, nobody is
// asked, and the numbers of the calls around are as if they were not there.
func TestValidateAndPreview(t *testing.T) {
	book := &ledger{}
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	module, err := apcore.NewFunc(func(_ context.Context, _ transfer) (map[string]any, error) {
		book.write("transfer")
		return map[string]any{}, nil
	}, apcore.Spec{Description: "Moves money"})
	must(t, err)
	must(t, registry.Register("pay.transfer", &foretelling{module, book}, apcore.RegisterOptions{Annotations: &apcore.Annotations{RequiresApproval: true}}))
	must(t, apcore.Register(registry, "shop.key", func(ctx context.Context, _ map[string]any) (map[string]any, error) {
		c, _ := apcore.FromContext(ctx)
		key, _ := apcore.NewKey[string](durable.IdempotencyKey).Get(c)
		return map[string]any{"key": key}, nil
	}, apcore.Spec{Description: "Says its key", Annotations: apcore.Annotations{Readonly: true}}))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{ApprovalHandler: temporal.NewApprovalHandler(), Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	env := testsuite.NewEnvironment(t, executor)
	env.ExecuteWorkflow(func(ctx workflow.Context) (map[string]any, error) {
		good, err := temporal.Validate(ctx, "pay.transfer", transfer{To: "A", Amount: 9007199254740993})
		if err != nil || !good.Valid || !good.RequiresApproval || len(good.PredictedChanges) != 1 {
			t.Errorf("a good call: %+v, %v", good, err)
		}
		changes, err := temporal.Preview(ctx, "pay.transfer", transfer{To: "A", Amount: 9007199254740993})
		if err != nil || len(changes) != 1 || cmp.Diff("9007199254740993", text(changes[0].After)) != "" {
			t.Errorf("changes %+v, %v", changes, err)
		}
		bad, err := temporal.Validate(ctx, "pay.transfer", map[string]any{"to": 7})
		if err != nil || bad.Valid || len(bad.Errors) == 0 || bad.Errors[0].Code != apcore.CodeSchemaValidation {
			t.Errorf("a bad call: %+v, %v", bad, err)
		}
		for _, test := range []struct {
			module string
			in     any
			want   apcore.Code
		}{
			{"pay.transfer", map[string]any{"to": 7}, apcore.CodeSchemaValidation},
			{"no.such", nil, apcore.CodeModuleNotFound},
			{"No Such", nil, apcore.CodeInvalidModuleID},
			{"pay.transfer", map[string]any{"_approval_token": "x"}, durable.CodeTokenRefused},
			{"pay.transfer", 7, apcore.CodeInvalidInput},
		} {
			if _, err := temporal.Preview(ctx, test.module, test.in); apcore.CodeOf(err) != test.want {
				t.Errorf("preview of %s with %v: %v, want %s", test.module, test.in, err, test.want)
			}
		}
		return temporal.Call[map[string]any](ctx, "shop.key", nil)
	})
	must(t, env.GetWorkflowError())
	var out map[string]any
	must(t, env.GetWorkflowResult(&out))
	if key, _ := out["key"].(string); len(key) < 2 || key[len(key)-2:] != "/1" {
		t.Errorf("the call after the previews has the key %v", out["key"])
	}
	for _, line := range book.all() {
		if line != "previewed" {
			t.Errorf("the module did %q", line)
		}
	}
}

func text(number any) string {
	encoded, _ := apcore.EncodeJSON(number)
	return string(encoded)
}
