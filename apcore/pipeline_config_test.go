package apcore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// noteType makes steps that enter their config in a ledger.
func noteType(notes *ledger) map[string]apcore.StepType {
	return map[string]apcore.StepType{
		"note": func(config map[string]any) (apcore.Step, error) {
			text, ok := config["text"].(string)
			if !ok {
				return apcore.Step{}, errors.New("text is missing")
			}
			return apcore.Step{Pure: true, Run: func(context.Context, *apcore.Pipeline) (apcore.StepResult, error) {
				notes.add("%s", text)
				return apcore.StepResult{}, nil
			}}, nil
		},
	}
}

// The section is applied in the order remove, configure, steps (§5.16.1).
func TestPipelineConfig(t *testing.T) {
	notes, logged := &ledger{}, &ledger{}
	config, err := apcore.ParsePipelineConfig([]byte(`
steps:
  - {name: first, type: note, config: {text: one}, after: module_lookup}
  - {name: second, type: note, config: {text: two}, before: execute, match_modules: ["pay.*"], timeout_ms: 50}
configure:
  execute: {timeout_ms: 1}
remove: [acl_check, output_validation]
`))
	must(t, err)
	s := strategy(t, "standard")
	must(t, s.Apply(config, noteType(notes), logTo(logged)))
	want := []string{"context_creation", "call_chain_guard", "module_lookup", "first", "approval_gate", "middleware_before", "input_validation", "second", "execute", "middleware_after", "return_result"}
	if diff := cmp.Diff(want, s.StepNames()); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"apcore: the configuration removes a gate, nobody is asked there any more strategy=standard step=acl_check"}, logged.all()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	h := newHost(t, apcore.ExecutorOptions{Strategy: s}).module("pay.send", untilCancelled).module("m", nil)
	_, err = h.call("pay.send", nil, nil)
	h.wants(err, apcore.CodeModuleTimeout, 1)
	_, err = h.call("m", nil, nil)
	h.wants(err, "", 2)
	if diff := cmp.Diff([]string{"one", "two", "one"}, notes.all()); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	var none *apcore.PipelineConfig
	must(t, s.Apply(none, nil, nil))
	empty, err := apcore.ParsePipelineConfig(nil)
	must(t, err)
	must(t, s.Apply(empty, nil, nil))
}

// What cannot be done fails the load with a code, and changes nothing.
func TestPipelineConfigFaults(t *testing.T) {
	for text, want := range map[string]apcore.Code{
		`remove: [execute]`:                                    apcore.CodeStepNotRemovable,
		`remove: [no_such]`:                                    apcore.CodeStepNotFound,
		`remove: [acl_check, acl_check]`:                       apcore.CodeStepNotFound,
		`configure: {no_such: {pure: true}}`:                   apcore.CodePipelineStepNotFound,
		`configure: {acl_check: {ignore_errors: true}}`:        apcore.CodePipelineConfiguration,
		`configure: {acl_check: {match_modules: [a]}}`:         apcore.CodePipelineConfiguration,
		`configure: {acl_check: {match_modules: []}}`:          apcore.CodePipelineConfiguration,
		`configure: {approval_gate: {pure: true}}`:             apcore.CodePipelineConfiguration,
		`configure: {execute: {timeout_ms: -1}}`:               apcore.CodeInvalidInput,
		`configure: {execute: {timeout: 5}}`:                   apcore.CodePipelineConfiguration,
		`configure: {execute: {timeout_ms: soon}}`:             apcore.CodePipelineConfiguration,
		`replace: [execute]`:                                   apcore.CodePipelineConfiguration,
		`[]`:                                                   apcore.CodePipelineConfiguration,
		`steps: [{name: x, type: other, after: execute}]`:      apcore.CodePipelineConfiguration,
		`steps: [{name: x, handler: "a.b:c", after: execute}]`: apcore.CodePipelineHandlerNotSupported,
		`steps: [{name: x, type: note, config: {text: a}}]`:    apcore.CodePipelineConfiguration,
		`steps: [{name: x, type: note, config: {text: a}, after: execute, before: execute}]`:                                          apcore.CodePipelineConfiguration,
		`steps: [{name: x, type: note, after: execute}]`:                                                                              apcore.CodePipelineConfiguration,
		`steps: [{name: x, type: note, config: {text: a}, after: no_such}]`:                                                           apcore.CodeStepNotFound,
		`steps: [{name: execute, type: note, config: {text: a}, after: execute}]`:                                                     apcore.CodeStepNameDuplicate,
		`steps: [{type: note, config: {text: a}, after: execute}]`:                                                                    apcore.CodeInvalidInput,
		`{remove: [acl_check], steps: [{name: acl_check, type: note, config: {text: a}, after: x}]}`:                                  apcore.CodeStepNotFound,
		`{remove: [acl_check], steps: [{name: acl_check, type: note, config: {text: a}, ignore_errors: true, after: module_lookup}]}`: apcore.CodePipelineConfiguration,
	} {
		s := strategy(t, "standard")
		config, err := apcore.ParsePipelineConfig([]byte(text))
		if err == nil {
			err = s.Apply(config, noteType(&ledger{}), logTo(&ledger{}))
		}
		if got := apcore.CodeOf(err); got != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		if !slices.Equal(s.StepNames(), apcore.StepNames()) {
			t.Errorf("%s failed but changed the strategy: %s", text, strings.Join(s.StepNames(), " "))
		}
	}
}

