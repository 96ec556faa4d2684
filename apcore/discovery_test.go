package apcore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// discover applies a discoverer to a registry that hosts base.one 1.0.0.
func discover(t *testing.T, discoverer apcore.Discoverer) (r *apcore.Registry, loaded, warnings []string, err error) {
	t.Helper()
	var log ledger
	r = apcore.NewRegistry(apcore.RegistryOptions{Logger: logTo(&log)})
	must(t, r.Register("base.one", &testModule{}, apcore.RegisterOptions{}))
	_, err = r.On(apcore.RegistryRegister, func(id string, _ apcore.Module) { loaded = append(loaded, id) })
	must(t, err)
	r.SetDiscoverer(discoverer)
	count, err := r.Discover(t.Context())
	if count != len(loaded) {
		t.Errorf("%d modules are said to be registered, %d are", count, len(loaded))
	}
	return r, loaded, log.all(), err
}

// §10.6: discovered modules come after what they need, which may be there
// already; a bad one is skipped and named.
func TestDiscovery(t *testing.T) {
	needing := func(ids ...string) apcore.Module {
		m := &lively{}
		for _, id := range ids {
			m.dependency = append(m.dependency, apcore.Dependency{ModuleID: id, Version: "^1.0.0"})
		}
		return m
	}
	for name, test := range map[string]struct {
		found    []apcore.DiscoveredModule
		loaded   []string
		warnings []string
		code     apcore.Code
	}{
		"order":         {[]apcore.DiscoveredModule{{"a.one", needing("c.one", "base.one")}, {"b.one", needing()}, {"c.one", needing("b.one")}}, []string{"b.one", "c.one", "a.one"}, nil, ""},
		"bad ones":      {[]apcore.DiscoveredModule{{"Bad", needing()}, {"a.nil", nil}, {"a.one", needing()}, {"a.one", needing()}, {"system.x", needing()}}, []string{"a.one"}, []string{"Bad", "a.nil", "a.one", "system.x"}, ""},
		"there already": {[]apcore.DiscoveredModule{{"base.one", needing()}}, nil, []string{"base.one"}, ""},
		"missing":       {[]apcore.DiscoveredModule{{"a.one", needing("no.such")}}, nil, nil, apcore.CodeDependencyNotFound},
		"cycle":         {[]apcore.DiscoveredModule{{"a.one", needing("b.one")}, {"b.one", needing("a.one")}}, nil, nil, apcore.CodeCircularDependency},
	} {
		t.Run(name, func(t *testing.T) {
			_, loaded, warnings, err := discover(t, finder{found: test.found})
			if apcore.CodeOf(err) != test.code || !slices.Equal(loaded, test.loaded) || len(warnings) != len(test.warnings) {
				t.Fatalf("loaded %q, %v, warnings %q; want %q, %q, %q", loaded, err, warnings, test.loaded, test.code, test.warnings)
			}
			for i, id := range test.warnings {
				if !strings.Contains(warnings[i], "module_id="+id) {
					t.Errorf("%q does not name %s", warnings[i], id)
				}
			}
		})
	}
	for name, broken := range map[string]apcore.Discoverer{"fails": lostFinder{errors.New("no directory")}, "panics": lostFinder{}} {
		r, loaded, _, err := discover(t, broken)
		if err == nil || len(loaded) != 0 || r.Len() != 1 {
			t.Errorf("a discoverer that %s: %v, loaded %q", name, err, loaded)
		}
	}
}

type lostFinder struct{ err error }

func (f lostFinder) Discover(context.Context) ([]apcore.DiscoveredModule, error) {
	if f.err == nil {
		panic("lost")
	}
	return nil, f.err
}
