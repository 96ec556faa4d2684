package apcore_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// §4.5: strategies by name, for single calls.
func TestRegisteredStrategies(t *testing.T) {
	executor, ran := pipelined(t, apcore.ExecutorOptions{AccessControl: accessFunc(denyAll)}, apcore.Spec{})
	var log []string
	open := strategy(t, "internal").Named("open")
	must(t, open.InsertAfter("execute", mark("note", &log)))
	must(t, executor.RegisterStrategy(open))
	must(t, open.InsertAfter("note", mark("later", &log)))
	must(t, executor.RegisterStrategy(strategy(t, "minimal")))
	must(t, executor.RegisterStrategy(strategy(t, "testing").Named("minimal")))
	var names []string
	for _, info := range executor.ListStrategies() {
		names = append(names, fmt.Sprint(info.Name, " ", info.StepCount))
	}
	if want := []string{"standard 11", "open 10", "minimal 8"}; !slices.Equal(names, want) {
		t.Errorf("listed %q, want %q", names, want)
	}
	for name, code := range map[string]apcore.Code{"": apcore.CodeACLDenied, "standard": apcore.CodeACLDenied, "open": "", "closed": apcore.CodeStrategyNotFound} {
		before := *ran
		_, err := executor.Do(t.Context(), apcore.Request{ModuleID: "test.echo", Strategy: name})
		if apcore.CodeOf(err) != code || *ran-before != map[bool]int{true: 1}[code == ""] {
			t.Errorf("strategy %q: %v, want %q; ran %d times", name, err, code, *ran-before)
		}
	}
	if !slices.Equal(log, []string{"note test.echo"}) {
		t.Errorf("steps %q: the executor did not take a copy", log)
	}
	for name, bad := range map[string]*apcore.Strategy{"nil": nil, "nameless": strategy(t, "minimal").Named(""), "the executor's own": strategy(t, "standard")} {
		if err := executor.RegisterStrategy(bad); !errors.Is(err, apcore.CodeInvalidInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
