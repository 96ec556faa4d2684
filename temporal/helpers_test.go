package temporal_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// ledger counts what really happened, by module id.
type ledger struct {
	mu    sync.Mutex
	lines []string
}

func (l *ledger) write(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lines)
}

func (l *ledger) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

// transfer is the input of the gated module.
type transfer struct {
	To     string `json:"to"`
	Amount int64  `json:"amount"`
	Card   string `json:"card,omitempty" apcore:"sensitive"`
}

type echo struct {
	Value any `json:"value"`
}

// newExecutor hosts pay.transfer (gated), pay.charge (at most once, fails with
// the error of its choice), shop.lookup (readonly echo), shop.flaky (readonly,
// fails twice), notify.email (idempotent) and shop.counter (writes context data).
func newExecutor(t testing.TB, book *ledger, opts apcore.ExecutorOptions) *apcore.Executor {
	t.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	must(t, errors.Join(
		apcore.Register(registry, "pay.transfer", func(_ context.Context, in transfer) (map[string]any, error) {
			book.write(fmt.Sprintf("transfer %s %d", in.To, in.Amount))
			return map[string]any{"to": in.To, "amount": in.Amount}, nil
		}, apcore.Spec{Description: "Moves money", Annotations: apcore.Annotations{Destructive: true, RequiresApproval: true}}),
		apcore.Register(registry, "pay.charge", func(_ context.Context, in echo) (map[string]any, error) {
			book.write("charge")
			return nil, failureNamed(in.Value)
		}, apcore.Spec{Description: "Charges a card"}),
		apcore.Register(registry, "shop.lookup", func(_ context.Context, in echo) (echo, error) {
			book.write("lookup")
			return in, nil
		}, apcore.Spec{Description: "Looks up", Annotations: apcore.Annotations{Readonly: true}}),
		apcore.Register(registry, "shop.broken", func(_ context.Context, in echo) (map[string]any, error) {
			book.write("broken")
			return nil, failureNamed(in.Value)
		}, apcore.Spec{Description: "Fails as told", Annotations: apcore.Annotations{Readonly: true}}),
		apcore.Register(registry, "notify.email", func(ctx context.Context, _ echo) (map[string]any, error) {
			c, _ := apcore.FromContext(ctx)
			key, _ := apcore.NewKey[string](durable.IdempotencyKey).Get(c)
			attempt, _ := apcore.NewKey[int](durable.AttemptKey).Get(c)
			book.write(fmt.Sprintf("email %s %d", key, attempt))
			if attempt < 3 {
				return nil, errors.New("mail server is busy")
			}
			return map[string]any{"trace_id": c.TraceID(), "caller": c.CallerID(), "chain": c.CallChain()}, nil
		}, apcore.Spec{Description: "Sends a mail", Annotations: apcore.Annotations{Idempotent: true}}),
		apcore.Register(registry, "shop.counter", func(ctx context.Context, _ map[string]any) (map[string]any, error) {
			c, _ := apcore.FromContext(ctx)
			key := apcore.NewKey[int]("count")
			n, _ := key.Get(c)
			key.Set(c, n+1)
			c.Data().Set("_private", "stays")
			return map[string]any{"count": n + 1}, nil
		}, apcore.Spec{Description: "Counts", Annotations: apcore.Annotations{Readonly: true}}),
	))
	if opts.ApprovalHandler == nil {
		opts.ApprovalHandler = temporal.NewApprovalHandler()
	}
	opts.Logger = slog.New(slog.DiscardHandler)
	executor, err := apcore.NewExecutor(registry, opts)
	must(t, err)
	return executor
}

// failureNamed makes the error a test asks for.
func failureNamed(name any) error {
	denied := apcore.NewError(apcore.CodeACLDenied, "not yours").WithDetail("caller_id", "x").WithDetail("target_id", "y")
	switch name {
	case "plain":
		return errors.New("boom")
	case "denied":
		return denied
	case "denied, wrapped twice":
		return fmt.Errorf("a: %w", fmt.Errorf("b: %w", denied))
	case "denied, joined":
		return errors.Join(errors.New("other"), denied)
	case "denied because of a retryable":
		return denied.WithCause(apcore.NewError(apcore.CodeInternal, "busy"))
	case "future":
		return apcore.NewError("ACME_FROM_THE_FUTURE", "new")
	case "panic":
		panic("secret text")
	default:
		return fmt.Errorf("unknown failure %v", name)
	}
}

// transferFlow is the workflow of most tests: one gated call.
func transferFlow(ctx workflow.Context, in transfer) (map[string]any, error) {
	return temporal.Call[map[string]any](ctx, "pay.transfer", in)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func decision(id string, status apcore.ApprovalStatus) durable.Decision {
	return durable.Decision{ApprovalID: id, Status: status, ApprovedBy: "ana", Reason: "because"}
}