// gate_step_configure (D-130): neither configuration nor code hollows out a gate,
// whichever way it comes in.
func TestGatesStayGates(t *testing.T) {
	on := new(true)
	run := mark("x", &[]string{}).Run
	for _, gate := range []string{"acl_check", "approval_gate"} {
		for name, change := range map[string]func(s *apcore.Strategy) error{
			"ignore errors": func(s *apcore.Strategy) error { return s.Configure(gate, apcore.StepConfig{IgnoreErrors: on}) },
			"match": func(s *apcore.Strategy) error {
				return s.Configure(gate, apcore.StepConfig{MatchModules: []string{"*"}})
			},
			"match none": func(s *apcore.Strategy) error { return s.Configure(gate, apcore.StepConfig{MatchModules: []string{}}) },
			"replaced":   func(s *apcore.Strategy) error { return s.Replace(gate, apcore.Step{Run: run, IgnoreErrors: true}) },
			"put back": func(s *apcore.Strategy) error {
				must(t, s.Remove(gate))
				return s.InsertAfter("module_lookup", apcore.Step{Name: gate, Run: run, MatchModules: []string{"a"}})
			},
		} {
			if err := change(strategy(t, "standard")); apcore.CodeOf(err) != apcore.CodePipelineConfiguration {
				t.Errorf("%s, %s: %v", gate, name, err)
			}
		}
	}
	s := strategy(t, "standard")
	for range 2 { // in place, and twice the same
		must(t, s.Configure("approval_gate", apcore.StepConfig{Timeout: new(time.Second), IgnoreErrors: new(false), Pure: new(false)}))
		must(t, s.Configure("acl_check", apcore.StepConfig{Pure: on}))
	}
	if !slices.Equal(s.StepNames(), apcore.StepNames()) {
		t.Errorf("steps %v", s.StepNames())
	}
	if err := s.Configure("approval_gate", apcore.StepConfig{Pure: on}); apcore.CodeOf(err) != apcore.CodePipelineConfiguration {
		t.Errorf("a pure approval gate: %v", err)
	}
	h := newHost(t, apcore.ExecutorOptions{Strategy: s, AccessControl: apcore.AllowAll{}, ApprovalHandler: apcore.AutoApprove{}})
	if state := h.GovernanceState(); !state.BuiltinACLGateWired || !state.BuiltinApprovalGateWired {
		t.Errorf("a configured gate is a gate: %+v", state)
	}
}
