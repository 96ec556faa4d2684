package apcore_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// answering is a handler with one answer to everything.
type answering struct {
	result *apcore.ApprovalResult
	err    error
	asked  ledger
}

func (a *answering) RequestApproval(context.Context, *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
	a.asked.add("request")
	return a.result, a.err
}

func (a *answering) CheckApproval(_ context.Context, id string) (*apcore.ApprovalResult, error) {
	a.asked.add("check %s", id)
	return a.result, a.err
}

func approves() *answering {
	return &answering{result: &apcore.ApprovalResult{Status: apcore.ApprovalApproved, ApprovedBy: "ada"}}
}

// TestApprovalToken is scenario 28: the token's type is checked and it is taken
// out, whether the module is gated or not and whatever its schema allows.
func TestApprovalToken(t *testing.T) {
	open := obj{"type": "object"}
	tokens := []struct {
		name  string
		token any
		code  apcore.Code
	}{
		{"text", "id-1", ""},
		{"number", 7, apcore.CodeInvalidInput},
		{"json number", json.Number("7"), apcore.CodeInvalidInput},
		{"bool", true, apcore.CodeInvalidInput},
		{"null", nil, apcore.CodeInvalidInput},
		{"list", []any{"id-1"}, apcore.CodeInvalidInput},
		{"object", obj{"id": "id-1"}, apcore.CodeInvalidInput},
	}
	for _, token := range tokens {
		for _, needs := range []bool{true, false} {
			for schemaName, schema := range map[string]obj{"strict": strict, "open": open} {
				t.Run(token.name+map[bool]string{true: "/gated/", false: "/free/"}[needs]+schemaName, func(t *testing.T) {
					var saw, middlewareSaw obj
					handler := approves()
					h := newHost(t, apcore.ExecutorOptions{ApprovalHandler: handler, Middleware: []apcore.Middleware{&hook{
						before: func(call *apcore.MiddlewareCall) (obj, error) {
							middlewareSaw = maps.Clone(call.Inputs)
							return nil, nil
						},
					}}})
					h.module("m", func(_ context.Context, in obj, _ *apcore.Context) (obj, error) {
						saw = in
						return obj{}, nil
					}, inputSchema(schema), func(m *testModule) { m.annotations.RequiresApproval = needs })
					inputs := obj{"n": 1, apcore.ApprovalTokenKey: token.token}
					before := maps.Clone(inputs)
					outcome, err := h.call("m", inputs, nil)
					if diff := cmp.Diff(before, inputs); diff != "" {
						t.Errorf("the caller's map changed (-want +got):\n%s", diff)
					}
					if _, shown := outcome.Context.RedactedInputs()[apcore.ApprovalTokenKey]; shown {
						t.Error("the redacted inputs hold the token")
					}
					if token.code != "" {
						h.wants(err, token.code, 0)
						if handler.asked.count() != 0 {
							t.Errorf("the handler was asked: %v", handler.asked.all())
						}
						return
					}
					h.wants(err, "", 1)
					if diff := cmp.Diff([]obj{{"n": 1}, {"n": 1}}, []obj{saw, middlewareSaw}); diff != "" {
						t.Errorf("seen inputs (-want +got):\n%s", diff)
					}
					want := map[bool][]string{true: {"check id-1"}}[needs]
					if diff := cmp.Diff(want, handler.asked.all(), cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("asked (-want +got):\n%s", diff)
					}
				})
			}
		}
	}
}

// TestNestedTokenIsData is scenario 28: only the top-level token is one.
func TestNestedTokenIsData(t *testing.T) {
	handler := approves()
	h := newHost(t, apcore.ExecutorOptions{ApprovalHandler: handler}).module("m", func(_ context.Context, in obj, _ *apcore.Context) (obj, error) {
		return in, nil
	}, gated)
	inputs := obj{"form": obj{apcore.ApprovalTokenKey: 5, "list": []any{obj{apcore.ApprovalTokenKey: "x"}}}}
	outcome, err := h.call("m", inputs, nil)
	h.wants(err, "", 1)
	if diff := cmp.Diff(inputs, outcome.Output); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"request"}, handler.asked.all()); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// TestDecisions is scenario 24: only an exact approval without an error runs the
