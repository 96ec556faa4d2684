package apcore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// versioned registers versions of one id; each says which one it is.
func versioned(t *testing.T, id string, versions ...string) *host {
	t.Helper()
	h := newHost(t, apcore.ExecutorOptions{})
	for _, version := range versions {
		must(t, h.registry.Register(id, saying(h, version), apcore.RegisterOptions{Version: version}))
	}
	return h
}

// saying is a module that says a text and enters it in the ledger.
func saying(h *host, text string) *testModule {
	return &testModule{body: func(context.Context, obj, *apcore.Context) (obj, error) {
		h.effects.add("%s", text)
		return obj{"by": text}, nil
	}}
}

func versionsOf(r *apcore.Registry, id string) []string {
	versions := []string{}
	for _, d := range r.Versions(id) {
		versions = append(versions, d.Version)
	}
	return versions
}

// §10.6: a hint picks the best of several versions, and the latest is the
// default.
func TestVersionHints(t *testing.T) {
	const id = "email.send"
	h := versioned(t, id, "2.0.0", "1.2.3", "10.0.0-beta.1", "1.10.0", "1.9.0")
	for _, test := range []struct {
		hint, want string
		code       apcore.Code
	}{
		{"", "2.0.0", ""},
		{"1.2.3", "1.2.3", ""},
		{"1", "1.10.0", ""},
		{"1.2", "1.2.3", ""},
		{"^1.2.0", "1.10.0", ""},
		{"~1.9", "1.9.0", ""},
		{">=1.0.0,<1.10.0", "1.9.0", ""},
		{">=1.0.0, <3.0.0", "2.0.0", ""},
		{"10.0.0-beta.1", "10.0.0-beta.1", ""},
		{">=10.0.0-alpha", "10.0.0-beta.1", ""},
		{">2.0.0", "", apcore.CodeModuleNotFound},
		{"^3.0.0", "", apcore.CodeModuleNotFound},
		{"latest", "", apcore.CodeVersionConstraintInvalid},
		{"v1.2.3", "", apcore.CodeVersionConstraintInvalid},
	} {
		t.Run(test.hint, func(t *testing.T) {
			_, d, err := h.registry.Resolve(id, test.hint)
			if apcore.CodeOf(err) != test.code || d != nil && d.Version != test.want {
				t.Errorf("resolved %+v, %v; want %q, %q", d, err, test.want, test.code)
			}
			before := h.effects.count()
			outcome, err := h.Do(t.Context(), apcore.Request{ModuleID: id, VersionHint: test.hint})
			ran := h.effects.all()[before:]
			if apcore.CodeOf(err) != test.code {
				t.Errorf("call: %v, want %q", err, test.code)
			}
			if test.code != "" {
				if len(ran) != 0 || apcore.AsError(err).ModuleID() != id {
					t.Errorf("ran %v, error of %q", ran, apcore.AsError(err).ModuleID())
				}
				return
			}
			if !slices.Equal(ran, []string{test.want}) || outcome.Module.Version != test.want || outcome.Output["by"] != test.want {
				t.Errorf("ran %v, outcome %+v; want %s", ran, outcome.Module, test.want)
			}
		})
	}
	_, _, err := h.registry.Resolve(id, "^3.0.0")
	want := []any{"1.2.3", "1.9.0", "1.10.0", "2.0.0", "10.0.0-beta.1"}
	if diff := cmp.Diff(want, apcore.AsError(err).Details["versions"]); diff != "" {
		t.Errorf("versions to choose from (-want +got):\n%s", diff)
	}
	for _, hint := range []string{"", "1.0.0"} {
		if module, _, err := h.registry.Resolve("no.such", hint); module != nil || !errors.Is(err, apcore.CodeModuleNotFound) {
			t.Errorf("an unknown id: %v", err)
		}
		if _, _, err := h.registry.Resolve("", hint); !errors.Is(err, apcore.CodeModuleNotFound) {
			t.Errorf("an empty id: %v", err)
		}
	}
}

