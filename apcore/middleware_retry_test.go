package apcore_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// flaky is a retryable failure of a module.
func flaky() *apcore.Error { return apcore.NewError("FLAKY", "again").WithRetryable(new(true)) }

func newRetry(t *testing.T, opts apcore.RetryOptions) *apcore.RetryMiddleware {
	t.Helper()
	m, err := apcore.NewRetryMiddleware(opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func with(middleware ...apcore.Middleware) apcore.ExecutorOptions {
	return apcore.ExecutorOptions{Middleware: middleware}
}

func failing(err error) execute {
	return func(context.Context, obj, *apcore.Context) (obj, error) { return nil, err }
}

// invalidOption checks that a constructor names field, value and bound.
func invalidOption(t *testing.T, err error, parts ...string) {
	t.Helper()
	if !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("%v, want %s", err, apcore.CodeInvalidInput)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %q", err, part)
		}
	}
}

func TestRetryOptions(t *testing.T) {
	for _, test := range []struct {
		opts  apcore.RetryOptions
		parts []string
	}{
		{apcore.RetryOptions{MaxRetries: -1}, []string{"RetryOptions.MaxRetries", "-1", "1 or more"}},
		{apcore.RetryOptions{Strategy: "linear"}, []string{"RetryOptions.Strategy", "linear", "fixed"}},
		{apcore.RetryOptions{BaseDelay: -time.Second}, []string{"RetryOptions.BaseDelay", "-1s", "1h"}},
		{apcore.RetryOptions{MaxDelay: 2 * time.Hour}, []string{"RetryOptions.MaxDelay", "2h", "1h"}},
		{apcore.RetryOptions{Priority: 1001}, []string{"RetryOptions.Priority", "1001", "1000"}},
	} {
		_, err := apcore.NewRetryMiddleware(test.opts)
		invalidOption(t, err, test.parts...)
	}
	if got := newRetry(t, apcore.RetryOptions{}).Priority(); got != 100 {
		t.Errorf("priority %d", got)
	}
}

// TestRetryDelays looks at the times at which the module runs.
func TestRetryDelays(t *testing.T) {
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		opts   apcore.RetryOptions
		random float64
		want   []time.Duration
	}{
		"exponential, no jitter": {opts: apcore.RetryOptions{NoJitter: true}, want: []time.Duration{0, 100 * ms, 300 * ms, 700 * ms}},
		"fixed":                  {opts: apcore.RetryOptions{NoJitter: true, Strategy: apcore.RetryFixed, BaseDelay: 7 * time.Second}, want: []time.Duration{0, 7 * time.Second, 14 * time.Second, 21 * time.Second}},
		"capped":                 {opts: apcore.RetryOptions{NoJitter: true, MaxDelay: 150 * ms, MaxRetries: 4}, want: []time.Duration{0, 100 * ms, 250 * ms, 400 * ms, 550 * ms}},
		"least jitter":           {want: []time.Duration{0, 50 * ms, 150 * ms, 350 * ms}},
		"jitter after the cap":   {opts: apcore.RetryOptions{MaxDelay: 100 * ms, MaxRetries: 2}, random: 0.75, want: []time.Duration{0, 125 * ms, 250 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				retry := newRetry(t, test.opts)
				retry.WithRandom(func() float64 { return test.random })
				start, got := time.Now(), []time.Duration(nil)
				h := newHost(t, with(retry)).module("m", func(context.Context, obj, *apcore.Context) (obj, error) {
					got = append(got, time.Since(start))
					return nil, flaky()
				})
				_, err := h.call("m", nil, nil)
				h.wants(err, "FLAKY", len(test.want))
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestRetryDecides which errors are worth another run.
func TestRetryDecides(t *testing.T) {
	idempotent := func(m *testModule) { m.annotations.Idempotent = true }
	readonly := func(m *testModule) { m.annotations.Readonly = true }
	destructive := func(m *testModule) { m.annotations.Destructive = true }
	strict := apcore.RetryOptions{RequireIdempotent: true}
	for name, test := range map[string]struct {
		opts apcore.RetryOptions
		err  error
		mark func(*testModule)
		runs int
	}{
		"retryable":                     {err: flaky(), runs: 4},
		"not retryable":                 {err: flaky().WithRetryable(new(false)), runs: 1},
		"unknown":                       {err: flaky().WithRetryable(nil), runs: 1},
		"foreign error":                 {err: errors.New("x"), runs: 1},
		"host cancellation":             {err: context.Canceled, runs: 1},
		"cancellation of a nested call": {err: apcore.NewError(apcore.CodeExecutionCancelled, "x"), runs: 1},
		"timeout of the host":           {err: context.DeadlineExceeded, runs: 4},
		"strict, unannotated":           {opts: strict, err: flaky(), runs: 1},
		"strict, destructive":           {opts: strict, err: flaky(), mark: destructive, runs: 1},
		"strict, idempotent":            {opts: strict, err: flaky(), mark: idempotent, runs: 4},
		"strict, readonly":              {opts: strict, err: flaky(), mark: readonly, runs: 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if test.mark == nil {
					test.mark = func(*testModule) {}
				}
				h := newHost(t, with(newRetry(t, test.opts))).module("m", failing(test.err), test.mark)
				_, err := h.call("m", nil, nil)
				h.wants(err, apcore.CodeOf(test.err), test.runs)
			})
		})
	}
}

