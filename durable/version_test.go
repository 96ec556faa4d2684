package durable_test

import (
	"context"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// While somebody thought about a call, a worker got a newer version beside the
// one that was approved: the approved one runs, and the next call takes the new.
func TestResumeRunsTheApprovedVersion(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	request, result := w.pendingRequest(t)
	newer := 0
	must(t, apcore.Register(w.registry, "pay.transfer", func(context.Context, transferInput) (map[string]any, error) {
		newer++
		return map[string]any{}, nil
	}, apcore.Spec{Description: "Moves money otherwise", Version: "2.0.0", Annotations: apcore.Annotations{RequiresApproval: true}}))
	decision := decide(result.Approval.ApprovalID, apcore.ApprovalApproved)
	decision.DecidedAt = noon
	request.Decision, request.Grant = &decision, &result.Approval.Grant
	completed, err := w.invoker.Invoke(t.Context(), request, 1)
	must(t, err)
	if completed.Status != durable.StatusCompleted || w.effects.Load() != 1 || newer != 0 {
		t.Errorf("%s; the approved version ran %d times, the newer %d times", completed.Status, w.effects.Load(), newer)
	}
	request.VersionHint = "^2.0.0"
	if _, err := w.invoker.Invoke(t.Context(), request, 1); apcore.CodeOf(err) != durable.CodeGrantVersion || newer != 0 {
		t.Errorf("a grant of another version than the wanted: %v", err)
	}
	request.Decision, request.Grant, request.VersionHint = nil, nil, ""
	again, err := w.invoker.Invoke(t.Context(), request, 1)
	must(t, err)
	if again.Approval == nil || again.Approval.Module.Version != "2.0.0" {
		t.Errorf("a fresh call: %+v", again)
	}
}

// A hint reaches the registry: the version it names runs, and one that no worker
// has is not found.
func TestVersionHintReachesTheRegistry(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	must(t, apcore.Register(w.registry, "shop.lookup", func(context.Context, struct{}) (map[string]any, error) {
		return map[string]any{"found": "two"}, nil
	}, apcore.Spec{Description: "Looks up", Version: "2.0.0"}))
	for hint, want := range map[string]string{"": `{"found":"two"}`, "^1.0.0": `{"found":true}`, "2.0.0": `{"found":"two"}`} {
		request := durable.CallRequest{V: 1, ModuleID: "shop.lookup", Inputs: []byte(`{}`), Context: []byte(anonymous), CallID: "w/w/1", RequestedAt: noon, VersionHint: hint}
		result, err := w.invoker.Invoke(t.Context(), request, 1)
		must(t, err)
		if string(result.Output) != want {
			t.Errorf("hint %q: %s, want %s", hint, result.Output, want)
		}
		// Version 2 does not say that it may be repeated; version 1 is readonly.
		_, err = w.invoker.Invoke(t.Context(), request, 2)
		if repeated := err == nil; repeated != (hint == "^1.0.0") {
			t.Errorf("hint %q: a second attempt ends with %v", hint, err)
		}
	}
	request := durable.CallRequest{V: 1, ModuleID: "shop.lookup", Inputs: []byte(`{}`), Context: []byte(anonymous), CallID: "w/w/1", RequestedAt: noon, VersionHint: "9"}
	if _, err := w.invoker.Invoke(t.Context(), request, 1); apcore.CodeOf(err) != apcore.CodeModuleNotFound {
		t.Errorf("a version nobody has: %v", err)
	}
}

// The rules of an approval are those of the version that waits for it, not those
// of a newer one beside it.
func TestRulesOfTheVersionThatWaits(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	for version, quorum := range map[string]int{"2.0.0": 2, "3.0.0": 3} {
		must(t, apcore.Register(w.registry, "pay.transfer", func(context.Context, transferInput) (map[string]any, error) {
			return map[string]any{}, nil
		}, apcore.Spec{
			Description: "Moves money", Version: version, Annotations: apcore.Annotations{RequiresApproval: true},
			Metadata: map[string]any{durable.ApprovalRulesKey: map[string]any{"quorum": quorum}},
		}))
	}
	for hint, want := range map[string]int{"": 3, "^2.0.0": 2, "3": 3} {
		request, _ := w.pendingRequest(t)
		request.VersionHint = hint
		result, err := w.invoker.Invoke(t.Context(), request, 1)
		must(t, err)
		if result.Approval.Rules == nil || result.Approval.Rules.Quorum != want {
			t.Errorf("hint %q: rules %+v, want a quorum of %d", hint, result.Approval.Rules, want)
		}
	}
}