// Everything that takes an id alone means the latest version.
func TestLatestVersion(t *testing.T) {
	const id = "a.b"
	h := versioned(t, id, "1.0.0", "3.0.0-rc.1")
	if d := h.registry.Definition(id); d.Version != "1.0.0" {
		t.Errorf("a pre-release is the latest: %s", d.Version)
	}
	must(t, h.registry.Register(id, saying(h, "2.0.0"), apcore.RegisterOptions{Version: "2.0.0", Metadata: obj{"tags": []any{"new"}}}))
	if got := versionsOf(h.registry, id); !slices.Equal(got, []string{"1.0.0", "2.0.0", "3.0.0-rc.1"}) {
		t.Errorf("versions %v", got)
	}
	module, d, err := h.registry.Resolve(id, "")
	must(t, err)
	if h.registry.Get(id) != module || d.Version != "2.0.0" || h.registry.Definition(id).Version != "2.0.0" {
		t.Errorf("latest %s, defined %s", d.Version, h.registry.Definition(id).Version)
	}
	if got := h.registry.List(apcore.ListOptions{Tags: []string{"new"}}); !slices.Equal(got, []string{id}) || h.registry.Len() != 1 || !slices.Equal(h.registry.IDs(), []string{id}) {
		t.Errorf("listed %v of %d", got, h.registry.Len())
	}
	if !h.registry.Unregister(id, apcore.UnregisterOptions{Versions: []string{"2.0.0"}}) || h.registry.Definition(id).Version != "1.0.0" {
		t.Errorf("without 2.0.0 the latest is %s", h.registry.Definition(id).Version)
	}
	if h.registry.Unregister(id, apcore.UnregisterOptions{Versions: []string{"2.0.0", "9.9.9"}}) {
		t.Error("taken out twice")
	}
	if !h.registry.Unregister(id, apcore.UnregisterOptions{Versions: []string{"1.0.0"}}) || h.registry.Definition(id).Version != "3.0.0-rc.1" {
		t.Errorf("a pre-release alone is not the latest: %v", versionsOf(h.registry, id))
	}
	if !h.registry.Unregister(id, apcore.UnregisterOptions{}) || h.registry.Has(id) || h.registry.Len() != 0 || len(h.registry.Versions(id)) != 0 {
		t.Errorf("left: %v", versionsOf(h.registry, id))
	}
}

func TestVersionsAreSemantic(t *testing.T) {
	for version, code := range map[string]apcore.Code{
		"": "", "1.2.3": "", "1.2.3-rc.1+build.5": "",
		"1": apcore.CodeInvalidInput, "1.2": apcore.CodeInvalidInput, "v1.2.3": apcore.CodeInvalidInput, "newest": apcore.CodeInvalidInput, "1.02.0": apcore.CodeInvalidInput,
	} {
		if err := quiet().Register("m", &testModule{}, apcore.RegisterOptions{Version: version}); apcore.CodeOf(err) != code {
			t.Errorf("%q: %v, want %q", version, err, code)
		}
	}
	h := versioned(t, "m", "1.0.0+a", "2.0.0-rc.1+b.2")
	for _, whole := range versionsOf(h.registry, "m") { // a grant asks for exactly what it was given for
		if _, d, err := h.registry.Resolve("m", whole); err != nil || d.Version != whole {
			t.Errorf("a whole version as a hint: %+v, %v", d, err)
		}
	}
	if err := h.registry.Register("m", &testModule{}, apcore.RegisterOptions{Version: "1.0.0+b"}); !errors.Is(err, apcore.CodeDuplicateModuleID) {
		t.Errorf("versions without an order: %v", err)
	}
}

// Of each version its own declarations hold: schema, gate, timer.
func TestVersionsDiffer(t *testing.T) {
	const id = "pay.out"
	handler := &answering{result: &apcore.ApprovalResult{Status: apcore.ApprovalRejected}}
	h := newHost(t, apcore.ExecutorOptions{ApprovalHandler: handler})
	must(t, h.registry.Register(id, saying(h, "old"), apcore.RegisterOptions{Annotations: &apcore.Annotations{RequiresApproval: true}}))
	strict := saying(h, "new")
	strict.input = obj{"required": []any{"amount"}}
	must(t, h.registry.Register(id, strict, apcore.RegisterOptions{Version: "2.0.0"}))
	if !h.NeedsApproval(id) || h.VersionNeedsApproval(id, "") || !h.VersionNeedsApproval(id, "1.0.0") || h.VersionNeedsApproval(id, "3.0.0") {
		t.Error("approval is not a matter of the version")
	}
	_, err := h.Do(t.Context(), apcore.Request{ModuleID: id, VersionHint: "1"})
	h.wants(err, apcore.CodeApprovalDenied, 0)
	_, err = h.Do(t.Context(), apcore.Request{ModuleID: id})
	h.wants(err, apcore.CodeSchemaValidation, 0)
	_, err = h.Do(t.Context(), apcore.Request{ModuleID: id, Inputs: obj{"amount": 1}})
	h.wants(err, "", 1)
	h.Disable(id, "maintenance")
	for _, hint := range []string{"1", "2"} {
		_, err = h.Do(t.Context(), apcore.Request{ModuleID: id, VersionHint: hint})
		h.wants(err, apcore.CodeModuleDisabled, 1)
	}
}