// module. The event tells what was decided.
func TestDecisions(t *testing.T) {
	result := func(status apcore.ApprovalStatus, id string) *apcore.ApprovalResult {
		return &apcore.ApprovalResult{Status: status, ApprovalID: id, Reason: "because"}
	}
	tests := []struct {
		name     string
		result   *apcore.ApprovalResult
		err      error
		code     apcore.Code
		status   string
		severity string
	}{
		{"approved", result("approved", ""), nil, "", "approved", "info"},
		{"rejected", result("rejected", ""), nil, apcore.CodeApprovalDenied, "rejected", "warn"},
		{"timeout", result("timeout", ""), nil, apcore.CodeApprovalTimeout, "timeout", "warn"},
		{"pending", result("pending", "id-1"), nil, apcore.CodeApprovalPending, "pending", "info"},
		{"nothing", nil, nil, apcore.CodeApprovalDenied, "rejected", "warn"},
		{"empty status", result("", ""), nil, apcore.CodeApprovalDenied, "rejected", "warn"},
		{"capital", result("Approved", ""), nil, apcore.CodeApprovalDenied, "rejected", "warn"},
		{"verb", result("approve", ""), nil, apcore.CodeApprovalDenied, "rejected", "warn"},
		{"space", result("approved ", ""), nil, apcore.CodeApprovalDenied, "rejected", "warn"},
		{"pending without an id", result("pending", ""), nil, apcore.CodeApprovalPending, "pending", "info"},
		{"approved and an error", result("approved", ""), errors.New("disk full"), apcore.CodeModuleExecuteError, "", ""},
		{"error", nil, apcore.NewError("DESK_DOWN", "down"), "DESK_DOWN", "", ""},
	}
	for _, test := range tests {
		for entry, inputs := range map[string]obj{"request": nil, "check": {apcore.ApprovalTokenKey: "id-0"}} {
			t.Run(test.name+"/"+entry, func(t *testing.T) {
				var events []apcore.Event
				h := newHost(t, apcore.ExecutorOptions{
					ApprovalHandler: &answering{result: test.result, err: test.err},
					OnEvent:         func(e apcore.Event) { events = append(events, e) },
				}).module("m", nil, gated)
				_, err := h.call("m", inputs, nil)
				h.wants(err, test.code, map[bool]int{true: 1}[test.code == ""])
				if details := apcore.AsError(err); details != nil && test.code == apcore.CodeApprovalPending {
					id, there := details.Details["approval_id"]
					if !there || (id == nil) != (test.name != "pending") {
						t.Errorf("details %v: approval_id stands there, null if there is none", details.Details)
					}
				}
				if test.status == "" {
					if len(events) != 0 {
						t.Errorf("an error is no decision, but there are events %v", events)
					}
					return
				}
				if len(events) != 1 || events[0].Type != apcore.EventApprovalDecision || events[0].Data["status"] != test.status || events[0].Severity != test.severity || events[0].Data["module_id"] != "m" {
					t.Errorf("events %+v, want one %s of severity %s", events, test.status, test.severity)
				}
				if id, ok := apcore.PendingApproval(err); ok != (test.name == "pending") || ok && id != "id-1" {
					t.Errorf("PendingApproval: %q %t", id, ok)
				}
			})
		}
	}
}

type neverAsked struct{ answering }

// TestNoHandler is scenario 29: without a handler the documented choice applies,
// and a typed nil is no handler.
func TestNoHandler(t *testing.T) {
	handlers := map[string]apcore.ApprovalHandler{"none": nil, "typed nil": (*neverAsked)(nil), "nil callback": apcore.ApprovalCallback(nil)}
	for name, handler := range handlers {
		t.Run(name, func(t *testing.T) {
			var warnings ledger
			h := newHost(t, apcore.ExecutorOptions{ApprovalHandler: handler, Logger: logTo(&warnings)}).module("m", nil, gated)
			for range 2 {
				if _, err := h.call("m", obj{apcore.ApprovalTokenKey: "x"}, nil); err != nil {
					t.Fatal(err)
				}
			}
			if h.HasApprovalHandler() || h.effects.count() != 2 || warnings.count() != 1 {
				t.Errorf("handler %t, effects %v, warnings %v", h.HasApprovalHandler(), h.effects.all(), warnings.all())
			}
			var events []apcore.Event
			h = newHost(t, apcore.ExecutorOptions{
				ApprovalHandler: handler, Policy: &apcore.ExecutionPolicy{Strict: true}, OnEvent: func(e apcore.Event) { events = append(events, e) },
			}).module("m", nil, gated).module("free", nil)
			_, err := h.call("m", nil, nil)
			h.wants(err, apcore.CodeApprovalDenied, 0)
			if len(events) != 1 || events[0].Data["status"] != "rejected" {
				t.Errorf("events %v", events)
			}
			_, err = h.call("free", nil, nil)
			h.wants(err, "", 1)
		})
	}
}

