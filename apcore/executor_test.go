package apcore_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

func TestStepNames(t *testing.T) {
	want := []string{
		"context_creation", "call_chain_guard", "module_lookup", "acl_check", "approval_gate", "middleware_before",
		"input_validation", "execute", "output_validation", "middleware_after", "return_result",
	}
	got := apcore.StepNames()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got[0] = "changed"
	if apcore.StepNames()[0] != want[0] {
		t.Error("a caller can rename the steps")
	}
}

var strict = obj{"type": "object", "properties": obj{"n": obj{"type": "integer"}}, "additionalProperties": false}

func denyAll(context.Context, apcore.AccessRequest) apcore.AccessDecision {
	return apcore.AccessDecision{}
}

// TestStepRefusals has one case for each way in which a step refuses. The module
// "m" counts its runs; it is gated and strict.
func TestStepRefusals(t *testing.T) {
	cancelled := apcore.NewCancelToken()
	cancelled.Cancel()
	other := newHost(t, apcore.ExecutorOptions{}).module("other", nil)
	bound := apcore.NewContext(apcore.ContextOptions{})
	if _, err := other.call("other", nil, bound); err != nil {
		t.Fatal(err)
	}
	chained := func(ids ...string) *apcore.Context {
		c := apcore.NewContext(apcore.ContextOptions{})
		for _, id := range ids {
			c = c.Child(id)
		}
		return c
	}
	tests := []struct {
		name    string
		opts    apcore.ExecutorOptions
		id      string
		inputs  obj
		context *apcore.Context
		disable bool
		code    apcore.Code
		// started is whether the module ran.
		started bool
	}{
		{name: "bad id", id: "Not An Id", code: apcore.CodeInvalidModuleID},
		{name: "inputs that are no JSON", inputs: obj{"n": make(chan int)}, code: apcore.CodeInvalidInput},
		{name: "foreign context", context: bound, code: apcore.CodeContextBinding},
		{name: "cancelled", context: apcore.NewContext(apcore.ContextOptions{CancelToken: cancelled}), code: apcore.CodeExecutionCancelled},
		{name: "too deep", opts: apcore.ExecutorOptions{MaxCallDepth: 2}, context: chained("a", "b"), code: apcore.CodeCallDepthExceeded},
		{name: "circular", context: chained("m", "a"), code: apcore.CodeCircularCall},
		{name: "too often", context: chained("m", "m", "m"), code: apcore.CodeCallFrequencyExceeded},
		{name: "guard before lookup", opts: apcore.ExecutorOptions{MaxCallDepth: 1}, id: "no.such", context: chained("a"), code: apcore.CodeCallDepthExceeded},
		{name: "unknown module", id: "no.such", code: apcore.CodeModuleNotFound},
		{name: "disabled", disable: true, code: apcore.CodeModuleDisabled},
		{name: "access before approval", opts: apcore.ExecutorOptions{AccessControl: accessFunc(denyAll), ApprovalHandler: apcore.AlwaysDeny{}}, code: apcore.CodeACLDenied},
		{name: "approval before validation", opts: apcore.ExecutorOptions{ApprovalHandler: apcore.AlwaysDeny{}}, inputs: obj{"x": 1}, code: apcore.CodeApprovalDenied},
		{name: "inputs against the schema", inputs: obj{"n": "1"}, code: apcore.CodeSchemaValidation},
		{name: "output against the schema", inputs: obj{"n": 1}, code: apcore.CodeSchemaValidation, started: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHost(t, test.opts)
			h.module("m", nil, gated, inputSchema(strict), outputSchema(obj{"required": []any{"absent"}}))
			if test.disable {
				h.Disable("m", "maintenance")
			}
			if test.id == "" {
				test.id = "m"
			}
			outcome, err := h.call(test.id, test.inputs, test.context)
			h.wants(err, test.code, map[bool]int{true: 1}[test.started])
			if outcome == nil || outcome.Started != test.started || outcome.Output != nil {
				t.Errorf("outcome %+v, want started %t and no output", outcome, test.started)
			}
		})
	}
}

