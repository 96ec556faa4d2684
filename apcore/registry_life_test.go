package apcore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// lively is a module that notes its life and can hold a call.
type lively struct {
	name       string
	log        *[]string
	state      map[string]any
	loadErr    error
	loadDelay  time.Duration
	hold       chan struct{}
	dependency []apcore.Dependency
}

func (l *lively) note(what string) {
	if l.log != nil {
		*l.log = append(*l.log, l.name+" "+what)
	}
}

func (*lively) Description() string                  { return "Lives" }
func (*lively) InputSchema() map[string]any          { return nil }
func (*lively) OutputSchema() map[string]any         { return nil }
func (l *lively) Dependencies() []apcore.Dependency  { return l.dependency }
func (l *lively) OnUnload() error                    { l.note("unload"); return nil }
func (l *lively) OnSuspend() (map[string]any, error) { l.note("suspend"); return l.state, nil }
func (l *lively) OnResume(state map[string]any) error {
	l.note(fmt.Sprint("resume ", state))
	return nil
}
func (l *lively) Execute(context.Context, map[string]any, *apcore.Context) (map[string]any, error) {
	if l.hold != nil {
		<-l.hold
	}
	return map[string]any{"by": l.name}, nil
}

func (l *lively) OnLoad() error {
	time.Sleep(l.loadDelay)
	l.note("load")
	return l.loadErr
}

func registryWith(events *[]apcore.Event) *apcore.Registry {
	var mu sync.Mutex
	return apcore.NewRegistry(apcore.RegistryOptions{Logger: slog.New(slog.DiscardHandler), OnEvent: func(e apcore.Event) {
		mu.Lock()
		defer mu.Unlock()
		*events = append(*events, e)
	}})
}

func TestRegistryListeners(t *testing.T) {
	var events []apcore.Event
	r := registryWith(&events)
	var log []string
	off, err := r.On(apcore.RegistryRegister, func(id string, _ apcore.Module) { log = append(log, "+"+id) })
	must(t, err)
	_, err = r.On(apcore.RegistryUnregister, func(id string, _ apcore.Module) { log = append(log, "-"+id); panic("x") })
	must(t, err)
	must(t, r.Register("a.one", &lively{}, apcore.RegisterOptions{}))
	off()
	must(t, r.Register("a.two", &lively{}, apcore.RegisterOptions{}))
	r.Unregister("a.one", apcore.UnregisterOptions{})
	r.Unregister("a.one", apcore.UnregisterOptions{})
	if want := []string{"+a.one", "-a.one"}; !slices.Equal(log, want) {
		t.Errorf("heard %q, want %q", log, want)
	}
	var types []string
	for _, e := range events {
		types = append(types, e.Type+" "+e.ModuleID)
	}
	want := []string{"apcore.registry.module_registered a.one", "apcore.registry.module_registered a.two", "apcore.registry.module_unregistered a.one"}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for _, bad := range []apcore.RegistryEvent{"", "file_changed"} {
		if _, err := r.On(bad, func(string, apcore.Module) {}); !errors.Is(err, apcore.CodeInvalidInput) {
			t.Errorf("event %q: %v", bad, err)
		}
	}
}

// §5.15: suspend, unload, load, resume, in this order and with the state.
func TestReload(t *testing.T) {
	var log []string
	r := apcore.NewRegistry(apcore.RegistryOptions{Logger: slog.New(slog.DiscardHandler)})
	must(t, r.Register("a.one", &lively{name: "old", log: &log, state: map[string]any{"n": 1}}, apcore.RegisterOptions{}))
	must(t, r.Reload("a.one", &lively{name: "new", log: &log}, apcore.RegisterOptions{Version: "2.0.0"}))
	want := []string{"old load", "old suspend", "old unload", "new load", "new resume map[n:1]"}
	if !slices.Equal(log, want) || r.Definition("a.one").Version != "2.0.0" {
		t.Errorf("life %q, want %q; version %s", log, want, r.Definition("a.one").Version)
	}
	log = nil
	must(t, r.Reload("a.one", &lively{name: "third", log: &log}, apcore.RegisterOptions{}))
	if slices.ContainsFunc(log, func(line string) bool { return line == "third resume map[]" }) {
		t.Errorf("resumed without state: %q", log)
	}
	failure := errors.New("no")
	if err := r.Reload("a.one", &lively{name: "bad", loadErr: failure}, apcore.RegisterOptions{}); !errors.Is(err, failure) || r.Has("a.one") {
		t.Errorf("a bad successor: %v, still there: %t", err, r.Has("a.one"))
	}
	if err := r.Reload("a.one", &lively{}, apcore.RegisterOptions{}); !errors.Is(err, apcore.CodeModuleNotFound) {
		t.Errorf("nothing to reload: %v", err)
	}
	r.Seal("the test")
	must(t, apcore.NewRegistry(apcore.RegistryOptions{}).Register("a.one", &lively{}, apcore.RegisterOptions{}))
	if err := r.Reload("a.one", &lively{}, apcore.RegisterOptions{}); !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("sealed: %v", err)
	}
}

