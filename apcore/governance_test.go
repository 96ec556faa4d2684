package apcore_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

func TestGovernanceState(t *testing.T) {
	plain, _ := pipelined(t, apcore.ExecutorOptions{}, apcore.Spec{})
	if got := plain.GovernanceState(); got.ACLConfigured || got.ApprovalHandlerConfigured || !got.BuiltinACLGateWired || !got.BuiltinApprovalGateWired || got.UnprotectedControlSurface {
		t.Errorf("plain: %+v", got)
	}
	s := strategy(t, "standard")
	must(t, s.Replace("approval_gate", apcore.Step{Run: mark("x", &[]string{}).Run}))
	hollow, _ := pipelined(t, apcore.ExecutorOptions{Strategy: s, AccessControl: apcore.AllowAll{}, ApprovalHandler: apcore.AutoApprove{}, Policy: &apcore.ExecutionPolicy{Strict: true}}, apcore.Spec{})
	if got := hollow.GovernanceState(); got.BuiltinApprovalGateWired || hollow.ApprovalGateWired() || !got.ACLConfigured || !got.ApprovalHandlerConfigured || !got.PolicyStrict {
		t.Errorf("a replaced gate counts as one: %+v", got)
	}
}

// governance_state and gate_provider_binding: the last field follows from the
// others, for every combination of them (§6.6.5).
func TestUnprotectedControlSurface(t *testing.T) {
	for bits := range 1 << 6 {
		on := func(bit int) bool { return bits&(1<<bit) != 0 }
		control, acl, aclGate, handler, approvalGate, asks := on(0), on(1), on(2), on(3), on(4), on(5)
		for _, strict := range []bool{false, true} {
			s := strategy(t, "standard")
			if !aclGate {
				must(t, s.Replace("acl_check", apcore.Step{Run: mark("x", &[]string{}).Run}))
			}
			if !approvalGate {
				must(t, s.Remove("approval_gate"))
			}
			opts := apcore.ExecutorOptions{Strategy: s, Policy: &apcore.ExecutionPolicy{Strict: strict}}
			if acl {
				opts.AccessControl = apcore.AllowAll{}
			}
			if handler {
				opts.ApprovalHandler = apcore.AlwaysDeny{}
			}
			h := newHost(t, opts)
			must(t, h.registry.RegisterInternal("system.health.summary", &testModule{}, apcore.RegisterOptions{}))
			if control {
				module := &testModule{annotations: apcore.Annotations{RequiresApproval: asks}}
				must(t, h.registry.RegisterInternal("system.control.toggle_feature", module, apcore.RegisterOptions{}))
			}
			want := apcore.GovernanceState{
				ControlModulesRegistered: control, ReadModulesRegistered: true, ACLConfigured: acl, BuiltinACLGateWired: aclGate,
				ApprovalHandlerConfigured: handler, BuiltinApprovalGateWired: approvalGate, PolicyStrict: strict,
				AllControlModulesRequireApproval: !control || asks,
			}
			byACL, byApproval := acl && aclGate, approvalGate && (!control || asks) && (handler || strict)
			want.UnprotectedControlSurface = control && !byACL && !byApproval
			if diff := cmp.Diff(want, h.GovernanceState()); diff != "" {
				t.Errorf("%06b strict %t (-want +got):\n%s", bits, strict, diff)
			}
		}
	}
}

// gate_provider_binding: a step in the place of acl_check can demand approval,
// knows the arguments by name only, and the standard's gate heeds it.
func TestOwnAccessStepDemandsApproval(t *testing.T) {
	s, seen := strategy(t, "standard"), ""
	must(t, s.Replace("acl_check", apcore.Step{Run: func(_ context.Context, p *apcore.Pipeline) (apcore.StepResult, error) {
		seen = strings.Join(append(p.ArgumentKeys(), p.StrategyName(), p.VersionHint()), " ")
		if slices.Contains(p.ArgumentKeys(), "force") {
			p.DemandApproval()
		}
		return apcore.StepResult{}, nil
	}}))
	handler := approves()
	h := newHost(t, apcore.ExecutorOptions{Strategy: s, ApprovalHandler: handler}).module("m", nil)
	_, err := h.Do(t.Context(), apcore.Request{ModuleID: "m", Inputs: obj{"force": true, "a": 1, apcore.ApprovalTokenKey: "id"}, VersionHint: ">=1"})
	h.wants(err, "", 1)
	if seen != "a force standard >=1" || handler.asked.count() != 1 {
		t.Errorf("saw %q, asked %v", seen, handler.asked.all())
	}
	_, err = h.call("m", obj{"a": 1}, nil)
	h.wants(err, "", 2)
	if handler.asked.count() != 1 {
		t.Errorf("asked %v", handler.asked.all())
	}
	if result := h.Validate(t.Context(), "m", obj{"force": 1}, nil); result.RequiresApproval {
		t.Errorf("a step that is not pure takes no part in a validation: %v", outline(result))
	}
}

