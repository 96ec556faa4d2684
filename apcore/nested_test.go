package apcore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// calls is a body that calls another module and returns its output.
func calls(id string) execute {
	return func(ctx context.Context, _ obj, _ *apcore.Context) (obj, error) {
		return apcore.Call[obj](ctx, id, nil)
	}
}

func TestNestedCall(t *testing.T) {
	var inner *apcore.Context
	root := apcore.NewContext(apcore.ContextOptions{Data: obj{"k": 1}})
	h := newHost(t, apcore.ExecutorOptions{}).module("a", calls("b")).module("b", func(_ context.Context, in obj, c *apcore.Context) (obj, error) {
		inner = c
		c.Data().Set("k", 2)
		return obj{"inputs": len(in)}, nil
	})
	outcome, err := h.call("a", nil, root)
	h.wants(err, "", 2)
	if diff := cmp.Diff(obj{"inputs": json.Number("0")}, outcome.Output); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, inner.CallChain()); diff != "" || inner.CallerID() != "a" || inner.TraceID() != root.TraceID() {
		t.Errorf("caller %q, chain %v", inner.CallerID(), inner.CallChain())
	}
	if k, _ := root.Data().Get("k"); k != 2 {
		t.Errorf("the tree's data holds %v, want what the inner module wrote", k)
	}
	if root.Depth() != 0 {
		t.Errorf("the caller's context was changed: %v", root.CallChain())
	}
}

func TestNestedGuards(t *testing.T) {
	tests := []struct {
		name    string
		calls   map[string]string
		opts    apcore.ExecutorOptions
		code    apcore.Code
		effects int
	}{
		{"circular", map[string]string{"a": "b", "b": "a"}, apcore.ExecutorOptions{}, apcore.CodeCircularCall, 2},
		{"frequency", map[string]string{"a": "a"}, apcore.ExecutorOptions{}, apcore.CodeCallFrequencyExceeded, 3},
		{"frequency of one", map[string]string{"a": "a"}, apcore.ExecutorOptions{MaxModuleRepeat: 1}, apcore.CodeCallFrequencyExceeded, 1},
		{"depth", map[string]string{"a": "b", "b": "c", "c": "d"}, apcore.ExecutorOptions{MaxCallDepth: 2}, apcore.CodeCallDepthExceeded, 2},
		{"unknown", map[string]string{"a": "b"}, apcore.ExecutorOptions{}, apcore.CodeModuleNotFound, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHost(t, test.opts)
			for id, target := range test.calls {
				h.module(id, calls(target))
			}
			_, err := h.call("a", nil, nil)
			h.wants(err, test.code, test.effects)
		})
	}
}

func TestCallOutsideOfACall(t *testing.T) {
	if _, err := apcore.Call[obj](t.Context(), "m", nil); !errors.Is(err, apcore.CodeContextBinding) {
		t.Errorf("%v", err)
	}
}

func TestCallConverts(t *testing.T) {
	type point struct {
		X int64 `json:"x"`
	}
	h := newHost(t, apcore.ExecutorOptions{}).module("b", func(_ context.Context, in obj, _ *apcore.Context) (obj, error) {
		return in, nil
	}).module("a", func(ctx context.Context, _ obj, _ *apcore.Context) (obj, error) {
		got, err := apcore.Call[point](ctx, "b", point{9007199254740993})
		if err != nil {
			return nil, err
		}
		_, misfit := apcore.Call[[]string](ctx, "b", point{1})
		_, unwritable := apcore.Call[point](ctx, "b", obj{"x": func() {}})
		_, scalar := apcore.Call[point](ctx, "b", 3)
		return obj{"x": got.X, "codes": fmt.Sprintf("%v %v %v", apcore.CodeOf(misfit), apcore.CodeOf(unwritable), apcore.CodeOf(scalar))}, nil
	})
	outcome, err := h.call("a", nil, nil)
	h.wants(err, "", 3)
	want := obj{"x": int64(9007199254740993), "codes": strings.Repeat(" GENERAL_INVALID_INPUT", 3)[1:]}
	if diff := cmp.Diff(want, outcome.Output); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTimeout: the call returns at the timer, its own token ends, the caller's
// does not, and the late result is discarded.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token := apcore.NewCancelToken()
		tokens := make(chan *apcore.CancelToken, 1)
		h := newHost(t, apcore.ExecutorOptions{DefaultTimeout: time.Second})
		h.module("m", func(_ context.Context, _ obj, c *apcore.Context) (obj, error) {
			tokens <- c.CancelToken()
			time.Sleep(time.Minute) // deaf to its context
			h.effects.add("late")
			return obj{"late": true}, nil
		})
		begin := time.Now()
		outcome, err := h.call("m", nil, apcore.NewContext(apcore.ContextOptions{CancelToken: token}))
		h.wants(err, apcore.CodeModuleTimeout, 1)
		if took := time.Since(begin); took != time.Second {
			t.Errorf("returned after %v, want 1s", took)
		}
		want := obj{"module_id": "m", "timeout_ms": int64(1000), "call_chain": []any{"m"}}
		if diff := cmp.Diff(want, apcore.AsError(err).Details); diff != "" {
			t.Errorf("details (-want +got):\n%s", diff)
		}
		if own := <-tokens; !own.Cancelled() || token.Cancelled() || !outcome.Started {
			t.Errorf("own token %t, parent's %t, started %t", own.Cancelled(), token.Cancelled(), outcome.Started)
		}
		time.Sleep(2 * time.Minute)
		if outcome.Output != nil || h.effects.count() != 2 {
			t.Errorf("output %v, effects %v", outcome.Output, h.effects.all())
		}
	})
}

