package durable_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/durable/memory"
)

// Scenario 46: retry middleware in the core and attempts of the engine do not
// multiply. The engine owns retries: a module that always fails runs as often as
// its policy says, one that runs at most once runs once, and what a module calls
// in process runs once for each attempt.
func TestRetriesDoNotMultiply(t *testing.T) {
	for _, test := range []struct {
		module string
		calls  int64
	}{
		{"acme.read", 3}, {"acme.charge", 1}, {"acme.outer", 3},
	} {
		t.Run(test.module, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				retry, err := apcore.NewRetryMiddleware(apcore.RetryOptions{MaxRetries: 3, NoJitter: true})
				must(t, err)
				w := newWorld(t, apcore.ExecutorOptions{Middleware: []apcore.Middleware{retry}})
				calls := atomic.Int64{}
				fails := func(context.Context, struct{}) (map[string]any, error) {
					calls.Add(1)
					return nil, apcore.NewError("ACME_BUSY", "busy").WithRetryable(new(true))
				}
				readonly := apcore.Annotations{Readonly: true}
				must(t, errors.Join(
					apcore.Register(w.registry, "acme.read", fails, apcore.Spec{Description: "Reads", Annotations: readonly}),
					apcore.Register(w.registry, "acme.charge", fails, apcore.Spec{Description: "Charges", Annotations: apcore.Annotations{Destructive: true}}),
					apcore.Register(w.registry, "acme.outer", func(ctx context.Context, _ struct{}) (map[string]any, error) {
						return apcore.Call[map[string]any](ctx, "acme.read", nil)
					}, apcore.Spec{Description: "Calls another", Annotations: readonly}),
				))
				run := memory.NewRun("w", w.invoker, func(id string) durable.Policy {
					definition := w.registry.Definition(id)
					return durable.Settings{Attempts: 3}.Apply(durable.PolicyFor(durable.ClassOf(&definition.Annotations), time.Minute))
				})
				for round := int64(1); round <= 2; round++ { // no counter is kept from one call to the next
					if _, err := run.Call(t.Context(), test.module, nil, nil); !errors.Is(err, apcore.Code("ACME_BUSY")) {
						t.Fatalf("error %v", err)
					}
					if got := calls.Load(); got != round*test.calls {
						t.Errorf("%d runs after %d calls, want %d for each", got, round, test.calls)
					}
				}
				if _, err := w.executor.Call(t.Context(), "acme.read", nil, nil); !errors.Is(err, apcore.Code("ACME_BUSY")) {
					t.Fatalf("error %v", err)
				}
				if got := calls.Load() - 2*test.calls; got != 4 {
					t.Errorf("%d runs in process, where the middleware owns retries, want 4", got)
				}
			})
		})
	}
}

// Errors that provably came before the module's own start are told apart from
// those of a module that it called, which came after, whatever code they have.
func TestNotStartedIsOfTheModuleItself(t *testing.T) {
	for _, test := range []struct {
		inner string
		want  apcore.Code
	}{
		{"no.such", apcore.CodeModuleNotFound}, {"acme.off", apcore.CodeModuleDisabled}, {"acme.forbidden", apcore.CodeACLDenied},
		{"acme.strict", apcore.CodeSchemaValidation}, {"acme.inner", apcore.CodeCircularCall}, {"acme.gated", apcore.CodeApprovalDenied},
	} {
		t.Run(string(test.want), func(t *testing.T) {
			w := newWorld(t, apcore.ExecutorOptions{AccessControl: forbids{"acme.forbidden"}, ApprovalHandler: apcore.AlwaysDeny{}})
			plain := func(context.Context, struct{}) (map[string]any, error) { return map[string]any{}, nil }
			calls := func(id string) func(ctx context.Context, _ struct{}) (map[string]any, error) {
				return func(ctx context.Context, _ struct{}) (map[string]any, error) {
					return apcore.Call[map[string]any](ctx, id, nil)
				}
			}
			must(t, errors.Join(
				apcore.Register(w.registry, "acme.off", plain, apcore.Spec{Description: "Is off"}),
				apcore.Register(w.registry, "acme.forbidden", plain, apcore.Spec{Description: "Is forbidden"}),
				apcore.Register(w.registry, "acme.gated", plain, apcore.Spec{Description: "Is gated", Annotations: apcore.Annotations{RequiresApproval: true}}),
				apcore.Register(w.registry, "acme.strict", func(context.Context, struct {
					N int `json:"n"`
				}) (map[string]any, error) {
					return map[string]any{}, nil
				}, apcore.Spec{Description: "Is strict"}),
				apcore.Register(w.registry, "acme.inner", calls("acme.outer"), apcore.Spec{Description: "Calls back"}),
				apcore.Register(w.registry, "acme.outer", calls(test.inner), apcore.Spec{Description: "Calls another"}),
			))
			w.executor.Disable("acme.off", "maintenance")
			fail := func(id string) *durable.Failure {
				_, err := w.invoker.Invoke(t.Context(), durable.CallRequest{V: 1, ModuleID: id, Inputs: []byte(`{}`), Context: []byte(anonymous), CallID: "w/w/1"}, 1)
				var failure *durable.Failure
				if !errors.As(err, &failure) || failure.Err.Code != test.want {
					t.Fatalf("%s failed with %v, want %s", id, err, test.want)
				}
				return failure
			}
			if got := fail("acme.outer"); got.NotStarted || got.Retry || got.Map()["x-not-started"] != nil {
				t.Errorf("of a nested module: %+v", got)
			}
			if test.want == apcore.CodeCircularCall {
				return // cannot be had without another module in between
			}
			if got := fail(test.inner); !got.NotStarted || got.Map()["x-not-started"] != true {
				t.Errorf("of the module itself: %+v", got)
			}
			if stage := durable.VerdictOf(test.want).Stage; stage != durable.StageBefore && stage != durable.StageEither {
				t.Errorf("the table says stage %q", stage)
			}
		})
	}
}

type forbids struct{ id string }

func (f forbids) CheckAccess(_ context.Context, request apcore.AccessRequest) apcore.AccessDecision {
	return apcore.AccessDecision{Allowed: request.TargetID != f.id}
}

// The stage in the table of codes is what the executor does: codes of stage
// before come with the mark that the module did not start, those after without.
func TestStagesHold(t *testing.T) {
	for code, failure := range map[apcore.Code]*durable.Failure{
		apcore.CodeModuleExecuteError: attempt(t, apcore.Annotations{}, errors.New("boom")),
		apcore.CodeModuleNotFound:     attemptBefore(t, nil, nil),
		apcore.CodeCircuitBreakerOpen: attemptBefore(t, &apcore.Annotations{}, apcore.NewError(apcore.CodeCircuitBreakerOpen, "open")),
	} {
		stage := durable.VerdictOf(code).Stage
		if failure.Err.Code != code || failure.NotStarted != (stage == durable.StageBefore) {
			t.Errorf("%s has stage %q and failed with %+v", code, stage, failure)
		}
	}
}
