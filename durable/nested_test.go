package durable_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/durable/memory"
)

// nestedWorld hosts pay.transfer (gated) and plan.pay, which calls it for every
// amount; plan.pay is idempotent and counts how often it ran in runs.
func nestedWorld(t *testing.T) (w *world, runs *atomic.Int64) {
	t.Helper()
	w, _ = withRules(t, durable.InvokerOptions{SealKey: []byte("key")})
	runs = &atomic.Int64{}
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	must(t, apcore.Register(registry, "pay.transfer", func(context.Context, transferInput) (map[string]any, error) {
		w.effects.Add(1)
		return map[string]any{"ok": true}, nil
	}, apcore.Spec{Description: "Moves money", Annotations: apcore.Annotations{Idempotent: true, RequiresApproval: true}}))
	type plan struct {
		Amounts []int64 `json:"amounts"`
	}
	must(t, apcore.Register(registry, "plan.pay", func(ctx context.Context, in plan) (map[string]any, error) {
		runs.Add(1)
		refused := 0
		for _, amount := range in.Amounts {
			_, err := apcore.Call[map[string]any](ctx, "pay.transfer", transferInput{To: "A", Amount: amount})
			switch {
			case errors.Is(err, apcore.CodeApprovalDenied):
				refused++
			case err != nil:
				return nil, err
			}
		}
		return map[string]any{"refused": refused}, nil
	}, apcore.Spec{Description: "Pays by plan", Annotations: apcore.Annotations{Idempotent: true}}))
	var err error
	w.executor, err = apcore.NewExecutor(registry, apcore.ExecutorOptions{ApprovalHandler: durable.NewApprovalHandler(), Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	w.invoker, err = durable.NewInvoker(w.executor, durable.InvokerOptions{SealKey: []byte("key")})
	must(t, err)
	w.run = memory.NewRun("w", w.invoker, func(string) durable.Policy {
		policy := durable.PolicyFor(durable.ClassIdempotent, 0)
		policy.Attempts = 1
		return policy
	})
	return w, runs
}

// Target 20, pitfall 11: calls in process wait for approvals of their own, two
// equal ones for two.
func TestNestedApprovals(t *testing.T) {
	w, runs := nestedWorld(t)
	done := w.start(t.Context(), "plan.pay", map[string]any{"amounts": []int64{5, 5}})
	first := w.pending(t)
	if first.Module.ID != "pay.transfer" || first.Within != "plan.pay" || first.CallerID != "plan.pay" {
		t.Errorf("approval %+v", first)
	}
	if w.effects.Load() != 0 {
		t.Fatal("it ran before it was approved")
	}
	must(t, w.run.Decide(decide(first.ApprovalID, apcore.ApprovalApproved)))
	second := w.pending(t)
	if second.ApprovalID == first.ApprovalID {
		t.Fatal("two equal calls share an approval")
	}
	must(t, w.run.Decide(decide(second.ApprovalID, apcore.ApprovalApproved)))
	must(t, (<-done).err)
	// The outer module runs three times, and with it the first payment once more:
	// both are idempotent.
	if runs.Load() != 3 || w.effects.Load() != 3 {
		t.Errorf("%d runs of the outer module, %d of the inner", runs.Load(), w.effects.Load())
	}
}

// A rejection reaches the outer module, which decides what it means.
func TestNestedRejection(t *testing.T) {
	w, _ := nestedWorld(t)
	done := w.start(t.Context(), "plan.pay", map[string]any{"amounts": []int64{5}})
	must(t, w.run.Decide(decide(w.pending(t).ApprovalID, apcore.ApprovalRejected)))
	got := <-done
	must(t, got.err)
	if string(got.result.Output) != `{"refused":1}` || w.effects.Load() != 0 {
		t.Errorf("output %s, %d effects", got.result.Output, w.effects.Load())
	}
}

// A nested grant opens its own call only.
func TestNestedGrantOpensNothingElse(t *testing.T) {
	w, _ := nestedWorld(t)
	request := durable.CallRequest{ModuleID: "plan.pay", Inputs: []byte(`{"amounts":[5]}`), Context: []byte(`{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","call_chain":[],"identity":null}`), CallID: "w/w/9"}
	result, err := w.invoker.Invoke(t.Context(), request, 1)
	must(t, err)
	grant := durable.NestedGrant{Grant: result.Approval.Grant, Decision: decide(result.Approval.ApprovalID, apcore.ApprovalApproved)}
	for name, change := range map[string]func(*durable.CallRequest, *durable.NestedGrant){
		"another call":     func(r *durable.CallRequest, _ *durable.NestedGrant) { r.CallID = "w/w/10" },
		"other arguments":  func(r *durable.CallRequest, _ *durable.NestedGrant) { r.Inputs = []byte(`{"amounts":[6]}`) },
		"a forged grant":   func(_ *durable.CallRequest, g *durable.NestedGrant) { g.Grant.Module.Version = "9.9.9" },
		"another decision": func(_ *durable.CallRequest, g *durable.NestedGrant) { g.Decision.ApprovalID = "apr-other" },
	} {
		changed, nested := request, grant
		change(&changed, &nested)
		changed.Nested = []durable.NestedGrant{nested}
		_, _ = w.invoker.Invoke(t.Context(), changed, 1)
		if w.effects.Load() != 0 {
			t.Fatalf("%s: it ran", name)
		}
	}
	request.Nested = []durable.NestedGrant{grant}
	_, err = w.invoker.Invoke(t.Context(), request, 1)
	must(t, err)
	if w.effects.Load() != 1 {
		t.Errorf("%d effects with the right grant", w.effects.Load())
	}
}