func TestTimers(t *testing.T) {
	tests := []struct {
		name string
		opts apcore.ExecutorOptions
		own  time.Duration
		work time.Duration
		took time.Duration
		code apcore.Code
	}{
		{name: "defaults", work: time.Hour, took: 30 * time.Second, code: apcore.CodeModuleTimeout},
		{name: "own timer is shorter", own: time.Second, work: time.Hour, took: time.Second, code: apcore.CodeModuleTimeout},
		{name: "own timer is longer", own: 50 * time.Second, work: 40 * time.Second, took: 40 * time.Second},
		{name: "the deadline clamps", own: time.Hour, work: 2 * time.Hour, took: time.Minute, code: apcore.CodeModuleTimeout},
		{name: "own NoTimeout", own: apcore.NoTimeout, work: 2 * time.Hour, took: time.Minute, code: apcore.CodeModuleTimeout},
		{name: "NoTimeout everywhere", opts: apcore.ExecutorOptions{DefaultTimeout: apcore.NoTimeout, GlobalTimeout: apcore.NoTimeout}, work: 9 * time.Hour, took: 9 * time.Hour},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t, test.opts)
				err := apcore.Register(h.registry, "m", func(ctx context.Context, _ obj) (obj, error) {
					select {
					case <-ctx.Done():
						return nil, ctx.Err()
					case <-time.After(test.work):
						return obj{}, nil
					}
				}, apcore.Spec{Description: "Works", Timeout: test.own})
				if err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				_, err = h.call("m", nil, nil)
				if took := time.Since(begin); took != test.took || apcore.CodeOf(err) != test.code {
					t.Errorf("%v after %v, want %q after %v", err, took, test.code, test.took)
				}
			})
		})
	}
}

// TestNestedTimeoutIsCaught: the caller of a slow module goes on without it.
func TestNestedTimeoutIsCaught(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, apcore.ExecutorOptions{DefaultTimeout: 10 * time.Second})
		h.module("fast", nil).module("outer", func(ctx context.Context, _ obj, c *apcore.Context) (obj, error) {
			ctx2, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := apcore.Call[obj](ctx2, "slow", nil)
			if !errors.Is(err, apcore.CodeModuleTimeout) || c.CancelToken().Cancelled() {
				t.Errorf("nested: %v, token cancelled %t", err, c.CancelToken().Cancelled())
			}
			return apcore.Call[obj](ctx, "fast", nil)
		}).module("slow", func(ctx context.Context, _ obj, _ *apcore.Context) (obj, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		outcome, err := h.call("outer", nil, nil)
		h.wants(err, "", 3)
		if outcome.Output["ok"] != true {
			t.Errorf("output %v", outcome.Output)
		}
	})
}

// TestDeadlinePassed: a call that reaches the module too late does not run it.
func TestDeadlinePassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var own *apcore.CancelToken
		h := newHost(t, apcore.ExecutorOptions{GlobalTimeout: time.Second, Middleware: []apcore.Middleware{&hook{
			before: func(call *apcore.MiddlewareCall) (obj, error) {
				own = call.Context.CancelToken()
				time.Sleep(2 * time.Second)
				return nil, nil
			},
		}}}).module("m", nil)
		outcome, err := h.call("m", nil, nil)
		h.wants(err, apcore.CodeModuleTimeout, 0)
		if outcome.Started || !own.Cancelled() {
			t.Errorf("started %t, token cancelled %t", outcome.Started, own.Cancelled())
		}
	})
}

// TestCancelWhileRunning: the application's token ends a deaf module's call at once.
func TestCancelWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token := apcore.NewCancelToken()
		h := newHost(t, apcore.ExecutorOptions{}).module("outer", calls("inner")).module("inner", func(context.Context, obj, *apcore.Context) (obj, error) {
			time.Sleep(20 * time.Second)
			return obj{}, nil
		})
		go func() {
			time.Sleep(time.Second)
			token.Cancel()
		}()
		begin := time.Now()
		_, err := h.call("outer", nil, apcore.NewContext(apcore.ContextOptions{CancelToken: token}))
		h.wants(err, apcore.CodeExecutionCancelled, 2)
		if took := time.Since(begin); took != time.Second {
			t.Errorf("returned after %v", took)
		}
		time.Sleep(time.Minute)
	})
}