// Scenario 87: a module drains before it goes, refuses new calls meanwhile, and
// its id is free again afterwards.
func TestSafeUnregister(t *testing.T) {
	for _, patient := range []bool{true, false} {
		t.Run(fmt.Sprint("patient ", patient), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := apcore.NewRegistry(apcore.RegistryOptions{Logger: slog.New(slog.DiscardHandler)})
				old := &lively{name: "old", hold: make(chan struct{})}
				must(t, r.Register("a.one", old, apcore.RegisterOptions{}))
				executor, err := apcore.NewExecutor(r, apcore.ExecutorOptions{Logger: slog.New(slog.DiscardHandler)})
				must(t, err)
				first := make(chan error, 1)
				go func() {
					_, err := executor.Call(t.Context(), "a.one", nil, nil)
					first <- err
				}()
				synctest.Wait()
				gone := make(chan bool, 1)
				go func() {
					gone <- r.SafeUnregister(t.Context(), "a.one", apcore.UnregisterOptions{DrainTimeout: time.Second})
				}()
				synctest.Wait()
				if _, err := executor.Call(t.Context(), "a.one", nil, nil); !errors.Is(err, apcore.CodeModuleNotFound) {
					t.Errorf("a call while it drains: %v", err)
				}
				if patient {
					close(old.hold)
				}
				if drained := <-gone; drained != patient || r.Has("a.one") {
					t.Errorf("drained %t, still there: %t", drained, r.Has("a.one"))
				}
				if !patient {
					close(old.hold)
				}
				must(t, <-first)
				must(t, r.Register("a.one", &lively{name: "new"}, apcore.RegisterOptions{}))
				out, err := executor.Call(t.Context(), "a.one", nil, nil)
				if err != nil || out["by"] != "new" {
					t.Errorf("the successor: %v, %v", out, err)
				}
			})
		})
	}
	if r := apcore.NewRegistry(apcore.RegistryOptions{}); !r.SafeUnregister(t.Context(), "no.such", apcore.UnregisterOptions{}) {
		t.Error("nothing to drain takes time")
	}
}

func TestMatchVersion(t *testing.T) {
	for _, test := range []struct {
		constraint, version string
		want                bool
		bad                 bool
	}{
		{"1.2.3", "1.2.3", true, false}, {"1.2.3", "1.2.4", false, false}, {"1.2", "1.2.9", true, false}, {"1.2", "1.3.0", false, false}, {"1", "1.9.9", true, false},
		{">=1.2.0", "1.2.0", true, false}, {">1.2.0", "1.2.0", false, false}, {"<=2.0.0", "2.0.0", true, false}, {"<2.0.0", "2.0.0", false, false},
		{">=1.0.0,<2.0.0", "1.9.0", true, false}, {">=1.0.0, <2.0.0", "2.1.0", false, false}, {"^1.2.3", "1.9.0", true, false}, {"^1.2.3", "2.0.0", false, false},
		{"~1.2", "1.2.7", true, false}, {"~1.2", "1.3.0", false, false},
		{"latest", "1.0.0", false, true}, {"v1.0.0", "1.0.0", false, true}, {"", "1.0.0", false, true}, {"1.x", "1.0.0", false, true}, {"1.0.0 || 2.0.0", "1.0.0", false, true},
		{">=1.0.0", "one", false, true}, {">=1,", "1.0.0", false, true},
	} {
		got, err := apcore.MatchVersion(test.constraint, test.version)
		if got != test.want || errors.Is(err, apcore.CodeVersionConstraintInvalid) != test.bad {
			t.Errorf("%q on %q: %t, %v", test.constraint, test.version, got, err)
		}
	}
}

func TestLoadOrder(t *testing.T) {
	needs := func(id, version string, on ...apcore.Dependency) apcore.Candidate {
		return apcore.Candidate{ModuleID: id, Version: version, Dependencies: on}
	}
	on := func(id, version string) apcore.Dependency { return apcore.Dependency{ModuleID: id, Version: version} }
	for name, test := range map[string]struct {
		given []apcore.Candidate
		want  []string
		code  apcore.Code
	}{
		"order":         {[]apcore.Candidate{needs("a", "", on("c", "")), needs("b", ""), needs("c", "", on("b", ""))}, []string{"b", "c", "a"}, ""},
		"by id":         {[]apcore.Candidate{needs("c", ""), needs("a", ""), needs("b", "")}, []string{"a", "b", "c"}, ""},
		"optional":      {[]apcore.Candidate{needs("a", "", apcore.Dependency{ModuleID: "z", Optional: true})}, []string{"a"}, ""},
		"missing":       {[]apcore.Candidate{needs("a", "", on("z", ""))}, nil, apcore.CodeDependencyNotFound},
		"version":       {[]apcore.Candidate{needs("a", "", on("b", "^2.0.0")), needs("b", "2.1.0")}, []string{"b", "a"}, ""},
		"wrong version": {[]apcore.Candidate{needs("a", "", on("b", "^2.0.0")), needs("b", "")}, nil, apcore.CodeDependencyVersionMismatch},
		"bad version":   {[]apcore.Candidate{needs("a", "", on("b", "newest")), needs("b", "")}, nil, apcore.CodeVersionConstraintInvalid},
		"cycle":         {[]apcore.Candidate{needs("a", "", on("b", "")), needs("b", "", on("a", ""))}, nil, apcore.CodeCircularDependency},
		"twice":         {[]apcore.Candidate{needs("a", ""), needs("a", "")}, nil, apcore.CodeDuplicateModuleID},
	} {
		got, err := apcore.LoadOrder(test.given)
		if apcore.CodeOf(err) != test.code || test.code == "" && !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, %v; want %v, %q", name, got, err, test.want, test.code)
		}
	}
}

