package durable_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// A call under an old id is the same call: the module's rules of approval hold,
// an attempt that may have run is not repeated, and its approval is bound to the
// id that was used.
func TestAliasKeepsTheRules(t *testing.T) {
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	must(t, apcore.Register(registry, "pay.charge", func(context.Context, map[string]any) (map[string]any, error) { return map[string]any{}, nil }, apcore.Spec{
		Description: "Charges", Annotations: apcore.Annotations{RequiresApproval: true},
		Metadata: map[string]any{durable.ApprovalRulesKey: map[string]any{"quorum": 2}},
	}))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{ApprovalHandler: durable.NewApprovalHandler(), Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	invoker, err := durable.NewInvoker(executor, durable.InvokerOptions{Aliases: durable.Aliases{"old.charge": "pay.charge"}})
	must(t, err)
	result, err := invoker.Invoke(t.Context(), requestOf("old.charge", ""), 1)
	must(t, err)
	if a := result.Approval; a == nil || a.Rules == nil || a.Rules.Quorum != 2 || a.Module.ID != "old.charge" || result.Module.ID != "pay.charge" {
		t.Errorf("result %+v", result)
	}
	request := requestOf("old.charge", "")
	request.Grant, request.Decision = &result.Approval.Grant, &durable.Decision{ApprovalID: result.Approval.ApprovalID, Status: apcore.ApprovalApproved, ApprovedBy: "ana"}
	if result, err := invoker.Invoke(t.Context(), request, 1); err != nil || result.Status != durable.StatusDecisionRefused {
		t.Errorf("one voice of two: %+v, %v", result, err)
	}
	if _, err := invoker.Invoke(t.Context(), requestOf("old.charge", ""), 2); apcore.CodeOf(apcore.AsError(err)) != durable.CodeOutcomeUnknown {
		t.Errorf("a second attempt: %v", err)
	}
}
