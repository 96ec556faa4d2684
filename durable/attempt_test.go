package durable_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// Scenario 26, target 24: what may have happened is not repeated, by the engine's
// schedule or by mistake; what certainly did not is.
func TestAtMostOnce(t *testing.T) {
	for _, test := range []struct {
		name    string
		fail    error
		timeout time.Duration
		want    apcore.Code
		effects int64
	}{
		{"foreign error", errors.New("boom"), 0, apcore.CodeModuleExecuteError, 1},
		{"error that calls itself retryable", apcore.NewError("ACME_BUSY", "busy").WithRetryable(new(true)), 0, "ACME_BUSY", 1},
		{"joined and wrapped", fmt.Errorf("x: %w", errors.Join(errors.New("y"), apcore.NewError("ACME_BUSY", "busy"))), 0, "ACME_BUSY", 1},
		{"timer", nil, time.Second, durable.CodeOutcomeUnknown, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, apcore.ExecutorOptions{})
				effects := atomic.Int64{}
				must(t, apcore.Register(w.registry, "acme.charge", func(ctx context.Context, _ struct{}) (map[string]any, error) {
					effects.Add(1)
					if test.timeout > 0 {
						<-ctx.Done()
					}
					return nil, test.fail
				}, apcore.Spec{Description: "Charges", Timeout: test.timeout}))
				_, err := w.run.Call(t.Context(), "acme.charge", nil, nil)
				if got := apcore.CodeOf(err); got != test.want || effects.Load() != test.effects {
					t.Errorf("code %q, want %q; %d effects, want %d (%v)", got, test.want, effects.Load(), test.effects, err)
				}
			})
		})
	}
}

// The worker refuses a second attempt of an at-most-once module, whatever the
// schedule said; the caller may accept the risk by name.
func TestAttemptGuard(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	request := durable.CallRequest{V: 1, ModuleID: "shop.lookup", Inputs: []byte(`{}`), Context: []byte(`{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","call_chain":[],"identity":null}`), CallID: "w/w/1"}
	if _, err := w.invoker.Invoke(t.Context(), request, 2); err != nil {
		t.Errorf("a readonly module's second attempt: %v", err)
	}
	request.ModuleID = "pay.indirect"
	if _, err := w.invoker.Invoke(t.Context(), request, 2); !errors.Is(err, durable.CodeOutcomeUnknown) {
		t.Errorf("an at-most-once module's second attempt: %v", err)
	}
	request.AcceptRepeatedEffects = true
	if _, err := w.invoker.Invoke(t.Context(), request, 2); errors.Is(err, durable.CodeOutcomeUnknown) {
		t.Errorf("an accepted second attempt: %v", err)
	}
}

// A module that this worker does not know may come with the next deploy: the
// unit is scheduled anew, and after the grace the call fails.
func TestUnknownModuleHasGrace(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	_, err := w.run.Call(t.Context(), "no.such", nil, nil)
	if !errors.Is(err, apcore.CodeModuleNotFound) {
		t.Errorf("error %v", err)
	}
	var failure *durable.Failure
	if !errors.As(err, &failure) || !failure.NotStarted || !failure.Retry {
		t.Errorf("failure %+v, want one that may be tried again", failure)
	}
}

// A unit that may only ask runs nothing, whatever the gate says; so it may be
// repeated, and a lost worker costs nothing while nobody has decided.
func TestAskingRunsNothing(t *testing.T) {
	for _, test := range []struct {
		name    string
		handler apcore.ApprovalHandler
		want    durable.Status
	}{
		{"durable handler", nil, durable.StatusApprovalPending},
		{"a handler that approves at once", apcore.AutoApprove{}, durable.StatusNotAsked},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, apcore.ExecutorOptions{ApprovalHandler: test.handler})
			request := durable.CallRequest{V: 1, ModuleID: "pay.transfer", Inputs: []byte(`{"to":"A","amount":1}`), Context: []byte(`{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","call_chain":[],"identity":null}`), CallID: "w/w/1", Ask: true}
			first := ""
			for attempt := 1; attempt <= 3; attempt++ {
				result, err := w.invoker.Invoke(t.Context(), request, attempt)
				must(t, err)
				if result.Status != test.want || w.effects.Load() != 0 {
					t.Fatalf("attempt %d: status %q, %d effects", attempt, result.Status, w.effects.Load())
				}
				if result.Approval == nil {
					continue
				}
				if first == "" {
					first = result.Approval.ApprovalID
				}
				if result.Approval.ApprovalID != first {
					t.Errorf("attempt %d asks under another id", attempt)
				}
			}
			if test.want == durable.StatusNotAsked {
				result, err := w.run.Do(t.Context(), request)
				must(t, err)
				if result.Status != durable.StatusCompleted || w.effects.Load() != 1 {
					t.Errorf("status %q, %d effects", result.Status, w.effects.Load())
				}
			}
		})
	}
}
