package temporal_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

// parityCase is one way to set governance up, and what comes of a call.
type parityCase struct {
	name    string
	opts    apcore.ExecutorOptions
	spec    apcore.Spec
	prepare func(*apcore.Executor)
	inputs  map[string]any
	module  func(context.Context, map[string]any) (map[string]any, error)
	want    apcore.Code
	ran     bool
}

func parityCases() []parityCase {
	readonly := apcore.Annotations{Readonly: true}
	strictIn := map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}, "required": []any{"n"}}
	fails := func(ctx context.Context, _ map[string]any) (map[string]any, error) {
		c, _ := apcore.FromContext(ctx)
		return c.Executor().Call(ctx, "test.target", map[string]any{"n": 1}, c)
	}
	return []parityCase{
		{name: "everything is fine", want: "", ran: true},
		{name: "access denied", opts: apcore.ExecutorOptions{AccessControl: denyAll{}}, want: apcore.CodeACLDenied},
		{name: "approval denied", opts: apcore.ExecutorOptions{ApprovalHandler: apcore.AlwaysDeny{}}, spec: apcore.Spec{Annotations: apcore.Annotations{RequiresApproval: true}}, want: apcore.CodeApprovalDenied},
		{name: "approved at once", opts: apcore.ExecutorOptions{ApprovalHandler: apcore.AutoApprove{}}, spec: apcore.Spec{Annotations: apcore.Annotations{RequiresApproval: true}}, ran: true},
		{name: "disabled module", prepare: func(e *apcore.Executor) { e.Disable("test.target", "maintenance") }, want: apcore.CodeModuleDisabled},
		{name: "inputs against the schema", spec: apcore.Spec{InputSchema: strictIn}, inputs: map[string]any{"n": "1"}, want: apcore.CodeSchemaValidation},
		{name: "call depth", opts: apcore.ExecutorOptions{MaxCallDepth: 2}, module: fails, want: apcore.CodeCallDepthExceeded, ran: true},
		{name: "call frequency", opts: apcore.ExecutorOptions{MaxModuleRepeat: 2}, module: fails, want: apcore.CodeCallFrequencyExceeded, ran: true},
		{name: "timeout of a readonly module", spec: apcore.Spec{Timeout: 20 * time.Millisecond, Annotations: readonly}, module: func(ctx context.Context, _ map[string]any) (map[string]any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, want: apcore.CodeModuleTimeout, ran: true},
		{name: "middleware refuses", opts: apcore.ExecutorOptions{Middleware: []apcore.Middleware{refusing{}}}, want: "ACME_REFUSED"},
		{name: "output against the schema", spec: apcore.Spec{OutputSchema: strictIn}, want: apcore.CodeSchemaValidation, ran: true},
		{name: "module fails", module: func(context.Context, map[string]any) (map[string]any, error) { return nil, errors.New("boom") }, want: apcore.CodeModuleExecuteError, ran: true},
	}
}

type denyAll struct{}

func (denyAll) CheckAccess(context.Context, apcore.AccessRequest) apcore.AccessDecision {
	return apcore.AccessDecision{}
}

type refusing struct{ apcore.BaseMiddleware }

func (refusing) Before(context.Context, *apcore.MiddlewareCall) (map[string]any, error) {
	return nil, apcore.NewError("ACME_REFUSED", "no").WithRetryable(new(false))
}

func (p parityCase) executor(t *testing.T, ran *atomic.Bool) *apcore.Executor {
	t.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	spec := p.spec
	spec.Description = "Is called both ways"
	if spec.InputSchema == nil {
		spec.InputSchema = map[string]any{}
	}
	if spec.OutputSchema == nil {
		spec.OutputSchema = map[string]any{}
	}
	module, err := apcore.NewRawFunc(func(ctx context.Context, in map[string]any) (map[string]any, error) {
		ran.Store(true)
		if p.module != nil {
			return p.module(ctx, in)
		}
		return map[string]any{"ok": true}, nil
	}, spec)
	must(t, err)
	must(t, registry.Register("test.target", module, apcore.RegisterOptions{}))
	opts := p.opts
	opts.Logger = slog.New(slog.DiscardHandler)
	executor, err := apcore.NewExecutor(registry, opts)
	must(t, err)
	if p.prepare != nil {
		p.prepare(executor)
	}
	return executor
}

// Scenario 30: moving to the durable runner loses no control. Every set-up gives
// the same code and the same answer to "did it run" both ways. The one
// difference that is meant: a timeout of a module that is neither readonly nor
// idempotent is OUTCOME_UNKNOWN here, see TestAtMostOnce in package durable.
func TestParity(t *testing.T) {
	for _, p := range parityCases() {
		t.Run(p.name, func(t *testing.T) {
			ran := atomic.Bool{}
			_, err := p.executor(t, &ran).Call(t.Context(), "test.target", p.inputs, nil)
			if got := apcore.CodeOf(err); got != p.want || ran.Load() != p.ran {
				t.Errorf("in process: %q, ran %t; want %q, %t (%v)", got, ran.Load(), p.want, p.ran, err)
			}
			ran.Store(false)
			env := testsuite.NewEnvironment(t, p.executor(t, &ran))
			env.ExecuteWorkflow(func(ctx workflow.Context) error {
				_, err := temporal.Call[map[string]any](ctx, "test.target", p.inputs)
				return err
			})
			got := apcore.Code("")
			if e := temporal.AsError(env.GetWorkflowError()); e != nil {
				got = e.Code
			}
			if got != p.want || ran.Load() != p.ran {
				t.Errorf("durable: %q, ran %t; want %q, %t", got, ran.Load(), p.want, p.ran)
			}
		})
	}
}

// Scenario 30 again: a call cancelled beforehand asks nobody and runs nothing.
func TestParityOfCancellation(t *testing.T) {
	p := parityCase{name: "cancelled"}
	ran := atomic.Bool{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.executor(t, &ran).Call(ctx, "test.target", nil, nil)
	if !errors.Is(err, apcore.CodeExecutionCancelled) || ran.Load() {
		t.Errorf("in process: %v, ran %t", err, ran.Load())
	}
	env := testsuite.NewEnvironment(t, p.executor(t, &ran))
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx, cancel := workflow.WithCancel(ctx)
		cancel()
		_, err := temporal.Call[map[string]any](ctx, "test.target", nil)
		if !errors.Is(err, apcore.CodeExecutionCancelled) || ran.Load() {
			t.Errorf("durable: %v, ran %t", err, ran.Load())
		}
		return nil
	})
	must(t, env.GetWorkflowError())
}

// An unknown module has the grace of a few units, in case the next worker knows
// it, and then fails.
func TestUnknownModule(t *testing.T) {
	env := testsuite.NewEnvironment(t, newExecutor(t, &ledger{}, apcore.ExecutorOptions{}))
	env.ExecuteWorkflow(func(ctx workflow.Context) (time.Duration, error) {
		begin := workflow.Now(ctx)
		_, err := temporal.Call[echo](ctx, "no.such", nil)
		if !errors.Is(err, apcore.CodeModuleNotFound) {
			t.Errorf("error %v", err)
		}
		return workflow.Now(ctx).Sub(begin), nil
	})
	must(t, env.GetWorkflowError())
	var waited time.Duration
	must(t, env.GetWorkflowResult(&waited))
	if waited != 31*time.Second {
		t.Errorf("gave up after %v, want 1+2+4+8+16 s", waited)
	}
}