// While the latest version drains, calls go to the one before it; its hinted
// calls are not found.
func TestDrainOneVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const id = "a.b"
		h := versioned(t, id, "1.0.0")
		newest := &lively{name: "newest", hold: make(chan struct{})}
		must(t, h.registry.Register(id, newest, apcore.RegisterOptions{Version: "2.0.0"}))
		running := make(chan error, 1)
		go func() {
			_, err := h.Call(t.Context(), id, nil, nil)
			running <- err
		}()
		synctest.Wait()
		drained := make(chan bool, 1)
		go func() {
			drained <- h.registry.SafeUnregister(t.Context(), id, apcore.UnregisterOptions{Versions: []string{"2.0.0"}, DrainTimeout: time.Minute})
		}()
		synctest.Wait()
		out, err := h.Call(t.Context(), id, nil, nil)
		if err != nil || out["by"] != "1.0.0" {
			t.Errorf("while it drains: %v, %v", out, err)
		}
		if _, err := h.Do(t.Context(), apcore.Request{ModuleID: id, VersionHint: "2.0.0"}); !errors.Is(err, apcore.CodeModuleNotFound) {
			t.Errorf("the draining version: %v", err)
		}
		close(newest.hold)
		if !<-drained || <-running != nil {
			t.Error("the running call was not waited for")
		}
		if got := versionsOf(h.registry, id); !slices.Equal(got, []string{"1.0.0"}) {
			t.Errorf("left %v", got)
		}
	})
}

// A module that is taken out twice leaves once.
func TestUnregisterWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		h := newHost(t, apcore.ExecutorOptions{})
		m := &lively{name: "m", log: &log, hold: make(chan struct{})}
		must(t, h.registry.Register("m", m, apcore.RegisterOptions{}))
		go func() { _, _ = h.Call(t.Context(), "m", nil, nil) }()
		synctest.Wait()
		drained := make(chan bool, 1)
		go func() { drained <- h.registry.SafeUnregister(t.Context(), "m", apcore.UnregisterOptions{}) }()
		synctest.Wait()
		if !h.registry.Unregister("m", apcore.UnregisterOptions{}) {
			t.Error("a draining module cannot be taken out")
		}
		must(t, h.registry.Register("m", &lively{name: "next", log: &log}, apcore.RegisterOptions{}))
		close(m.hold)
		if <-drained; !h.registry.Has("m") || !slices.Equal(log, []string{"m load", "m unload", "next load"}) {
			t.Errorf("life %q, the successor is there: %t", log, h.registry.Has("m"))
		}
	})
}

// Of several versions the longest timer is the module's.
func TestTimeoutOfVersions(t *testing.T) {
	h := newHost(t, apcore.ExecutorOptions{DefaultTimeout: 10 * time.Second})
	for _, step := range []struct {
		version string
		timeout time.Duration
		want    time.Duration
	}{{"1.0.0", time.Second, time.Second}, {"2.0.0", 0, 10 * time.Second}, {"3.0.0", 20 * time.Second, 20 * time.Second}, {"0.1.0", apcore.NoTimeout, apcore.NoTimeout}} {
		must(t, apcore.Register(h.registry, "m", func(context.Context, obj) (obj, error) { return obj{}, nil },
			apcore.Spec{Description: "Has a timer", Version: step.version, Timeout: step.timeout}))
		if got := h.ModuleTimeout("m"); got != step.want {
			t.Errorf("with %s: %v, want %v", step.version, got, step.want)
		}
	}
	if got := h.ModuleTimeout("no.such"); got != 10*time.Second {
		t.Errorf("an unknown module: %v", got)
	}
}

// Reload replaces the version that the new module has, or else the latest.
func TestReloadVersions(t *testing.T) {
	h := versioned(t, "m", "1.0.0", "2.0.0")
	for _, step := range []struct {
		version string
		want    []string
	}{{"1.0.0", []string{"1.0.0", "2.0.0"}}, {"2.1.0", []string{"1.0.0", "2.1.0"}}, {"0.9.0", []string{"0.9.0", "1.0.0"}}} {
		must(t, h.registry.Reload("m", saying(h, "again "+step.version), apcore.RegisterOptions{Version: step.version}))
		if got := versionsOf(h.registry, "m"); !slices.Equal(got, step.want) {
			t.Errorf("after %s: %v, want %v", step.version, got, step.want)
		}
		outcome, err := h.Do(t.Context(), apcore.Request{ModuleID: "m", VersionHint: step.version})
		if err != nil || outcome.Output["by"] != "again "+step.version {
			t.Errorf("%v, %v", outcome.Output, err)
		}
	}
	h.registry.SetValidator(refusing{})
	if err := h.registry.Reload("m", &testModule{}, apcore.RegisterOptions{Version: "1.0.0"}); !errors.Is(err, apcore.CodeInvalidInput) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a reload without validation: %v", err)
	}
}

type refusing struct{}

func (refusing) ValidateModule(string, apcore.Module) []string { return []string{"no"} }
