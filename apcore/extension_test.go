package apcore_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

type finder struct {
	found []apcore.DiscoveredModule
	fail  func()
}

func (f finder) Discover(context.Context) ([]apcore.DiscoveredModule, error) {
	if f.fail != nil {
		f.fail()
	}
	return f.found, nil
}

type picky struct{}

func (picky) ValidateModule(id string, _ apcore.Module) []string {
	if id == "bad.module" {
		return []string{"its name is bad", "and so is it"}
	}
	return nil
}

type exporter struct{}

func (*exporter) ExportSpan(context.Context, apcore.Span) error { return nil }

// tracing is a middleware that takes exporters.
type tracing struct {
	apcore.BaseMiddleware
	got []apcore.SpanExporter
}

func (m *tracing) SetSpanExporters(exporters []apcore.SpanExporter) { m.got = exporters }

func TestExtensionPoints(t *testing.T) {
	m := &apcore.ExtensionManager{}
	want := []apcore.ExtensionPoint{"acl", "approval_handler", "discoverer", "middleware", "module_validator", "span_exporter"}
	if diff := cmp.Diff(want, m.Points()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for point, bad := range map[apcore.ExtensionPoint]any{
		"acl": apcore.AlwaysDeny{}, "middleware": (*tracing)(nil), "discoverer": nil, "nowhere": apcore.AllowAll{},
	} {
		if err := m.Register(point, bad); !errors.Is(err, apcore.CodeInvalidInput) {
			t.Errorf("%T at %s: %v", bad, point, err)
		}
	}
	if _, err := m.Get("nowhere"); !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("Get: %v", err)
	}
	if _, err := m.Unregister("nowhere", 1); !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("Unregister: %v", err)
	}
	if got, err := m.Get("acl"); got != nil || err != nil {
		t.Errorf("an empty point: %v, %v", got, err)
	}
	first, second := &tracing{}, &tracing{}
	for _, middleware := range []any{first, second} {
		must(t, m.Register("middleware", middleware))
	}
	must(t, m.Register("acl", forbids{}))
	must(t, m.Register("acl", apcore.AllowAll{}))
	all, err := m.GetAll("middleware")
	must(t, err)
	if acl, err := m.Get("acl"); err != nil || acl != (apcore.AllowAll{}) || len(all) != 2 || all[0] != any(first) {
		t.Errorf("acl %v, middleware %v, %v", acl, all, err)
	}
	for _, want := range []bool{true, false} {
		if gone, err := m.Unregister("middleware", first); gone != want || err != nil {
			t.Errorf("unregistered: %t, %v; want %t", gone, err, want)
		}
	}
}

func TestExtensionsApply(t *testing.T) {
	m := &apcore.ExtensionManager{}
	tracer, hook := &tracing{}, &swallower{}
	for _, extension := range []struct {
		point apcore.ExtensionPoint
		value any
	}{
		{"discoverer", finder{found: []apcore.DiscoveredModule{{"good.module", &lively{}}, {"bad.module", &lively{}}, {"Worse", nil}}}},
		{"module_validator", picky{}}, {"acl", apcore.AllowAll{}}, {"approval_handler", apcore.AlwaysDeny{}},
		{"middleware", hook}, {"middleware", tracer}, {"span_exporter", &exporter{}}, {"span_exporter", &exporter{}},
	} {
		must(t, m.Register(extension.point, extension.value))
	}
	registry := apcore.NewRegistry(apcore.RegistryOptions{Logger: slog.New(slog.DiscardHandler)})
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	must(t, m.Apply(registry, executor))
	if n, err := registry.Discover(t.Context()); n != 1 || err != nil {
		t.Errorf("%d modules discovered, %v", n, err)
	}
	if diff := cmp.Diff([]string{"good.module"}, registry.IDs()); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	state := executor.GovernanceState()
	if !state.ACLConfigured || !state.ApprovalHandlerConfigured || len(tracer.got) != 2 || !executor.Remove(hook) {
		t.Errorf("state %+v, %d exporters", state, len(tracer.got))
	}
	if err := registry.Register("bad.module", &lively{}, apcore.RegisterOptions{}); !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("the validator is not asked: %v", err)
	}
	executor.SetAccessControl((*typedNilAccess)(nil))
	executor.SetApprovalHandler(nil)
	if state := executor.GovernanceState(); state.ACLConfigured || state.ApprovalHandlerConfigured {
		t.Errorf("taken away: %+v", state)
	}
}

type typedNilAccess struct{}

func (*typedNilAccess) CheckAccess(context.Context, apcore.AccessRequest) apcore.AccessDecision {
	panic("a nil pointer was asked")
}

func TestDiscover(t *testing.T) {
	registry := apcore.NewRegistry(apcore.RegistryOptions{Logger: slog.New(slog.DiscardHandler)})
	find := func(want int, code apcore.Code) {
		t.Helper()
		if n, err := registry.Discover(t.Context()); n != want || apcore.CodeOf(err) != code {
			t.Errorf("%d modules, %v; want %d and %q", n, err, want, code)
		}
	}
	find(0, "")
	registry.SetDiscoverer(finder{found: []apcore.DiscoveredModule{{"a.one", &lively{}}, {"a.two", &lively{}}, {"ephemeral.x", &lively{}}, {"system.x", &lively{}}}})
	find(2, "")
	find(0, "") // both are there already
	registry.SetDiscoverer(finder{fail: func() { panic("x") }})
	find(0, apcore.CodeInternal)
	registry.SetDiscoverer((*brokenFinder)(nil))
	find(0, "")
}

type brokenFinder struct{ finder }