// TestRetryStartsFromTheCaller: the chain does not grow, so that any number of
// retries passes the guard; and inputs are those of the run that failed.
func TestRetryStartsFromTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, with(newRetry(t, apcore.RetryOptions{MaxRetries: 5})))
		h.module("m", func(_ context.Context, in obj, c *apcore.Context) (obj, error) {
			h.effects.add("%v %q %v", c.CallChain(), c.CallerID(), in["n"])
			in["n"] = "changed" // the module's own copy
			if h.effects.count() < 12 {
				return nil, flaky()
			}
			return obj{}, nil
		})
		caller := apcore.NewContext(apcore.ContextOptions{})
		_, err := h.call("m", obj{"n": 1}, caller)
		h.wants(err, "", 12)
		for i, entry := range h.effects.all() {
			if i%2 == 1 && entry != `[m] "" 1` {
				t.Errorf("run %d: %s", i/2, entry)
			}
		}
		if caller.Data().Len() != 0 {
			t.Errorf("success left %v behind", caller.Data().Keys())
		}
	})
}

// TestRetryBudget: one budget per module and tree, not given back after giving
// up; another tree has its own.
func TestRetryBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var warnings ledger
		h := newHost(t, with(newRetry(t, apcore.RetryOptions{MaxRetries: 2, Logger: logTo(&warnings)}))).module("m", failing(flaky()))
		c := apcore.NewContext(apcore.ContextOptions{})
		for _, step := range []struct {
			context *apcore.Context
			effects int
		}{{c, 3}, {c, 4}, {nil, 7}} {
			_, err := h.call("m", nil, step.context)
			h.wants(err, "FLAKY", step.effects)
		}
		if n, _ := c.Data().Get("_apcore.mw.retry.count.m"); n != 2 {
			t.Errorf("count %v", n)
		}
		if got := warnings.all(); len(got) != 3 || !strings.Contains(got[0], "module_id=m") || !strings.Contains(got[0], "max_retries=2") {
			t.Errorf("warnings %q", got)
		}
	})
}

// TestRetryBudgetIsShared by the parallel calls of one tree.
func TestRetryBudgetIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, with(newRetry(t, apcore.RetryOptions{MaxRetries: 4}))).module("m", failing(flaky()))
		c := apcore.NewContext(apcore.ContextOptions{})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { _, _ = h.call("m", nil, c) })
		}
		all.Wait()
		h.wants(nil, "", 14)
	})
}

// TestRetryCountsAFailureOnce when it comes before the module (scenario 46).
func TestRetryCountsAFailureOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusals := 0
		h := newHost(t, with(newRetry(t, apcore.RetryOptions{}), &hook{before: func(*apcore.MiddlewareCall) (obj, error) {
			refusals++
			return nil, flaky()
		}})).module("m", nil)
		_, err := h.call("m", nil, nil)
		h.wants(err, "FLAKY", 0)
		if refusals != 4 {
			t.Errorf("%d runs, want 4", refusals)
		}
	})
}