// desk is a handler that remembers: pending first, then what was decided.
type desk struct {
	asked    ledger
	approved map[string]bool
}

func (d *desk) RequestApproval(_ context.Context, request *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
	d.asked.add("request")
	id, err := apcore.ContentHash(request.Arguments)
	return &apcore.ApprovalResult{Status: apcore.ApprovalPending, ApprovalID: id}, err
}

func (d *desk) CheckApproval(_ context.Context, id string) (*apcore.ApprovalResult, error) {
	d.asked.add("check")
	if d.approved[id] {
		return &apcore.ApprovalResult{Status: apcore.ApprovalApproved}, nil
	}
	return &apcore.ApprovalResult{Status: apcore.ApprovalPending, ApprovalID: id}, nil
}

// TestResume is scenario 31 and the last part of 60: with whatever context the
// caller resumes, the module runs once and nobody is asked again.
func TestResume(t *testing.T) {
	contexts := map[string]func(first *apcore.Context, outcome *apcore.Outcome) *apcore.Context{
		"none":  func(*apcore.Context, *apcore.Outcome) *apcore.Context { return nil },
		"same":  func(c *apcore.Context, _ *apcore.Outcome) *apcore.Context { return c },
		"child": func(c *apcore.Context, _ *apcore.Outcome) *apcore.Context { return c.Child("agent.loop") },
		"fresh": func(c *apcore.Context, _ *apcore.Outcome) *apcore.Context {
			return apcore.NewContext(apcore.ContextOptions{Identity: c.Identity()})
		},
		"deserialised":        func(c *apcore.Context, _ *apcore.Outcome) *apcore.Context { return thaw(t, c) },
		"of the pending call": func(_ *apcore.Context, o *apcore.Outcome) *apcore.Context { return o.Context },
		"of the pending call, deserialised": func(_ *apcore.Context, o *apcore.Outcome) *apcore.Context {
			return thaw(t, o.Context)
		},
	}
	for name, derive := range contexts {
		t.Run(name, func(t *testing.T) {
			d := &desk{approved: map[string]bool{}}
			h := newHost(t, apcore.ExecutorOptions{ApprovalHandler: d}).module("m", nil, gated)
			first := apcore.NewContext(apcore.ContextOptions{Identity: apcore.NewIdentity("u", "", nil, nil), GlobalDeadline: time.Now().Add(time.Hour)})
			inputs := obj{"amount": 100, "to": obj{"account": "1"}}
			outcome, err := h.call("m", inputs, first)
			h.wants(err, apcore.CodeApprovalPending, 0)
			id, ok := apcore.PendingApproval(err)
			if !ok {
				t.Fatalf("no approval id in %v", err)
			}
			inputs[apcore.ApprovalTokenKey] = id
			_, err = h.call("m", inputs, first)
			h.wants(err, apcore.CodeApprovalPending, 0)
			if again, _ := apcore.PendingApproval(err); again != id {
				t.Errorf("another id %q, before %q", again, id)
			}
			d.approved[id] = true
			_, err = h.call("m", inputs, derive(first, outcome))
			h.wants(err, "", 1)
			if diff := cmp.Diff([]string{"request", "check", "check"}, d.asked.all()); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(obj{"amount": 100, "to": obj{"account": "1"}, apcore.ApprovalTokenKey: id}, inputs); diff != "" {
				t.Errorf("inputs (-want +got):\n%s", diff)
			}
		})
	}
}

func thaw(t *testing.T, c *apcore.Context) *apcore.Context {
	t.Helper()
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	thawed := &apcore.Context{}
	if err := json.Unmarshal(data, thawed); err != nil {
		t.Fatal(err)
	}
	return thawed
}
