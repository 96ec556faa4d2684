package apcore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Scenario 65: the same name twice is an error that names both owners, before
// anything of the second one happens, and the first one goes on answering.
func TestSameNameTwice(t *testing.T) {
	type in struct{}
	first, err := apcore.NewFunc(func(context.Context, in) (string, error) { return "first", nil }, apcore.Spec{Description: "Sends by post"})
	must(t, err)
	other, err := apcore.NewFunc(func(context.Context, in) (string, error) { return "other", nil }, apcore.Spec{Description: "Sends by mail"})
	must(t, err)
	loaded := 0
	for name, test := range map[string]struct {
		second apcore.Module
		opts   apcore.RegisterOptions
		owners []string
		code   apcore.Code
	}{
		"the same module":        {first, apcore.RegisterOptions{}, []string{"Sends by post", "*apcore.FuncModule"}, apcore.CodeDuplicateModuleID},
		"other code":             {other, apcore.RegisterOptions{}, []string{"Sends by post", "Sends by mail", "1.0.0"}, apcore.CodeDuplicateModuleID},
		"another kind of module": {&loading{load: func() error { loaded++; return nil }}, apcore.RegisterOptions{}, []string{"*apcore.FuncModule", "*apcore_test.loading"}, apcore.CodeDuplicateModuleID},
		"another version":        {other, apcore.RegisterOptions{Version: "0.9.0"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, apcore.ExecutorOptions{})
			must(t, h.registry.Register("mail.send", first, apcore.RegisterOptions{}))
			err := h.registry.Register("mail.send", test.second, test.opts)
			if apcore.CodeOf(err) != test.code {
				t.Fatalf("%v, want %q", err, test.code)
			}
			for _, owner := range test.owners {
				if !strings.Contains(err.Error(), owner) {
					t.Errorf("%q does not name %q", err, owner)
				}
			}
			if err != nil && (apcore.AsError(err).ModuleID() != "mail.send" || apcore.AsError(err).Details["version"] != "1.0.0") {
				t.Errorf("details %v", apcore.AsError(err).Details)
			}
			outcome, err := h.call("mail.send", nil, nil)
			if err != nil || outcome.Output["result"] != "first" {
				t.Errorf("now answers %v, %v", outcome.Output, err)
			}
		})
	}
	if loaded != 0 {
		t.Errorf("OnLoad of a refused module ran %d times", loaded)
	}
}

// Scenario 65: registries share nothing, so the identical set fits a second
// registry, and the first one again once it is empty; names that look like an
// engine's own are no ids.
func TestSameSetAgain(t *testing.T) {
	ids := []string{"a.one", "a.two"}
	first, second := quiet(), quiet()
	for range 2 {
		for _, r := range []*apcore.Registry{first, second} {
			for _, id := range ids {
				must(t, r.Register(id, &testModule{}, apcore.RegisterOptions{}))
				if err := r.Register(id, &testModule{}, apcore.RegisterOptions{}); !errors.Is(err, apcore.CodeDuplicateModuleID) {
					t.Errorf("%s twice: %v", id, err)
				}
			}
			for _, id := range ids {
				r.Unregister(id, apcore.UnregisterOptions{})
			}
		}
	}
	for _, id := range []string{"__temporal_reset", "__temporal.x", "_x"} {
		if err := first.Register(id, &testModule{}, apcore.RegisterOptions{}); !errors.Is(err, apcore.CodeInvalidModuleID) {
			t.Errorf("%s: %v", id, err)
		}
	}
}
