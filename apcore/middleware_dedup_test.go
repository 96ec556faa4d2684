package apcore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

func newStore(t *testing.T, opts apcore.InMemoryDedupOptions) *apcore.InMemoryDedupStore {
	t.Helper()
	store, err := apcore.NewInMemoryDedupStore(opts)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func newDedup(t *testing.T, opts apcore.DedupOptions) *apcore.DedupMiddleware {
	t.Helper()
	if opts.Store == nil {
		opts.Store = newStore(t, apcore.InMemoryDedupOptions{})
	}
	m, err := apcore.NewDedupMiddleware(opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// request is a fresh context of one external request.
func request(id string) *apcore.Context { return requestBy(id, nil) }

func requestBy(id string, actor *apcore.Identity) *apcore.Context {
	return apcore.NewContext(apcore.ContextOptions{Identity: actor, Data: obj{apcore.CorrelationIDKey: id}})
}

// counting is a module that returns how often it ran.
func counting(h *host) execute {
	return func(context.Context, obj, *apcore.Context) (obj, error) { return obj{"run": h.effects.count()}, nil }
}

func TestDedupOptions(t *testing.T) {
	for _, opts := range []apcore.DedupOptions{{}, {Store: (*apcore.InMemoryDedupStore)(nil)}} {
		_, err := apcore.NewDedupMiddleware(opts)
		invalidOption(t, err, "DedupOptions.Store", "nil")
	}
	_, err := apcore.NewDedupMiddleware(apcore.DedupOptions{Store: newStore(t, apcore.InMemoryDedupOptions{}), Priority: -3})
	invalidOption(t, err, "DedupOptions.Priority", "-3", "1000")
	_, err = apcore.NewInMemoryDedupStore(apcore.InMemoryDedupOptions{Limit: -1})
	invalidOption(t, err, "InMemoryDedupOptions.Limit", "-1", "1 to 10000000")
	_, err = apcore.NewInMemoryDedupStore(apcore.InMemoryDedupOptions{TTL: -time.Second})
	invalidOption(t, err, "InMemoryDedupOptions.TTL", "-1s", "positive")
}

// TestDedupKeys says which calls are the same.
func TestDedupKeys(t *testing.T) {
	ada := apcore.NewIdentity("ada", "user", nil, nil)
	for name, test := range map[string]struct {
		first, second *apcore.Context
		module        string
		inputs        obj
		keyOf         func(*apcore.MiddlewareCall) string
		effects       int
	}{
		"equal":             {first: request("1"), second: request("1"), effects: 1},
		"equal actor":       {first: requestBy("1", ada), second: requestBy("1", apcore.NewIdentity("ada", "user", nil, nil)), effects: 1},
		"other request":     {first: request("1"), second: request("2"), effects: 2},
		"other inputs":      {first: request("1"), second: request("1"), inputs: obj{"n": 2}, effects: 2},
		"other actor":       {first: requestBy("1", ada), second: requestBy("1", apcore.NewIdentity("bob", "user", nil, nil)), effects: 2},
		"nobody":            {first: requestBy("1", ada), second: request("1"), effects: 2},
		"other module":      {first: request("1"), second: request("1"), module: "n", effects: 2},
		"no request id":     {first: apcore.NewContext(apcore.ContextOptions{}), second: apcore.NewContext(apcore.ContextOptions{}), effects: 2},
		"own key":           {keyOf: func(*apcore.MiddlewareCall) string { return "k" }, inputs: obj{"n": 2}, effects: 1},
		"own key, modules":  {keyOf: func(*apcore.MiddlewareCall) string { return "k" }, module: "n", effects: 2},
		"own key, no dedup": {first: request("1"), second: request("1"), keyOf: func(*apcore.MiddlewareCall) string { return "" }, effects: 2},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, with(newDedup(t, apcore.DedupOptions{KeyOf: test.keyOf})))
			h.module("m", counting(h)).module("n", counting(h))
			if test.inputs == nil {
				test.inputs = obj{"n": 1}
			}
			if test.module == "" {
				test.module = "m"
			}
			_, err := h.call("m", obj{"n": 1}, test.first)
			h.wants(err, "", 1)
			outcome, err := h.call(test.module, test.inputs, test.second)
			h.wants(err, "", test.effects)
			if diff := cmp.Diff(obj{"run": test.effects}, outcome.Output); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDedupMechanics: a recorded answer reaches no other middleware, and what is
// recorded is what the caller got.
func TestDedupMechanics(t *testing.T) {
	h := newHost(t, apcore.ExecutorOptions{})
	inner := traced(&h.effects, "inner", 100)
	inner.after = func(*apcore.MiddlewareCall, obj) (obj, error) { return obj{"by": "inner"}, nil }
	for _, m := range []apcore.Middleware{newDedup(t, apcore.DedupOptions{}), inner} {
		if err := h.Use(m); err != nil {
			t.Fatal(err)
		}
	}
	h.module("m", nil)
	for range 2 {
		outcome, err := h.call("m", nil, request("1"))
		h.wants(err, "", 2)
		if diff := cmp.Diff(obj{"by": "inner"}, outcome.Output); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		outcome.Output["by"] = "caller"
	}
	if diff := cmp.Diff([]string{"before inner", "m"}, h.effects.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDedupParallel: 50 equal calls run the module once, and all get its output.
func TestDedupParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, with(newDedup(t, apcore.DedupOptions{})))
		h.module("m", func(context.Context, obj, *apcore.Context) (obj, error) {
			time.Sleep(time.Second)
			return obj{"run": h.effects.count()}, nil
		})
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				outcome, err := h.call("m", nil, request("1"))
				if diff := cmp.Diff(obj{"run": 1}, outcome.Output); diff != "" || err != nil {
					t.Errorf("%v (-want +got):\n%s", err, diff)
				}
			})
		}
		all.Wait()
		h.wants(nil, "", 1)
	})
}

