package apcore_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// TestRewriteAfterApproval is scenario 23: what runs is what was approved, or
// nothing runs.
func TestRewriteAfterApproval(t *testing.T) {
	replace := func(*apcore.MiddlewareCall) (obj, error) { return obj{"amount": 200}, nil }
	inPlace := func(call *apcore.MiddlewareCall) (obj, error) {
		call.Inputs["amount"] = 200
		return nil, nil
	}
	deep := func(call *apcore.MiddlewareCall) (obj, error) {
		call.Inputs["to"].(obj)["account"] = "2"
		return nil, nil
	}
	unwritable := func(call *apcore.MiddlewareCall) (obj, error) {
		call.Inputs["x"] = make(chan int)
		return nil, nil
	}
	same := func(*apcore.MiddlewareCall) (obj, error) {
		return obj{"to": obj{"account": "1"}, "amount": 100}, nil
	}
	tests := []struct {
		name    string
		before  func(*apcore.MiddlewareCall) (obj, error)
		allow   bool
		ungated bool
		code    apcore.Code
	}{
		{name: "replaced", before: replace, code: apcore.CodeApprovalDenied},
		{name: "in place", before: inPlace, code: apcore.CodeApprovalDenied},
		{name: "deep in place", before: deep, code: apcore.CodeApprovalDenied},
		{name: "no JSON any more", before: unwritable, code: apcore.CodeApprovalDenied},
		{name: "same", before: same},
		{name: "untouched"},
		{name: "allowed", before: inPlace, allow: true},
		{name: "allowed but no JSON", before: unwritable, allow: true, code: apcore.CodeInternal},
		{name: "not gated", before: replace, ungated: true},
	}
	for _, test := range tests {
		for entry, token := range map[string]any{"request": nil, "resume": "id"} {
			t.Run(test.name+"/"+entry, func(t *testing.T) {
				h := newHost(t, apcore.ExecutorOptions{
					ApprovalHandler: approves(), RewriteAfterApproval: test.allow, Middleware: []apcore.Middleware{&hook{before: test.before}},
				})
				h.module("m", nil, func(m *testModule) { m.annotations.RequiresApproval = !test.ungated },
					inputSchema(obj{"properties": obj{"currency": obj{"type": "string", "default": "EUR"}}}))
				inputs := obj{"amount": 100, "to": obj{"account": "1"}}
				if token != nil {
					inputs[apcore.ApprovalTokenKey] = token
				}
				outcome, err := h.call("m", inputs, nil)
				h.wants(err, test.code, map[bool]int{true: 1}[test.code == ""])
				if outcome.Started != (test.code == "") {
					t.Errorf("started %t", outcome.Started)
				}
			})
		}
	}
}

