package apcore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Scenario 49: whatever goes wrong in a goroutine that a module starts through
// its context is an error of that module, and the process lives.
func TestGoroutinesOfAModule(t *testing.T) {
	endings := map[string]func(){"nothing": func() {}, "an error": nil}
	for kind, do := range disasters {
		endings[kind] = do
	}
	for kind, do := range endings {
		t.Run(kind, func(t *testing.T) {
			logged := &ledger{}
			h := newHost(t, apcore.ExecutorOptions{Logger: logTo(logged)})
			h.module("inner", func(ctx context.Context, _ obj, c *apcore.Context) (obj, error) {
				wait := c.Go(ctx, func(context.Context) error {
					if do == nil {
						return apcore.NewError("INNER_BUSY", "busy").WithRetryable(new(true))
					}
					do()
					return nil
				})
				if first := wait(); !errors.Is(wait(), first) {
					t.Error("waiting again gives another error")
				}
				return obj{}, wait()
			}).module("outer", calls("inner"))
			_, err := h.call("outer", nil, nil)
			want := apcore.CodeModuleExecuteError
			switch kind {
			case "nothing":
				want = ""
			case "an error":
				want = "INNER_BUSY"
			}
			h.wants(err, want, 2)
			if want == "" {
				return
			}
			details := apcore.AsError(err).Details
			if diff := cmp.Diff(obj{"module_id": "inner", "call_chain": []any{"outer", "inner"}}, details); diff != "" {
				t.Errorf("details (-want +got):\n%s", diff)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the panic's text got out: %v", err)
			}
			panicked := want == apcore.CodeModuleExecuteError && kind != "goexit"
			if logs := strings.Join(logged.all(), "\n"); panicked != strings.Contains(logs, "goroutine of a module panicked") || panicked && !strings.Contains(logs, "goroutine_test.go") {
				t.Errorf("logged %s", logs)
			}
		})
	}
}

// A module that does not wait for its goroutines ends before them.
func TestGoroutineOutlivesItsCall(t *testing.T) {
	release, waits := make(chan struct{}), make(chan func() error, 1)
	h := newHost(t, apcore.ExecutorOptions{}).module("m", func(ctx context.Context, _ obj, c *apcore.Context) (obj, error) {
		waits <- c.Go(ctx, func(ctx context.Context) error {
			<-ctx.Done() // ends with the call
			<-release
			panic("late")
		})
		return obj{}, nil
	})
	_, err := h.call("m", nil, nil)
	h.wants(err, "", 1)
	close(release)
	if err := (<-waits)(); !errors.Is(err, apcore.CodeModuleExecuteError) {
		t.Errorf("%v", err)
	}
}

// Outside of a call there is no module to name.
func TestGoroutineOutsideOfACall(t *testing.T) {
	err := apcore.NewContext(apcore.ContextOptions{}).Go(t.Context(), func(context.Context) error { panic("x") })()
	if !errors.Is(err, apcore.CodeModuleExecuteError) {
		t.Errorf("%v", err)
	}
}
