package durable_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/durable/memory"
)

// transfer is a gated module that counts its effects.
type transferInput struct {
	To     string `json:"to"`
	Amount int64  `json:"amount"`
	Card   string `json:"card,omitempty" apcore:"sensitive"`
}

type world struct {
	effects  atomic.Int64
	registry *apcore.Registry
	executor *apcore.Executor
	invoker  *durable.Invoker
	run      *memory.Run
}

// newWorld hosts pay.transfer (gated, at most once), shop.lookup (readonly) and
// pay.indirect, which calls pay.transfer in process.
func newWorld(t *testing.T, opts apcore.ExecutorOptions) *world {
	t.Helper()
	w := &world{registry: apcore.NewRegistry(apcore.RegistryOptions{})}
	must(t, apcore.Register(w.registry, "pay.transfer", func(context.Context, transferInput) (map[string]any, error) {
		w.effects.Add(1)
		return map[string]any{"ok": true}, nil
	}, apcore.Spec{Description: "Moves money", Annotations: apcore.Annotations{Destructive: true, RequiresApproval: true}}))
	must(t, apcore.Register(w.registry, "shop.lookup", func(context.Context, struct{}) (map[string]any, error) {
		return map[string]any{"found": true}, nil
	}, apcore.Spec{Description: "Looks up", Annotations: apcore.Annotations{Readonly: true}}))
	must(t, apcore.Register(w.registry, "pay.indirect", func(ctx context.Context, in transferInput) (map[string]any, error) {
		return apcore.Call[map[string]any](ctx, "pay.transfer", in)
	}, apcore.Spec{Description: "Moves money through another module"}))
	if opts.ApprovalHandler == nil {
		opts.ApprovalHandler = durable.NewApprovalHandler()
	}
	opts.Logger = slog.New(slog.DiscardHandler)
	var err error
	w.executor, err = apcore.NewExecutor(w.registry, opts)
	must(t, err)
	w.invoker, err = durable.NewInvoker(w.executor, durable.InvokerOptions{SealKey: []byte("key")})
	must(t, err)
	w.run = memory.NewRun("w", w.invoker, nil)
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pending waits for the first approval that waits.
func (w *world) pending(t testing.TB) durable.Approval {
	t.Helper()
	for {
		changed := w.run.Changed()
		for _, approval := range w.run.Approvals() {
			if approval.Status == durable.ApprovalIsPending {
				return approval
			}
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Second):
			t.Fatal("no approval came")
		}
	}
}

type outcome struct {
	result durable.CallResult
	err    error
}

func (w *world) start(ctx context.Context, moduleID string, inputs any) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		result, err := w.run.Call(ctx, moduleID, inputs, nil)
		done <- outcome{result, err}
	}()
	return done
}

func TestRunApproves(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	done := w.start(t.Context(), "pay.transfer", transferInput{To: "A", Amount: 100, Card: "4242"})
	approval := w.pending(t)
	if got := approval.Arguments["card"]; got == "4242" {
		t.Error("the approver sees the card")
	}
	if w.effects.Load() != 0 {
		t.Fatal("the module ran before the approval")
	}
	must(t, w.run.Decide(decide(approval.ApprovalID, apcore.ApprovalApproved)))
	got := <-done
	must(t, got.err)
	if n := w.effects.Load(); n != 1 || got.result.Status != durable.StatusCompleted {
		t.Errorf("%d effects, status %q; want 1, completed", n, got.result.Status)
	}
}

func TestRunRejects(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	done := w.start(t.Context(), "pay.transfer", transferInput{To: "A"})
	approval := w.pending(t)
	decision := decide(approval.ApprovalID, apcore.ApprovalRejected)
	decision.Reason = "no receipt"
	must(t, w.run.Decide(decision))
	err := (<-done).err
	var denied *apcore.ApprovalError
	if !errors.Is(err, apcore.CodeApprovalDenied) || !errors.As(err, &denied) || denied.Reason() != "no receipt" {
		t.Errorf("error %v", err)
	}
	if w.effects.Load() != 0 {
		t.Error("a rejected module ran")
	}
}

