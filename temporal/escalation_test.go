package temporal_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

// escalating hosts pay.transfer under rules of its own, and notify.chat that
// notes who was told what.
func escalating(t *testing.T, book *ledger, rules map[string]any) *apcore.Executor {
	t.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	must(t, errors.Join(
		apcore.Register(registry, "pay.transfer", func(_ context.Context, in transfer) (map[string]any, error) {
			book.write(fmt.Sprintf("transfer %s %d", in.To, in.Amount))
			return map[string]any{}, nil
		}, apcore.Spec{Description: "Moves money", Annotations: apcore.Annotations{Destructive: true, RequiresApproval: true, Extra: map[string]any{durable.ApprovalRulesKey: rules}}}),
		apcore.Register(registry, "notify.chat", func(_ context.Context, in map[string]any) (map[string]any, error) {
			head, _ := in["approval"].(map[string]any)
			arguments, _ := head["arguments"].(map[string]any)
			book.write(fmt.Sprintf("told about %v, card %v", head["module_id"], arguments["card"]))
			return map[string]any{}, nil
		}, apcore.Spec{Description: "Tells", Annotations: apcore.Annotations{Idempotent: true}}),
	))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{ApprovalHandler: temporal.NewApprovalHandler(), Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	return executor
}

// Scenario 15: whoever of both levels answers first decides, once; and nobody's
// silence is consent.
func TestEscalation(t *testing.T) {
	rules := map[string]any{
		"approvers": []any{"ana"}, "remind_after_ms": 300_000, "remind_module": "notify.chat",
		"escalate_after_ms": 600_000, "escalate_to": []any{"zoe"}, "escalate_module": "notify.chat",
	}
	told := "told about pay.transfer, card ***REDACTED***"
	by := func(name string) durable.Decision {
		d := decision(firstID(), apcore.ApprovalApproved)
		d.ApprovedBy = name
		return d
	}
	for _, test := range []struct {
		name  string
		after map[time.Duration]durable.Decision
		want  []string
		code  apcore.Code
	}{
		{"before anything", map[time.Duration]durable.Decision{time.Minute: by("ana")}, []string{"transfer A 1"}, ""},
		{"second level too early", map[time.Duration]durable.Decision{time.Minute: by("zoe"), 2 * time.Minute: by("ana")}, []string{"transfer A 1"}, ""},
		{"after the reminder", map[time.Duration]durable.Decision{6 * time.Minute: by("ana")}, []string{told, "transfer A 1"}, ""},
		{"first level, late", map[time.Duration]durable.Decision{12 * time.Minute: by("ana"), 13 * time.Minute: by("zoe")}, []string{told, told, "transfer A 1"}, ""},
		{"second level", map[time.Duration]durable.Decision{12 * time.Minute: by("zoe")}, []string{told, told, "transfer A 1"}, ""},
		{"nobody", nil, []string{told, told}, apcore.CodeApprovalTimeout},
	} {
		t.Run(test.name, func(t *testing.T) {
			book := &ledger{}
			env := testsuite.NewEnvironment(t, escalating(t, book, rules))
			for after, d := range test.after {
				signal(env, d, after)
			}
			env.ExecuteWorkflow(func(ctx workflow.Context) error {
				ctx = temporal.WithCallOptions(ctx, temporal.CallOptions{ApprovalTimeout: 20 * time.Minute})
				_, err := temporal.Call[map[string]any](ctx, "pay.transfer", transfer{To: "A", Amount: 1, Card: "4242"})
				return err
			})
			if got := apcore.CodeOf(temporalCode(env.GetWorkflowError())); got != test.code {
				t.Errorf("error %v, want code %q", env.GetWorkflowError(), test.code)
			}
			if diff := cmp.Diff(test.want, book.all()); diff != "" {
				t.Errorf("ledger (-want +got):\n%s", diff)
			}
		})
	}
}

func temporalCode(err error) error {
	if e := temporal.AsError(err); e != nil {
		return e
	}
	return nil
}
