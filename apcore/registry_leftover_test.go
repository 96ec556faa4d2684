package apcore_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Scenario 87: whatever way a module went while calls of it were running, its id
// is new again: calls reach the successor, the running ones end with the old
// module, and the successor drains on its own.
func TestSecondLifeOfAnID(t *testing.T) {
	for name, leave := range map[string]func(context.Context, *apcore.Registry){
		"unregister": func(_ context.Context, r *apcore.Registry) { r.Unregister("m", apcore.UnregisterOptions{}) },
		"drain in vain": func(ctx context.Context, r *apcore.Registry) {
			r.SafeUnregister(ctx, "m", apcore.UnregisterOptions{DrainTimeout: time.Second})
		},
		"drain with an ended context": func(ctx context.Context, r *apcore.Registry) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			r.SafeUnregister(ctx, "m", apcore.UnregisterOptions{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t, apcore.ExecutorOptions{})
				old := &lively{name: "old", hold: make(chan struct{})}
				must(t, h.registry.Register("m", old, apcore.RegisterOptions{}))
				running := make(chan string, 3)
				for range cap(running) {
					go func() {
						out, err := h.Call(t.Context(), "m", nil, nil)
						running <- fmt.Sprint(out["by"], err)
					}()
				}
				synctest.Wait()
				leave(t.Context(), h.registry)
				if h.registry.Has("m") {
					t.Fatal("still there")
				}
				must(t, h.registry.Register("m", &lively{name: "new"}, apcore.RegisterOptions{}))
				for range 2 { // twice: neither register nor call leaves a mark
					out, err := h.Call(t.Context(), "m", nil, nil)
					if err != nil || out["by"] != "new" {
						t.Errorf("the successor: %v, %v", out, err)
					}
				}
				close(old.hold)
				for range cap(running) {
					if got := <-running; got != "old<nil>" {
						t.Errorf("a call that was running: %s", got)
					}
				}
				if !h.registry.SafeUnregister(t.Context(), "m", apcore.UnregisterOptions{}) {
					t.Error("the old one's calls count for the successor")
				}
			})
		})
	}
}

// Scenario 87: a load hook that fails leaves nothing: no module, no reservation,
// no version, no event but the failure's, and no call ever got in.
func TestFailedLoadLeavesNothing(t *testing.T) {
	var events []apcore.Event
	r := registryWith(&events)
	executor, err := apcore.NewExecutor(r, apcore.ExecutorOptions{})
	must(t, err)
	no := errors.New("no")
	var seen error
	failing := &loading{load: func() error {
		_, seen = executor.Call(t.Context(), "m", nil, nil)
		return no
	}}
	if err := r.Register("m", failing, apcore.RegisterOptions{Version: "2.0.0"}); !errors.Is(err, no) {
		t.Errorf("%v, want the hook's own error", err)
	}
	if !errors.Is(seen, apcore.CodeModuleNotFound) {
		t.Errorf("a call during the hook: %v", seen)
	}
	if len(r.Versions("m")) != 0 || r.Has("m") || r.Get("m") != nil || len(r.IDs()) != 0 || len(events) != 1 || events[0].Type != apcore.EventModuleLoadFailed {
		t.Errorf("left: %v, events %v", r.IDs(), events)
	}
	must(t, r.Register("m", &lively{name: "next"}, apcore.RegisterOptions{Version: "2.0.0"}))
	out, err := executor.Call(t.Context(), "m", nil, nil)
	if err != nil || out["by"] != "next" {
		t.Errorf("the next: %v, %v", out, err)
	}
}

// Scenario 87: of many who register one id at once one wins, and it is the one
// that answers; the others' hooks never ran.
func TestOneWinnerOfARace(t *testing.T) {
	for range 20 {
		h := newHost(t, apcore.ExecutorOptions{})
		var loads atomic.Int64
		winners := make(chan string, 16)
		var group sync.WaitGroup
		for i := range 16 {
			group.Go(func() {
				name := fmt.Sprint("module ", i)
				m := &loading{load: func() error { loads.Add(1); runtime.Gosched(); return nil }}
				m.body = func(context.Context, obj, *apcore.Context) (obj, error) { return obj{"by": name}, nil }
				switch err := h.registry.Register("m", m, apcore.RegisterOptions{}); {
				case err == nil:
					winners <- name
				case !errors.Is(err, apcore.CodeDuplicateModuleID):
					t.Error(err)
				}
			})
		}
		group.Wait()
		close(winners)
		var names []string
		for name := range winners {
			names = append(names, name)
		}
		out, err := h.Call(t.Context(), "m", nil, nil)
		if err != nil || len(names) != 1 || out["by"] != names[0] || loads.Load() != 1 {
			t.Errorf("winners %q, answers %v, %v; %d loads", names, out, err, loads.Load())
		}
	}
}