// Strategies describe themselves; a name nobody registered is STRATEGY_NOT_FOUND.
func TestDescribeStrategies(t *testing.T) {
	h := newHost(t, apcore.ExecutorOptions{})
	own := strategy(t, "minimal").Named("bare").Described("for tests")
	must(t, h.RegisterStrategy(own))
	got, err := h.DescribeStrategy("bare")
	must(t, err)
	want := apcore.StrategyInfo{Name: "bare", StepCount: 4, StepNames: []string{"context_creation", "module_lookup", "execute", "return_result"}, Description: "for tests"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := h.DescribeStrategy(""); err != nil || got.Name != "standard" || got.Description == "" || !cmp.Equal(got, h.DescribePipeline()) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := h.DescribeStrategy("nobody"); apcore.CodeOf(err) != apcore.CodeStrategyNotFound {
		t.Errorf("%v", err)
	}
	copied := h.CurrentStrategy()
	must(t, copied.Remove("acl_check"))
	if len(h.DescribePipeline().StepNames) != 11 {
		t.Error("the copy is no copy")
	}
}

// What the eleven steps provide can be required, and a place keeps its tokens when
// its step is replaced.
func TestStepDependencies(t *testing.T) {
	run := mark("x", &[]string{}).Run
	for anchor, token := range map[string]string{
		"context_creation": "context", "module_lookup": "module", "acl_check": "access_decision", "approval_gate": "approval",
		"input_validation": "validated_inputs", "execute": "output", "output_validation": "validated_output",
	} {
		needs := apcore.Step{Name: "own", Requires: []string{token}, Run: run}
		must(t, strategy(t, "standard").InsertAfter(anchor, needs))
		if err := strategy(t, "standard").InsertBefore(anchor, needs); apcore.CodeOf(err) != apcore.CodePipelineDependency {
			t.Errorf("%s before %s: %v", token, anchor, err)
		}
	}
	s := strategy(t, "standard")
	must(t, s.Replace("execute", apcore.Step{Run: run}))
	must(t, s.InsertAfter("execute", apcore.Step{Name: "own", Requires: []string{"output"}, Run: run}))
	if err := s.Replace("acl_check", apcore.Step{Requires: []string{"output"}, Run: run}); apcore.CodeOf(err) != apcore.CodePipelineDependency {
		t.Errorf("a replacement that requires what comes later: %v", err)
	}
	must(t, s.Remove("input_validation")) // nobody looks for what it provided
}

// Functions are middleware of priority 100.
func TestUseFunctions(t *testing.T) {
	h, order := newHost(t, apcore.ExecutorOptions{Middleware: []apcore.Middleware{&hook{priority: new(200)}}}), &ledger{}
	h.module("m", func(_ context.Context, in obj, _ *apcore.Context) (obj, error) { return obj{"n": in["n"]}, nil })
	before, err := h.UseBefore(func(_ context.Context, call *apcore.MiddlewareCall) (obj, error) {
		order.add("before")
		return obj{"n": 2, "was": call.Inputs["n"]}, nil
	})
	must(t, err)
	_, err = h.UseAfter(func(_ context.Context, _ *apcore.MiddlewareCall, output obj) (obj, error) {
		order.add("after")
		return obj{"n": output["n"], "seen": true}, nil
	})
	must(t, err)
	outcome, err := h.call("m", obj{"n": 1}, nil)
	h.wants(err, "", 1)
	if diff := cmp.Diff(obj{"n": 2, "seen": true}, outcome.Output); diff != "" || !slices.Equal(order.all(), []string{"before", "after"}) {
		t.Errorf("order %v (-want +got):\n%s", order.all(), diff)
	}
	if !h.Remove(before) || h.Remove(before) {
		t.Error("the function cannot be taken out once")
	}
	for _, use := range []func() (apcore.Middleware, error){
		func() (apcore.Middleware, error) { return h.UseBefore(nil) }, func() (apcore.Middleware, error) { return h.UseAfter(nil) },
	} {
		if _, err := use(); apcore.CodeOf(err) != apcore.CodeInvalidInput {
			t.Errorf("nil: %v", err)
		}
	}
}

// A cancelled call is brought back neither by a step hook nor by IgnoreErrors, and
// a trace tells where decisions were made.
func TestCancellationIsFinal(t *testing.T) {
	token := apcore.NewCancelToken()
	var log []string
	s := strategy(t, "standard")
	must(t, s.AddStepMiddleware(hooks{name: "a", log: &log, rescue: true, onlyFor: "execute"}))
	must(t, s.Configure("execute", apcore.StepConfig{IgnoreErrors: new(true)}))
	must(t, s.InsertBefore("execute", apcore.Step{Name: "own", Run: func(context.Context, *apcore.Pipeline) (apcore.StepResult, error) {
		token.Cancel()
		return apcore.StepResult{Confidence: 0.5}, nil
	}}))
	h := newHost(t, apcore.ExecutorOptions{Strategy: s}).module("m", nil)
	output, trace, err := h.CallWithTrace(t.Context(), "m", nil, apcore.NewContext(apcore.ContextOptions{CancelToken: token}))
	h.wants(err, apcore.CodeExecutionCancelled, 0)
	if output != nil || !slices.Equal(log, []string{"a before execute", "a error execute"}) {
		t.Errorf("output %v, hooks %v", output, log)
	}
	for _, step := range trace.Steps {
		if step.DecisionPoint != (step.Name == "own") {
			t.Errorf("decision point at %s: %t", step.Name, step.DecisionPoint)
		}
	}
}