// Scenario 10: nobody answers, and that is never consent.
func TestRunExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, apcore.ExecutorOptions{})
		begin := time.Now()
		_, err := w.run.Call(t.Context(), "pay.transfer", transferInput{To: "A"}, nil)
		if !errors.Is(err, apcore.CodeApprovalTimeout) || w.effects.Load() != 0 {
			t.Errorf("error %v, %d effects", err, w.effects.Load())
		}
		if waited := time.Since(begin); waited < durable.DefaultApprovalTimeout-time.Second {
			t.Errorf("gave up after %v", waited)
		}
		if got := w.run.Approvals()[0]; got.Status != durable.ApprovalIsTimeout || got.Decision != nil {
			t.Errorf("record: %q, decided by %v", got.Status, got.Decision)
		}
	})
}

func TestRunIsCancelledWhileItWaits(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	done := w.start(ctx, "pay.transfer", transferInput{To: "A"})
	approval := w.pending(t)
	cancel()
	if err := (<-done).err; !errors.Is(err, apcore.CodeExecutionCancelled) {
		t.Errorf("error %v", err)
	}
	if err := w.run.Decide(decide(approval.ApprovalID, apcore.ApprovalApproved)); !errors.Is(err, durable.CodeDecisionClosed) {
		t.Errorf("a late approval: %v", err)
	}
	if w.effects.Load() != 0 {
		t.Error("a cancelled module ran")
	}
}

// Two equal calls need two approvals (pitfall 11).
func TestRunAsksForEachCall(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	seen := map[string]bool{}
	for range 2 {
		done := w.start(t.Context(), "pay.transfer", transferInput{To: "A", Amount: 1})
		approval := w.pending(t)
		seen[approval.ApprovalID] = true
		must(t, w.run.Decide(decide(approval.ApprovalID, apcore.ApprovalApproved)))
		must(t, (<-done).err)
	}
	if len(seen) != 2 || w.effects.Load() != 2 {
		t.Errorf("%d approvals for %d effects, want 2 and 2", len(seen), w.effects.Load())
	}
}

// An approval that a module needs for a call of its own cannot be waited for;
// the error says what to do.
func TestRunRefusesNestedApproval(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	_, err := w.run.Call(t.Context(), "pay.indirect", transferInput{To: "A"}, nil)
	if !errors.Is(err, durable.CodeNestedApproval) || apcore.AsError(err).Suggestion == "" {
		t.Errorf("error %v", err)
	}
	if w.effects.Load() != 0 || len(w.run.Approvals()) != 0 {
		t.Errorf("%d effects, %d approvals", w.effects.Load(), len(w.run.Approvals()))
	}
}

// A handler that answers pending for ever ends the call, not the process.
func TestRunBoundsRounds(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{ApprovalHandler: undecided{}})
	done := w.start(t.Context(), "pay.transfer", transferInput{To: "A"})
	for {
		select {
		case got := <-done:
			if apcore.CodeOf(got.err) != apcore.CodeInternal || w.effects.Load() != 0 {
				t.Errorf("error %v, %d effects", got.err, w.effects.Load())
			}
			return
		default:
		}
		for _, approval := range w.run.Approvals() {
			_ = w.run.Decide(decide(approval.ApprovalID, apcore.ApprovalApproved))
		}
	}
}

type undecided struct{}

func (undecided) RequestApproval(context.Context, *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
	return &apcore.ApprovalResult{Status: apcore.ApprovalPending, ApprovalID: "theirs"}, nil
}

func (undecided) CheckApproval(context.Context, string) (*apcore.ApprovalResult, error) {
	return &apcore.ApprovalResult{Status: apcore.ApprovalPending, ApprovalID: "theirs"}, nil
}