// Scenario 87: a toggle belongs to one executor, over one registry as over two.
func TestTogglesAreSeparate(t *testing.T) {
	h, other := newHost(t, apcore.ExecutorOptions{}).module("m", nil), newHost(t, apcore.ExecutorOptions{}).module("m", nil)
	sharing, err := apcore.NewExecutor(h.registry, apcore.ExecutorOptions{})
	must(t, err)
	h.Disable("m", "maintenance")
	if reason, disabled := h.Disabled("m"); !disabled || reason != "maintenance" {
		t.Errorf("disabled %t because of %q", disabled, reason)
	}
	_, err = h.call("m", nil, nil)
	h.wants(err, apcore.CodeModuleDisabled, 0)
	if !strings.Contains(err.Error(), "maintenance") {
		t.Errorf("no reason: %v", err)
	}
	for name, executor := range map[string]*apcore.Executor{"same registry": sharing, "same id": other.Executor} {
		if _, disabled := executor.Disabled("m"); disabled {
			t.Errorf("%s: disabled too", name)
		}
		if _, err := executor.Call(t.Context(), "m", nil, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	h.registry.Unregister("m", apcore.UnregisterOptions{})
	h.module("m", nil)
	if _, disabled := h.Disabled("m"); !disabled {
		t.Error("a disabled id is enabled by registering anew")
	}
	h.Enable("m")
	_, err = h.call("m", nil, nil)
	must(t, err)
}

// Scenario 87: ids that differ in case only do not exist: capitals are no ids.
func TestCaseVariants(t *testing.T) {
	h := newHost(t, apcore.ExecutorOptions{}).module("orders.create", nil)
	for _, id := range []string{"Orders.create", "orders.Create", "ORDERS.CREATE"} {
		if err := h.registry.Register(id, &testModule{}, apcore.RegisterOptions{}); !errors.Is(err, apcore.CodeInvalidModuleID) {
			t.Errorf("%s: %v", id, err)
		}
		_, err := h.call(id, nil, nil)
		h.wants(err, apcore.CodeInvalidModuleID, 0)
	}
	if got := h.registry.IDs(); !slices.Equal(got, []string{"orders.create"}) {
		t.Errorf("ids %v", got)
	}
}

// Scenario 87 and issue 3: registrations, versions, calls, listings, reloads and
// draining in parallel, for the race detector. Each call is answered by a version
// that the registry knew, or is not found; in the end all is gone.
func TestRegistryInParallel(t *testing.T) {
	h := newHost(t, apcore.ExecutorOptions{})
	const ids, rounds = 4, 40
	var begun, ended, answered atomic.Int64
	module := func(version string) *testModule {
		return &testModule{body: func(context.Context, obj, *apcore.Context) (obj, error) {
			begun.Add(1)
			defer ended.Add(1)
			runtime.Gosched()
			return obj{"by": version}, nil
		}}
	}
	id := func(i int) string { return fmt.Sprintf("p.m%d", i%ids) }
	fine := func(err error, codes ...apcore.Code) {
		if err != nil && !slices.Contains(codes, apcore.CodeOf(err)) {
			t.Error(err)
		}
	}
	var group sync.WaitGroup
	for worker := range ids {
		version := fmt.Sprintf("1.%d.0", worker)
		group.Go(func() { // registers and takes out
			for i := range rounds {
				fine(h.registry.Register(id(i), module(version), apcore.RegisterOptions{Version: version}), apcore.CodeDuplicateModuleID)
				if i%3 == 0 {
					h.registry.SafeUnregister(t.Context(), id(i+1), apcore.UnregisterOptions{Versions: []string{version}})
				} else {
					h.registry.Unregister(id(i+2), apcore.UnregisterOptions{})
				}
				fine(h.registry.Reload(id(i), module(version), apcore.RegisterOptions{Version: version}),
					apcore.CodeModuleNotFound, apcore.CodeModuleReloadConflict, apcore.CodeDuplicateModuleID)
			}
		})
		group.Go(func() { // calls
			for i := range rounds {
				outcome, err := h.Do(t.Context(), apcore.Request{ModuleID: id(i), VersionHint: []string{"", version, "^1.0.0"}[i%3]})
				fine(err, apcore.CodeModuleNotFound)
				if err == nil {
					answered.Add(1)
					if outcome.Output["by"] != outcome.Module.Version {
						t.Errorf("%v answered for %+v", outcome.Output, outcome.Module)
					}
				}
			}
		})
		group.Go(func() { // looks
			for i := range rounds {
				if got := h.registry.List(apcore.ListOptions{Prefix: "p."}); !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
					t.Errorf("listed %v", got)
				}
				for range h.registry.All(apcore.ListOptions{}) {
					runtime.Gosched()
				}
				h.registry.Versions(id(i))
				h.registry.Definition(id(i))
				_, err := h.registry.Describe(id(i))
				fine(err, apcore.CodeModuleNotFound)
				off, err := h.registry.On(apcore.RegistryRegister, func(string, apcore.Module) {})
				fine(err)
				off()
			}
		})
	}
	group.Wait()
	for i := range ids {
		if !h.registry.SafeUnregister(t.Context(), id(i), apcore.UnregisterOptions{}) {
			t.Errorf("%s has calls left", id(i))
		}
	}
	if begun.Load() != ended.Load() || ended.Load() != answered.Load() || h.registry.Len() != 0 {
		t.Errorf("%d begun, %d ended, %d answered, %d modules left", begun.Load(), ended.Load(), answered.Load(), h.registry.Len())
	}
}