func TestDisableIsPerExecutor(t *testing.T) {
	h := newHost(t, apcore.ExecutorOptions{}).module("m", nil)
	twin, err := apcore.NewExecutor(h.registry, apcore.ExecutorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h.Disable("m", "broken")
	_, err = h.call("m", nil, nil)
	h.wants(err, apcore.CodeModuleDisabled, 0)
	if _, err = twin.Call(t.Context(), "m", nil, nil); err != nil {
		t.Errorf("the other executor: %v", err)
	}
	h.Enable("m")
	_, err = h.call("m", nil, nil)
	h.wants(err, "", 2)
}

// TestModuleSeesContext is scenario 51: a caller without an id loses nothing.
func TestModuleSeesContext(t *testing.T) {
	type services struct{ name string }
	token := apcore.NewCancelToken()
	deadline := time.Now().Add(time.Hour).Round(0)
	identity := apcore.NewIdentity("u-1", "", []string{"clerk"}, nil)
	root := apcore.NewContext(apcore.ContextOptions{
		Identity: identity, CancelToken: token, Data: obj{"k": "v"}, Services: &services{"db"}, GlobalDeadline: deadline,
	})
	var seen *apcore.Context
	h := newHost(t, apcore.ExecutorOptions{}).module("m", func(ctx context.Context, _ obj, c *apcore.Context) (obj, error) {
		seen = c
		if found, ok := apcore.FromContext(ctx); !ok || found != c {
			t.Errorf("FromContext gives %p, the argument is %p", found, c)
		}
		token.Cancel()
		<-ctx.Done()
		if !c.CancelToken().Cancelled() {
			t.Error("the caller's token does not reach the module's")
		}
		return nil, ctx.Err()
	})
	_, err := h.call("m", nil, root)
	h.wants(err, apcore.CodeExecutionCancelled, 1)
	type view struct {
		Trace, Caller, Actor, Service, Value string
		Chain                                []string
		Deadline                             time.Time
	}
	got := view{Trace: seen.TraceID(), Caller: seen.CallerID(), Actor: seen.Identity().ID(), Chain: seen.CallChain()}
	got.Deadline, _ = seen.GlobalDeadline()
	if s, ok := seen.Services().(*services); ok {
		got.Service = s.name
	}
	if v, ok := seen.Data().Get("k"); ok {
		got.Value, _ = v.(string)
	}
	want := view{Trace: root.TraceID(), Actor: "u-1", Service: "db", Value: "v", Chain: []string{"m"}, Deadline: deadline}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if seen.Executor() != h.Executor {
		t.Error("the module's context is not bound to the executor")
	}
}

// TestCancelledBeforeTheCall is scenario 51: nobody is asked and nothing runs.
// It repeats because linking tokens must not depend on another goroutine.
func TestCancelledBeforeTheCall(t *testing.T) {
	var asked ledger
	h := newHost(t, apcore.ExecutorOptions{
		AccessControl: accessFunc(func(context.Context, apcore.AccessRequest) apcore.AccessDecision {
			asked.add("access")
			return apcore.AccessDecision{Allowed: true}
		}),
		ApprovalHandler: apcore.ApprovalCallback(func(context.Context, *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
			asked.add("approval")
			return &apcore.ApprovalResult{Status: apcore.ApprovalApproved}, nil
		}),
		Middleware: []apcore.Middleware{&hook{before: func(*apcore.MiddlewareCall) (obj, error) {
			asked.add("before")
			return nil, nil
		}}},
	}).module("m", nil, gated)
	token := apcore.NewCancelToken()
	token.Cancel()
	for range 200 {
		_, err := h.call("m", nil, apcore.NewContext(apcore.ContextOptions{CancelToken: token}))
		h.wants(err, apcore.CodeExecutionCancelled, 0)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.Call(ctx, "m", nil, nil)
	h.wants(err, apcore.CodeExecutionCancelled, 0)
	if asked.count() != 0 {
		t.Errorf("asked %v", asked.all())
	}
}

// TestCancelledDuringApproval stops the call although the approver agreed.
func TestCancelledDuringApproval(t *testing.T) {
	for range 200 {
		token := apcore.NewCancelToken()
		h := newHost(t, apcore.ExecutorOptions{
			ApprovalHandler: apcore.ApprovalCallback(func(context.Context, *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
				token.Cancel()
				return &apcore.ApprovalResult{Status: apcore.ApprovalApproved}, nil
			}),
		}).module("m", nil, gated)
		outcome, err := h.call("m", nil, apcore.NewContext(apcore.ContextOptions{CancelToken: token}))
		h.wants(err, apcore.CodeExecutionCancelled, 0)
		if outcome.Started {
			t.Fatal("the outcome says it started")
		}
	}
}

func TestOutcomeOfSuccess(t *testing.T) {
	h := newHost(t, apcore.ExecutorOptions{Services: "services"}).module("m", func(_ context.Context, _ obj, c *apcore.Context) (obj, error) {
		return obj{"services": c.Services()}, nil
	}, gated)
	outcome, err := h.call("m", obj{"password": "hunter2"}, nil)
	h.wants(err, "", 1)
	if diff := cmp.Diff(obj{"services": "services"}, outcome.Output); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !outcome.Started || outcome.Module.ID != "m" || outcome.Module.Version != "1.0.0" || !outcome.Annotations.RequiresApproval || outcome.Description != "A test module" {
		t.Errorf("outcome %+v", outcome)
	}
	if got := outcome.Context.RedactedInputs(); got["password"] != "***REDACTED***" {
		t.Errorf("redacted inputs %v", got)
	}
}

func TestExecutorOptions(t *testing.T) {
	tests := []struct {
		name string
		opts apcore.ExecutorOptions
		code apcore.Code
	}{
		{"zero", apcore.ExecutorOptions{}, ""},
		{"no timers", apcore.ExecutorOptions{DefaultTimeout: apcore.NoTimeout, GlobalTimeout: apcore.NoTimeout}, ""},
		{"negative timer", apcore.ExecutorOptions{DefaultTimeout: -2}, apcore.CodeInvalidInput},
		{"negative deadline", apcore.ExecutorOptions{GlobalTimeout: -time.Second}, apcore.CodeInvalidInput},
		{"depth", apcore.ExecutorOptions{MaxCallDepth: 1001}, apcore.CodeInvalidInput},
		{"repeat", apcore.ExecutorOptions{MaxModuleRepeat: 101}, apcore.CodeInvalidInput},
		{"policy without pattern", apcore.ExecutorOptions{Policy: &apcore.ExecutionPolicy{Rules: []apcore.PolicyRule{{}}}}, apcore.CodeInvalidInput},
		{"redaction", apcore.ExecutorOptions{Redaction: apcore.RedactionConfig{Patterns: []string{"("}}}, apcore.CodeConfigInvalid},
		{"nil middleware", apcore.ExecutorOptions{Middleware: []apcore.Middleware{nil}}, apcore.CodeInvalidInput},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := apcore.NewExecutor(apcore.NewRegistry(apcore.RegistryOptions{}), test.opts)
			if got := apcore.CodeOf(err); got != test.code {
				t.Errorf("code %q, want %q", got, test.code)
			}
		})
	}
	if _, err := apcore.NewExecutor(nil, apcore.ExecutorOptions{}); apcore.CodeOf(err) != apcore.CodeInvalidInput {
		t.Errorf("no registry: %v", err)
	}
}
