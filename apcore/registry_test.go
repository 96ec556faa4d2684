package apcore_test

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// loading is a module with hooks of its life cycle.
type loading struct {
	testModule
	load, unload func() error
}

func (l *loading) OnLoad() error {
	if l.load == nil {
		return nil
	}
	return l.load()
}

func (l *loading) OnUnload() error {
	if l.unload == nil {
		return nil
	}
	return l.unload()
}

type undescribed struct{ testModule }

func (*undescribed) Description() string { return " " }

type misannotated struct{ apcore.Module }

func (misannotated) Annotations() map[string]any { return obj{"requires_approval": "yes"} }

func quiet() *apcore.Registry {
	return apcore.NewRegistry(apcore.RegistryOptions{Logger: slog.New(slog.DiscardHandler)})
}

func TestRegisterRefusals(t *testing.T) {
	tests := []struct {
		name   string
		id     string
		module apcore.Module
		opts   apcore.RegisterOptions
		code   apcore.Code
	}{
		{name: "fine", id: "orders.create", module: &testModule{}},
		{name: "reserved word elsewhere", id: "orders.system", module: &testModule{}},
		{name: "longer than a reserved word", id: "systems.report", module: &testModule{}},
		{name: "longest id", id: strings.Repeat("a", apcore.MaxModuleIDLength), module: &testModule{}},
		{name: "too long", id: strings.Repeat("a", apcore.MaxModuleIDLength+1), module: &testModule{}, code: apcore.CodeInvalidModuleID},
		{name: "empty", id: "", module: &testModule{}, code: apcore.CodeInvalidModuleID},
		{name: "capital", id: "Orders", module: &testModule{}, code: apcore.CodeInvalidModuleID},
		{name: "reserved", id: "system.x", module: &testModule{}, code: apcore.CodeInvalidModuleID},
		{name: "reserved alone", id: apcore.ReservedWords()[0], module: &testModule{}, code: apcore.CodeInvalidModuleID},
		{name: "nil", id: "m", code: apcore.CodeInvalidInput},
		{name: "typed nil", id: "m", module: (*testModule)(nil), code: apcore.CodeInvalidInput},
		{name: "no description", id: "m", module: &undescribed{}, code: apcore.CodeInvalidInput},
		{name: "annotations", id: "m", module: misannotated{&testModule{}}, code: apcore.CodeInvalidInput},
		{name: "schema", id: "m", module: &testModule{input: obj{"type": "nonsense"}}, code: apcore.CodeSchemaParse},
		{name: "output schema", id: "m", module: &testModule{output: obj{"$ref": "#/$defs/absent"}}, code: apcore.CodeSchemaNotFound},
		{name: "schema that is no JSON", id: "m", module: &testModule{input: obj{"x": func() {}}}, code: apcore.CodeSchemaParse},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := quiet()
			err := r.Register(test.id, test.module, test.opts)
			if got := apcore.CodeOf(err); got != test.code {
				t.Errorf("%v, want %q", err, test.code)
			}
			if r.Has(test.id) != (test.code == "") || r.Len() != len(r.IDs()) {
				t.Errorf("visible: %v", r.IDs())
			}
		})
	}
}

func TestDuplicates(t *testing.T) {
	r := quiet()
	first := &testModule{}
	if err := r.Register("m", first, apcore.RegisterOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := r.Register("m", &testModule{}, apcore.RegisterOptions{}); !errors.Is(err, apcore.CodeDuplicateModuleID) || r.Get("m") != first {
		t.Errorf("%v, registered is %p", err, r.Get("m"))
	}
	inFlight, proceed := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		done <- r.Register("slow", &loading{load: func() error {
			close(inFlight)
			<-proceed
			return nil
		}}, apcore.RegisterOptions{})
	}()
	<-inFlight
	if err := r.Register("slow", &testModule{}, apcore.RegisterOptions{}); !errors.Is(err, apcore.CodeDuplicateModuleID) {
		t.Errorf("while another loads: %v", err)
	}
	if r.Has("slow") || r.Unregister("slow", apcore.UnregisterOptions{}) {
		t.Error("a loading module is visible")
	}
	close(proceed)
	if err := <-done; err != nil || !r.Has("slow") {
		t.Errorf("%v, visible %v", err, r.IDs())
	}
}

// TestFailedLoad leaves no trace, whatever way OnLoad ends.
func TestFailedLoad(t *testing.T) {
	own := errors.New("no database")
	for name, load := range map[string]func() error{
		"error":  func() error { return own },
		"panic":  func() error { panic("secret text") },
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := quiet()
			var unloaded ledger
			failing := &loading{load: load, unload: func() error { unloaded.add("unloaded"); return nil }}
			var err error
			done := make(chan struct{})
			go func() {
				defer close(done)
				err = r.Register("m", failing, apcore.RegisterOptions{})
			}()
			<-done
			switch name {
			case "error":
				if err != own { //nolint:errorlint // the same, not a wrapper
					t.Errorf("%v, want the module's own error", err)
				}
			case "panic":
				if !errors.Is(err, apcore.CodeInternal) || strings.Contains(err.Error(), "secret") {
					t.Errorf("%v", err)
				}
			}
			if r.Has("m") || r.Len() != 0 || len(r.List(apcore.ListOptions{Visibility: []apcore.Visibility{apcore.VisibilityPublic, apcore.VisibilityHidden}})) != 0 || unloaded.count() != 0 {
				t.Errorf("traces: %v, %v", r.IDs(), unloaded.all())
			}
			if err := r.Register("m", &testModule{}, apcore.RegisterOptions{}); err != nil {
				t.Errorf("the id is not free again: %v", err)
			}
		})
	}
}