// TestRetryWaitEnds with the call, and the module does not run again.
func TestRetryWaitEnds(t *testing.T) {
	opts := apcore.RetryOptions{NoJitter: true, BaseDelay: time.Minute, MaxDelay: time.Minute}
	for name, test := range map[string]struct {
		end  func(context.Context, *apcore.CancelToken) (context.Context, context.CancelFunc)
		code apcore.Code
	}{
		"token": {func(ctx context.Context, token *apcore.CancelToken) (context.Context, context.CancelFunc) {
			time.AfterFunc(time.Second, token.Cancel)
			return context.WithCancel(ctx)
		}, apcore.CodeExecutionCancelled},
		"ctx": {func(ctx context.Context, _ *apcore.CancelToken) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, apcore.CodeExecutionCancelled},
		"deadline": {func(ctx context.Context, _ *apcore.CancelToken) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, apcore.CodeModuleTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host := with(newRetry(t, opts))
				host.GlobalTimeout = apcore.NoTimeout
				h := newHost(t, host).module("m", failing(flaky()))
				token, start := apcore.NewCancelToken(), time.Now()
				ctx, cancel := test.end(t.Context(), token)
				defer cancel()
				_, err := h.Call(ctx, "m", nil, apcore.NewContext(apcore.ContextOptions{CancelToken: token}))
				h.wants(err, test.code, 1)
				if waited := time.Since(start); waited != time.Second {
					t.Errorf("returned after %v", waited)
				}
			})
		})
	}
}

// TestRetryAfterTimeout waits although the timer has ended the call's own token.
func TestRetryAfterTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := with(newRetry(t, apcore.RetryOptions{MaxRetries: 1, NoJitter: true, BaseDelay: time.Minute, MaxDelay: time.Minute}))
		opts.DefaultTimeout, opts.GlobalTimeout = time.Second, time.Hour
		h := newHost(t, opts).module("m", func(ctx context.Context, _ obj, _ *apcore.Context) (obj, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		start := time.Now()
		_, err := h.call("m", nil, apcore.NewContext(apcore.ContextOptions{CancelToken: apcore.NewCancelToken()}))
		h.wants(err, apcore.CodeModuleTimeout, 2)
		if took := time.Since(start); took != 62*time.Second {
			t.Errorf("took %v, want twice a second and a minute between", took)
		}
	})
}

// TestRetriesShareTheDeadline: the deadline belongs to the call tree (§12.7.5),
// so a run more is not a minute more, whoever asks for it.
func TestRetriesShareTheDeadline(t *testing.T) {
	slow := func(ctx context.Context, _ obj, _ *apcore.Context) (obj, error) {
		select {
		case <-time.After(4 * time.Second):
			return nil, flaky()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	for name, test := range map[string]struct {
		delay time.Duration // of a RetryMiddleware; zero is a hook that signals at once
		code  apcore.Code
		runs  int
		took  time.Duration
	}{
		"signal":                {0, apcore.CodeModuleTimeout, 3, 10 * time.Second},
		"middleware":            {time.Second, "FLAKY", 2, 9 * time.Second},
		"delay beyond the end":  {7 * time.Second, "FLAKY", 1, 4 * time.Second},
		"delay just to the end": {6 * time.Second, "FLAKY", 1, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var middleware apcore.Middleware = &hook{onError: func(call *apcore.MiddlewareCall, _ *apcore.Error) (*apcore.Recovery, error) {
					return &apcore.Recovery{Retry: &apcore.RetrySignal{Inputs: call.Inputs}}, nil
				}}
				if test.delay != 0 {
					middleware = newRetry(t, apcore.RetryOptions{NoJitter: true, Strategy: apcore.RetryFixed, BaseDelay: test.delay})
				}
				opts := with(middleware)
				opts.GlobalTimeout = 10 * time.Second
				h := newHost(t, opts).module("m", slow)
				start := time.Now()
				_, err := h.call("m", nil, nil)
				h.wants(err, test.code, test.runs)
				if took := time.Since(start); took != test.took {
					t.Errorf("took %v, want %v", took, test.took)
				}
			})
		})
	}
}