func TestDependenciesAreMerged(t *testing.T) {
	r := apcore.NewRegistry(apcore.RegistryOptions{})
	must(t, r.Register("a.one", &lively{dependency: []apcore.Dependency{{ModuleID: "b"}}}, apcore.RegisterOptions{
		Metadata: map[string]any{"dependencies": []any{map[string]any{"module_id": "c", "version": "^1.0", "optional": true}}},
	}))
	want := []apcore.Dependency{{ModuleID: "b"}, {ModuleID: "c", Version: "^1.0", Optional: true}}
	if diff := cmp.Diff(want, r.Definition("a.one").Dependencies); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	err := r.Register("a.two", &lively{}, apcore.RegisterOptions{Metadata: map[string]any{"dependencies": "c"}})
	if !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("bad metadata: %v", err)
	}
}

// driveLoadOrdering: a module is visible only after its OnLoad succeeded.
func driveLoadOrdering(_ *fixture, test map[string]any) error {
	c := &check{}
	setup, want := object(test["setup"]), object(test["expected"])
	if want["both_succeed"] == true {
		return driveParallelLoading(texts(object(test["trigger"])["modules"]), setup)
	}
	var events []apcore.Event
	r := registryWith(&events)
	given := object(setup["module"])
	if given == nil {
		given = object(setup["module_a"])
	}
	id := text(given["id"])
	delay, _ := given["on_load_delay_ms"].(float64)
	var failure error
	if raises := object(given["on_load_raises"]); raises != nil {
		failure = errors.New(text(raises["message"]))
	}
	begun, let := make(chan struct{}), make(chan struct{})
	module := &gatedLoad{lively: lively{loadErr: failure}, begun: begun, let: let}
	if delay == 0 {
		close(let)
	}
	first := make(chan error, 1)
	go func() { first <- r.Register(id, module, apcore.RegisterOptions{}) }()
	<-begun
	if delay > 0 {
		c.that(!r.Has(id) && r.Get(id) == nil && len(r.IDs()) == 0, "visible while it loads")
		if want["one_raises"] != nil {
			err := r.Register(id, &lively{}, apcore.RegisterOptions{})
			c.that(string(apcore.CodeOf(err)) == text(want["raised_error_code"]), "second: %v", err)
		}
		close(let)
	}
	err := <-first
	c.that(errors.Is(err, failure), "register: %v", err)
	c.that(r.Has(id) == want["post_register_visible"], "visible afterwards: %t", r.Has(id))
	if event := object(want["load_failed_event"]); event != nil {
		c.that(len(events) == 1 && events[0].Type == event["event_type"], "events %v", events)
		if len(events) == 1 {
			for _, key := range texts(event["data_required_keys"]) {
				c.that(events[0].Data[key] != nil, "the event lacks %s", key)
			}
			c.that(events[0].Data["error_message"] == object(event["data_contains"])["error_message"], "message %v", events[0].Data["error_message"])
		}
	}
	return c.err()
}

// driveParallelLoading lets no OnLoad end before all have begun: were they
// serialised, the second would never begin.
func driveParallelLoading(modules []string, setup map[string]any) error {
	r := apcore.NewRegistry(apcore.RegistryOptions{})
	let, results := make(chan struct{}), make(chan error, len(modules))
	for _, name := range modules {
		module := &gatedLoad{begun: make(chan struct{}), let: let}
		go func() { results <- r.Register(text(object(setup[name])["id"]), module, apcore.RegisterOptions{}) }()
		select {
		case <-module.begun:
		case <-time.After(10 * time.Second):
			return errors.New("the second OnLoad waits for the first")
		}
	}
	close(let)
	c := &check{}
	for range modules {
		err := <-results
		c.that(err == nil, "register: %v", err)
	}
	c.that(r.Len() == len(modules), "%d modules", r.Len())
	return c.err()
}

// gatedLoad says when its OnLoad begins and waits to be let through.
type gatedLoad struct {
	lively
	begun, let chan struct{}
}

func (g *gatedLoad) OnLoad() error {
	close(g.begun)
	<-g.let
	return g.lively.OnLoad()
}
