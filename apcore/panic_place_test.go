package apcore_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"strings"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// marshals panics when it is made into JSON.
type marshals struct{ do func() }

func (m marshals) MarshalJSON() ([]byte, error) { m.do(); return []byte("1"), nil }

// advises fails in its advice, its stream or nowhere.
type advises struct {
	testModule
	do func()
}

func (a *advises) Preflight(context.Context, map[string]any, *apcore.Context) ([]string, error) {
	a.do()
	return nil, nil
}

func (a *advises) Preview(context.Context, map[string]any, *apcore.Context) ([]apcore.Change, error) {
	a.do()
	return nil, nil
}

func (a *advises) Stream(context.Context, map[string]any, *apcore.Context) iter.Seq2[map[string]any, error] {
	return func(yield func(map[string]any, error) bool) {
		if yield(obj{"n": 1}, nil) {
			a.do()
		}
	}
}

// panics are the disasters that can be recovered from where they happen.
func panics() map[string]func() {
	some := map[string]func(){}
	for kind, do := range disasters {
		if kind != "goexit" {
			some[kind] = do
		}
	}
	return some
}

// Scenario 49: advice that panics is a warning, and the validation stands.
func TestAdvicePanics(t *testing.T) {
	for kind, do := range panics() {
		t.Run(kind, func(t *testing.T) {
			h := newHost(t, apcore.ExecutorOptions{})
			must(t, h.registry.Register("m", &advises{do: do}, apcore.RegisterOptions{}))
			result := h.Validate(t.Context(), "m", nil, nil)
			warned := 0
			for _, check := range result.Checks {
				for _, warning := range check.Warnings {
					warned++
					if strings.Contains(warning, "secret") {
						t.Errorf("the panic's text got out: %s", warning)
					}
				}
			}
			if !result.Valid || warned != 2 || len(result.PredictedChanges) != 0 {
				t.Errorf("%v, %d warnings, %v", outline(result), warned, result.PredictedChanges)
			}
		})
	}
	h := newHost(t, apcore.ExecutorOptions{})
	must(t, h.registry.Register("m", &advises{do: runtime.Goexit}, apcore.RegisterOptions{}))
	if result := h.Validate(t.Context(), "m", nil, nil); result == nil {
		t.Error("no result")
	}
}

// Scenario 49: an output that panics on its way into JSON is the module's error.
func TestOutputPanics(t *testing.T) {
	for kind, do := range panics() {
		t.Run(kind, func(t *testing.T) {
			h := newHost(t, apcore.ExecutorOptions{}).module("raw", func(context.Context, obj, *apcore.Context) (obj, error) {
				return obj{"value": marshals{do}}, nil
			})
			must(t, apcore.Register(h.registry, "typed", func(context.Context, struct{}) (struct {
				Value any `json:"value"`
			}, error,
			) {
				return struct {
					Value any `json:"value"`
				}{marshals{do}}, nil
			}, apcore.Spec{Description: "Panics late"}))
			for _, id := range []string{"raw", "typed"} {
				outcome, err := h.call(id, nil, nil)
				if !errors.Is(err, apcore.CodeModuleExecuteError) || outcome.Output != nil || !outcome.Started {
					t.Errorf("%s: output %v, %v", id, outcome.Output, err)
				}
				if strings.Contains(err.Error(), "secret") {
					t.Errorf("the panic's text got out: %v", err)
				}
			}
		})
	}
}

// Scenario 49: a stream that panics ends with the module's error after the chunks
// that are out.
func TestStreamPanics(t *testing.T) {
	for kind, do := range panics() {
		t.Run(kind, func(t *testing.T) {
			h := newHost(t, apcore.ExecutorOptions{})
			must(t, h.registry.Register("m", &advises{do: do}, apcore.RegisterOptions{}))
			chunks, err := drain(h.Stream(t.Context(), "m", nil, nil))
			if !errors.Is(err, apcore.CodeModuleExecuteError) || len(chunks) != 1 || strings.Contains(err.Error(), "secret") {
				t.Errorf("%d chunks, %v", len(chunks), err)
			}
		})
	}
}

// Scenario 49: a condition that panics opens nothing: an allow rule does not
// grant, a deny rule denies.
func TestConditionPanics(t *testing.T) {
	for kind, do := range panics() {
		for effect, fallback := range map[apcore.ACLEffect]apcore.ACLEffect{"allow": "deny", "deny": "allow"} {
			t.Run(kind+"/"+string(effect), func(t *testing.T) {
				rule := apcore.ACLRule{Callers: []string{"*"}, Targets: []string{"*"}, Effect: effect, Conditions: obj{"mood": 1}}
				acl, err := apcore.NewACL([]apcore.ACLRule{rule}, apcore.ACLOptions{
					DefaultEffect: fallback,
					Conditions: map[string]apcore.ACLCondition{"mood": func(context.Context, any, apcore.AccessRequest) (bool, error) {
						do()
						return effect == "allow", nil
					}},
				})
				must(t, err)
				h := newHost(t, apcore.ExecutorOptions{AccessControl: acl}).module("m", nil)
				_, err = h.call("m", nil, nil)
				h.wants(err, apcore.CodeACLDenied, 0)
			})
		}
	}
}

// Scenario 49: an own step, a step hook and a listener that panic end the call or
// nothing, but never the process.
func TestStepPanics(t *testing.T) {
	for kind, do := range panics() {
		t.Run(kind, func(t *testing.T) {
			s := strategy(t, "standard")
			must(t, s.InsertBefore("execute", apcore.Step{Name: "own", Run: func(context.Context, *apcore.Pipeline) (apcore.StepResult, error) {
				do()
				return apcore.StepResult{}, nil
			}}))
			h := newHost(t, apcore.ExecutorOptions{Strategy: s}).module("m", nil)
			_, err := h.call("m", nil, nil)
			h.wants(err, apcore.CodeInternal, 0)
			h = newHost(t, apcore.ExecutorOptions{
				ApprovalHandler: approves(), OnEvent: func(apcore.Event) { do() },
			}).module("m", nil, gated)
			_, err = h.call("m", nil, nil)
			h.wants(err, "", 1)
		})
	}
}