func TestUnregister(t *testing.T) {
	r := quiet()
	var unloaded ledger
	for i, unload := range []func() error{nil, func() error { return errors.New("x") }, func() error { panic("x") }} {
		err := r.Register("m", &loading{unload: func() error {
			unloaded.add("%d", i)
			if unload == nil {
				return nil
			}
			return unload()
		}}, apcore.RegisterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Unregister("m", apcore.UnregisterOptions{}) || r.Unregister("m", apcore.UnregisterOptions{}) || r.Has("m") || r.Definition("m") != nil || r.Get("m") != nil {
			t.Errorf("round %d: still there: %v", i, r.IDs())
		}
	}
	if unloaded.count() != 3 {
		t.Errorf("unloaded %v", unloaded.all())
	}
}

func TestSeal(t *testing.T) {
	for _, since := range []string{"worker start", ""} {
		r := quiet()
		if err := r.Register("before", &testModule{}, apcore.RegisterOptions{}); err != nil {
			t.Fatal(err)
		}
		r.Seal(since)
		r.Seal("later")
		err := r.Register("after", &testModule{}, apcore.RegisterOptions{})
		if !errors.Is(err, apcore.CodeInvalidInput) || !strings.Contains(err.Error(), since) || strings.Contains(err.Error(), "later") || r.Has("after") {
			t.Errorf("sealed since %q: %v", since, err)
		}
		if !r.Unregister("before", apcore.UnregisterOptions{}) {
			t.Error("a sealed registry must let go")
		}
	}
}

// TestSealWhileLoading: a module that loads while the registry is sealed does
// not appear afterwards, and is unloaded.
func TestSealWhileLoading(t *testing.T) {
	r := quiet()
	var life ledger
	err := r.Register("m", &loading{
		load:   func() error { life.add("load"); r.Seal("worker start"); return nil },
		unload: func() error { life.add("unload"); return nil },
	}, apcore.RegisterOptions{})
	if !errors.Is(err, apcore.CodeInvalidInput) || r.Has("m") {
		t.Errorf("%v, visible %v", err, r.IDs())
	}
	if diff := cmp.Diff([]string{"load", "unload"}, life.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSealRace: whoever registers when, what is visible at the seal stays the
// whole, and exactly the successful registrations are in it. Run with -race.
func TestSealRace(t *testing.T) {
	r := quiet()
	var group sync.WaitGroup
	var registered ledger
	var sealed []string
	start := make(chan struct{})
	for i := range 100 {
		group.Go(func() {
			<-start
			id := fmt.Sprintf("m%d", i/2) // two want each id
			if err := r.Register(id, &loading{load: func() error { runtime.Gosched(); return nil }}, apcore.RegisterOptions{}); err == nil {
				registered.add("%s", id)
			} else if !errors.Is(err, apcore.CodeInvalidInput) && !errors.Is(err, apcore.CodeDuplicateModuleID) {
				t.Errorf("%s: %v", id, err)
			}
			r.List(apcore.ListOptions{Prefix: "m"})
			r.Definition(id)
		})
	}
	group.Go(func() {
		<-start
		for r.Len() < 10 {
			runtime.Gosched()
		}
		r.Seal("worker start")
		sealed = r.IDs()
	})
	close(start)
	group.Wait()
	want := registered.all()
	slices.Sort(want)
	if diff := cmp.Diff(want, sealed); diff != "" {
		t.Errorf("at the seal (-registered +sealed):\n%s", diff)
	}
	if diff := cmp.Diff(sealed, r.IDs()); diff != "" {
		t.Errorf("after the seal (-at +after):\n%s", diff)
	}
}

// TestDescriptorIsACopy: nothing a caller does to it changes the registry.
func TestDescriptorIsACopy(t *testing.T) {
	r := quiet()
	err := r.Register("m", &rich{}, apcore.RegisterOptions{Version: "2.0.0", Metadata: obj{"team": "east"}, Annotations: &apcore.Annotations{RequiresApproval: true, Readonly: true}})
	if err != nil {
		t.Fatal(err)
	}
	d := r.Definition("m")
	if d.Version != "2.0.0" || d.Metadata["team"] != "east" || !d.Annotations.RequiresApproval || d.Annotations.Readonly {
		t.Errorf("%+v", d)
	}
	d.Metadata["deep"].(obj)["x"] = "changed"
	d.Examples[0].Inputs["n"] = "changed"
	d.InputSchema["properties"] = "changed"
	d.Tags[0] = "changed"
	d.Annotations.RequiresApproval = false
	again := r.Definition("m")
	if again.Metadata["deep"].(obj)["x"] != 1 || again.Examples[0].Inputs["n"] != 1 || again.InputSchema["properties"] == "changed" || again.Tags[0] != "a" || !again.Annotations.RequiresApproval {
		t.Errorf("changed: %+v", again)
	}
	if got := r.List(apcore.ListOptions{Tags: []string{"a"}}); !cmp.Equal(got, []string{"m"}) {
		t.Errorf("by tag: %v", got)
	}
}

type rich struct{ testModule }

func (*rich) InputSchema() map[string]any { return obj{"properties": obj{"n": obj{}}} }
func (*rich) Tags() []string              { return []string{"a"} }
func (*rich) Metadata() map[string]any    { return obj{"team": "west", "deep": obj{"x": 1}} }
func (*rich) Examples() []apcore.Example {
	return []apcore.Example{{Title: "one", Inputs: obj{"n": 1}}}
}
