package apcore_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// A policy in its wire form is closed: what is misspelt is refused, not ignored
// (§7.9).
func TestParseExecutionPolicy(t *testing.T) {
	for text, want := range map[string]*apcore.ExecutionPolicy{
		`{}`: {},
		`{"rules": [{"pattern": "pay.*", "requires_approval": true, "destructive": false, "reason": "money"}], "gate_destructive": true, "strict": true}`: {
			Rules:           []apcore.PolicyRule{{Pattern: "pay.*", RequiresApproval: new(true), Destructive: new(false), Reason: "money"}},
			GateDestructive: true, Strict: true,
		},
		`{"rules": [{"pattern": "a", "require_approval": true}]}`: nil,
		`{"rules": [{"requires_approval": true}]}`:                nil,
		`{"rule": []}`:      nil,
		`{"strict": "yes"}`: nil,
		`{"rules": [{"pattern": "a", "destructive": 1}]}`: nil,
		`{} {}`: nil,
		`[]`:    nil,
		``:      nil,
	} {
		policy, err := apcore.ParseExecutionPolicy([]byte(text))
		if want == nil {
			if apcore.CodeOf(err) != apcore.CodeInvalidInput {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if diff := cmp.Diff(want, policy); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	}
}

// The most specific rule wins; among equals the one that restricts this module
// more, which depends on the module and on GateDestructive (§7.9).
func TestPolicyPrecedence(t *testing.T) {
	on, off := new(true), new(false)
	for name, test := range map[string]struct {
		policy apcore.ExecutionPolicy
		own    apcore.Annotations
		want   bool
	}{
		"nothing":                {want: false},
		"own":                    {own: apcore.Annotations{RequiresApproval: true}, want: true},
		"lowered":                {policy: apcore.ExecutionPolicy{Rules: []apcore.PolicyRule{{Pattern: "*", RequiresApproval: off}}}, own: apcore.Annotations{RequiresApproval: true}, want: false},
		"raised":                 {policy: apcore.ExecutionPolicy{Rules: []apcore.PolicyRule{{Pattern: "pay.*", RequiresApproval: on}}}, want: true},
		"other module":           {policy: apcore.ExecutionPolicy{Rules: []apcore.PolicyRule{{Pattern: "web.*", RequiresApproval: on}}}, want: false},
		"specific over general":  {policy: apcore.ExecutionPolicy{Rules: []apcore.PolicyRule{{Pattern: "*", RequiresApproval: on}, {Pattern: "pay.*", RequiresApproval: off}}}, want: false},
		"exact over wildcard":    {policy: apcore.ExecutionPolicy{Rules: []apcore.PolicyRule{{Pattern: "pay.send", RequiresApproval: on}, {Pattern: "pay.*", RequiresApproval: off}}}, want: true},
		"tie":                    {policy: apcore.ExecutionPolicy{Rules: []apcore.PolicyRule{{Pattern: "pay.*", RequiresApproval: off}, {Pattern: "pay.*", RequiresApproval: on}}}, want: true},
		"tie, silent over off":   {policy: apcore.ExecutionPolicy{Rules: []apcore.PolicyRule{{Pattern: "pay.*", RequiresApproval: off}, {Pattern: "pay.*", Reason: "as it is"}}}, own: apcore.Annotations{RequiresApproval: true}, want: true},
		"tie, destruction gated": {policy: apcore.ExecutionPolicy{GateDestructive: true, Rules: []apcore.PolicyRule{{Pattern: "pay.*", RequiresApproval: on, Destructive: off}, {Pattern: "pay.*", Destructive: on}}}, want: true},
		"destructive gated":      {policy: apcore.ExecutionPolicy{GateDestructive: true}, own: apcore.Annotations{Destructive: true}, want: true},
		"said harmless":          {policy: apcore.ExecutionPolicy{GateDestructive: true, Rules: []apcore.PolicyRule{{Pattern: "*", Destructive: off}}}, own: apcore.Annotations{Destructive: true}, want: false},
		"said destructive":       {policy: apcore.ExecutionPolicy{GateDestructive: true, Rules: []apcore.PolicyRule{{Pattern: "*", Destructive: on, RequiresApproval: off}}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			handler := &recordingHandler{}
			h := newHost(t, apcore.ExecutorOptions{ApprovalHandler: handler}).module("pay.send", nil, func(m *testModule) { m.annotations = test.own })
			must(t, h.SetPolicy(&test.policy))
			_, _ = h.call("pay.send", nil, nil)
			validated := h.Validate(t.Context(), "pay.send", nil, nil).RequiresApproval
			if asked := len(handler.requests) > 0; asked != test.want || h.NeedsApproval("pay.send") != test.want || validated != test.want {
				t.Errorf("asked %t, NeedsApproval %t, Validate %t; want %t", asked, h.NeedsApproval("pay.send"), validated, test.want)
			}
			must(t, h.SetPolicy(nil))
			if h.NeedsApproval("pay.send") != test.own.RequiresApproval {
				t.Error("the policy stays")
			}
		})
	}
	if err := newHost(t, apcore.ExecutorOptions{}).SetPolicy(&apcore.ExecutionPolicy{Rules: []apcore.PolicyRule{{}}}); apcore.CodeOf(err) != apcore.CodeInvalidInput {
		t.Errorf("a rule without a pattern: %v", err)
	}
}

// What the live instance says and what was declared are united: false in one
// never cancels true in the other, now or later (D-96, D-125).
func TestLiveAnnotationsCount(t *testing.T) {
	for name, test := range map[string]struct {
		registered, declared, live, want bool
	}{
		"nowhere": {}, "registered": {registered: true, want: true}, "declared": {declared: true, want: true},
		"later": {live: true, want: true}, "all": {true, true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			handler := &recordingHandler{}
			h := newHost(t, apcore.ExecutorOptions{ApprovalHandler: handler})
			module := &testModule{body: func(_ context.Context, _ obj, _ *apcore.Context) (obj, error) { return obj{}, nil }}
			module.annotations = apcore.Annotations{RequiresApproval: test.registered}
			must(t, h.registry.Register("m", module, apcore.RegisterOptions{Metadata: obj{"annotations": obj{"requires_approval": test.declared}}}))
			module.annotations = apcore.Annotations{RequiresApproval: test.live, Destructive: test.live}
			outcome, _ := h.call("m", nil, nil)
			if got := len(handler.requests) > 0; got != test.want || h.NeedsApproval("m") != test.want || outcome.Annotations.RequiresApproval != test.want {
				t.Errorf("asked %t, want %t", got, test.want)
			}
			if test.want && handler.requests[0].Annotations.Destructive != test.live {
				t.Errorf("the request says %+v", handler.requests[0].Annotations)
			}
		})
	}
}