// TestModuleRunsWhatWasApproved is scenario 23: neither a schema default nor a
// handler that writes to its request changes the inputs.
func TestModuleRunsWhatWasApproved(t *testing.T) {
	var shown, ran obj
	h := newHost(t, apcore.ExecutorOptions{
		ApprovalHandler: apcore.ApprovalCallback(func(_ context.Context, r *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
			shown = obj{"amount": r.Arguments["amount"], "to": obj{"account": r.Arguments["to"].(obj)["account"]}}
			r.Arguments["amount"] = 1
			r.Arguments["to"].(obj)["account"] = "thief"
			r.RedactedArguments["to"].(obj)["account"] = "thief"
			return &apcore.ApprovalResult{Status: apcore.ApprovalApproved}, nil
		}),
	})
	h.module("m", func(_ context.Context, in obj, c *apcore.Context) (obj, error) {
		ran = in
		return obj{"redacted": c.RedactedInputs()["to"]}, nil
	}, gated, inputSchema(obj{"properties": obj{"currency": obj{"type": "string", "default": "EUR"}}}))
	outcome, err := h.call("m", obj{"amount": 100, "to": obj{"account": "1"}}, nil)
	h.wants(err, "", 1)
	if diff := cmp.Diff(shown, ran); diff != "" {
		t.Errorf("ran other inputs than shown (-shown +ran):\n%s", diff)
	}
	if diff := cmp.Diff(obj{"redacted": obj{"account": "1"}}, outcome.Output); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestApprovalRequest(t *testing.T) {
	var got *apcore.ApprovalRequest
	h := newHost(t, apcore.ExecutorOptions{
		Policy: &apcore.ExecutionPolicy{Rules: []apcore.PolicyRule{{Pattern: "pay.*", RequiresApproval: new(true)}}},
		ApprovalHandler: apcore.ApprovalCallback(func(ctx context.Context, r *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
			if c, ok := apcore.FromContext(ctx); !ok || c != r.Context {
				t.Error("the handler's context.Context does not carry the call")
			}
			got = r
			return &apcore.ApprovalResult{Status: apcore.ApprovalRejected, Reason: "no"}, nil
		}),
	}).module("a", calls("pay.out")).module("pay.out", nil)
	_, err := h.call("a", obj{}, nil)
	h.wants(err, apcore.CodeApprovalDenied, 1)
	if got.ModuleID != "pay.out" || got.CallerID != "a" || got.Action != "pay.out" || !got.Annotations.RequiresApproval || got.Module.Version != "1.0.0" {
		t.Errorf("%+v", got)
	}
	if e := apcore.AsError(err); e.ModuleID() != "pay.out" || e.Message != "Approval denied for module 'pay.out': no" {
		t.Errorf("%+v", e)
	}
}

// TestRequirement: policy, annotations and access rules each can demand approval.
func TestRequirement(t *testing.T) {
	ask := accessFunc(func(context.Context, apcore.AccessRequest) apcore.AccessDecision {
		return apcore.AccessDecision{Allowed: true, ApprovalRequired: true}
	})
	off := apcore.PolicyRule{Pattern: "*", RequiresApproval: new(false)}
	tests := []struct {
		name   string
		own    apcore.Annotations
		policy *apcore.ExecutionPolicy
		access apcore.AccessControl
		asked  int
		events int
	}{
		{name: "nothing"},
		{name: "annotation", own: apcore.Annotations{RequiresApproval: true}, asked: 1, events: 1},
		{name: "destructive alone", own: apcore.Annotations{Destructive: true}},
		{name: "gate destructive", own: apcore.Annotations{Destructive: true}, policy: &apcore.ExecutionPolicy{GateDestructive: true}, asked: 1, events: 1},
		{name: "policy lowers", own: apcore.Annotations{RequiresApproval: true}, policy: &apcore.ExecutionPolicy{Rules: []apcore.PolicyRule{off}}, events: 1},
		{name: "more specific wins", policy: &apcore.ExecutionPolicy{Rules: []apcore.PolicyRule{off, {Pattern: "m", RequiresApproval: new(true)}}}, asked: 1, events: 2},
		{name: "restrictive wins a tie", policy: &apcore.ExecutionPolicy{Rules: []apcore.PolicyRule{off, {Pattern: "*", RequiresApproval: new(true)}}}, asked: 1, events: 2},
		{name: "access demands", access: ask, asked: 1, events: 1},
		{name: "policy cannot lower access", access: ask, policy: &apcore.ExecutionPolicy{Rules: []apcore.PolicyRule{off}}, asked: 1, events: 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var events []apcore.Event
			handler := approves()
			h := newHost(t, apcore.ExecutorOptions{
				ApprovalHandler: handler, Policy: test.policy, AccessControl: test.access, OnEvent: func(e apcore.Event) { events = append(events, e) },
			}).module("m", nil, func(m *testModule) { m.annotations = test.own })
			_, err := h.call("m", nil, nil)
			h.wants(err, "", 1)
			if handler.asked.count() != test.asked || len(events) != test.events {
				t.Errorf("asked %v, events %v", handler.asked.all(), events)
			}
		})
	}
}

func TestBuiltInHandlers(t *testing.T) {
	callback := apcore.ApprovalCallback(func(context.Context, *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
		return &apcore.ApprovalResult{Status: apcore.ApprovalApproved}, nil
	})
	tests := []struct {
		name    string
		handler apcore.ApprovalHandler
		first   apcore.Code
		resume  apcore.Code
	}{
		{"deny", apcore.AlwaysDeny{}, apcore.CodeApprovalDenied, apcore.CodeApprovalDenied},
		{"approve", apcore.AutoApprove{}, "", ""},
		{"callback", callback, "", apcore.CodeApprovalDenied},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for code, inputs := range map[*apcore.Code]obj{&test.first: nil, &test.resume: {apcore.ApprovalTokenKey: "x"}} {
				h := newHost(t, apcore.ExecutorOptions{ApprovalHandler: test.handler}).module("m", nil, gated)
				_, err := h.call("m", inputs, nil)
				h.wants(err, *code, map[bool]int{true: 1}[*code == ""])
			}
		})
	}
}