// TestDedupFailures are not recorded; equal calls try one after the other.
func TestDedupFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, with(newDedup(t, apcore.DedupOptions{}), newRetry(t, apcore.RetryOptions{MaxRetries: 1})))
		h.module("m", func(context.Context, obj, *apcore.Context) (obj, error) {
			time.Sleep(time.Second)
			if run := h.effects.count(); run == 3 {
				return obj{"run": run}, nil
			}
			return nil, flaky()
		})
		codes := make(chan apcore.Code, 5)
		var all sync.WaitGroup
		for range cap(codes) {
			all.Go(func() {
				_, err := h.call("m", nil, request("1"))
				codes <- apcore.CodeOf(err)
			})
		}
		all.Wait()
		h.wants(nil, "", 3)
	})
}

// TestDedupWaiting ends with the waiting call, and a run that ends without an
// outcome gives up its turn.
func TestDedupWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, with(newDedup(t, apcore.DedupOptions{})))
		h.module("m", func(ctx context.Context, _ obj, _ *apcore.Context) (obj, error) {
			if h.effects.count() > 1 {
				return obj{}, nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		first, second := apcore.NewCancelToken(), apcore.NewCancelToken()
		errs := make(chan error, 3)
		start := func(c *apcore.Context) {
			go func() { _, err := h.call("m", nil, c); errs <- err }()
			synctest.Wait()
		}
		start(request("1").WithCancelToken(first))
		start(request("1").WithCancelToken(second))
		second.Cancel()
		h.wants(<-errs, apcore.CodeExecutionCancelled, 1)
		start(request("1").WithGlobalDeadline(time.Now().Add(time.Second)))
		h.wants(<-errs, apcore.CodeModuleTimeout, 1)
		first.Cancel()
		h.wants(<-errs, apcore.CodeExecutionCancelled, 1)
		start(request("1"))
		h.wants(<-errs, "", 2)
	})
}

// TestDedupNested: a call within an equal one runs instead of waiting for it.
func TestDedupNested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, with(newDedup(t, apcore.DedupOptions{})))
		h.module("m", func(ctx context.Context, _ obj, c *apcore.Context) (obj, error) {
			if c.Depth() == 1 {
				if _, err := apcore.Call[obj](ctx, "m", nil); err != nil {
					return nil, err
				}
			}
			return obj{"depth": c.Depth()}, nil
		})
		for range 2 {
			outcome, err := h.call("m", nil, request("1"))
			h.wants(err, "", 2)
			if diff := cmp.Diff(obj{"depth": 1}, outcome.Output); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	})
}

// brokenStore fails in one of its methods.
type brokenStore struct {
	apcore.DedupStore
	load, save error
}

func (s *brokenStore) Load(ctx context.Context, key string) (output map[string]any, ok bool, err error) {
	if s.load != nil {
		return nil, false, s.load
	}
	return s.DedupStore.Load(ctx, key)
}

func (s *brokenStore) Save(ctx context.Context, key string, output map[string]any) error {
	if s.save != nil {
		return s.save
	}
	return s.DedupStore.Save(ctx, key, output)
}

// TestDedupStoreFails: no effect without a look, no failure after an effect.
func TestDedupStoreFails(t *testing.T) {
	var warnings ledger
	store := &brokenStore{DedupStore: newStore(t, apcore.InMemoryDedupOptions{}), load: errors.New("gone")}
	h := newHost(t, with(newDedup(t, apcore.DedupOptions{Store: store, Logger: logTo(&warnings)}))).module("m", nil)
	_, err := h.call("m", nil, request("1"))
	h.wants(err, apcore.CodeInternal, 0)
	if failure := apcore.AsError(err); failure.Retryable == nil || !*failure.Retryable || !errors.Is(err, store.load) {
		t.Errorf("%v, retryable %v", failure.Cause, failure.Retryable)
	}
	store.load, store.save = nil, errors.New("full")
	for n := range 2 {
		_, err = h.call("m", nil, request("1"))
		h.wants(err, "", n+1)
	}
	if got := warnings.all(); len(got) != 2 || !strings.Contains(got[0], "full") {
		t.Errorf("%v", got)
	}
}

func TestInMemoryDedupStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, apcore.InMemoryDedupOptions{Limit: 2, TTL: time.Minute})
		save := func(key string, n int) {
			t.Helper()
			if err := store.Save(t.Context(), key, obj{"list": []any{n}}); err != nil {
				t.Fatal(err)
			}
		}
		load := func(want string) {
			t.Helper()
			got := ""
			for _, key := range []string{"a", "b", "c"} {
				output, ok, err := store.Load(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					got += fmt.Sprint(key, list(output["list"])[0], " ")
					list(output["list"])[0] = "changed"
				}
			}
			if got != want {
				t.Errorf("holds %q, want %q", got, want)
			}
		}
		save("a", 1)
		save("a", 2) // the first stays
		time.Sleep(time.Second)
		save("b", 3)
		load("a1 b3 ")
		load("a1 b3 ")
		time.Sleep(time.Minute - time.Second)
		load("b3 ")
		save("a", 4)
		save("c", 5) // b was used before a was saved
		load("a4 c5 ")
		if _, ok, err := store.Load(t.Context(), "a"); !ok || err != nil {
			t.Fatal("a is gone", err)
		}
		save("b", 6) // a was used after c
		load("a4 b6 ")
		if err := store.Save(t.Context(), "x", obj{"f": func() {}}); !errors.Is(err, apcore.CodeInvalidInput) {
			t.Errorf("no JSON: %v", err)
		}
	})
}
