package apcore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// deafHandler takes a minute, whatever its context says.
type deafHandler struct{ asked *ledger }

func (d deafHandler) RequestApproval(_ context.Context, request *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
	d.asked.add("asked")
	time.Sleep(time.Minute)
	request.Arguments["late"] = true
	return &apcore.ApprovalResult{Status: apcore.ApprovalApproved}, nil
}

func (d deafHandler) CheckApproval(context.Context, string) (*apcore.ApprovalResult, error) {
	return &apcore.ApprovalResult{Status: apcore.ApprovalApproved}, nil
}

// The timeout of a step ends the call at once with MODULE_TIMEOUT, whatever the
// step does meanwhile, and what it does later changes nothing (D-142).
func TestStepTimeoutEndsAtOnce(t *testing.T) {
	slow := func(_ context.Context, p *apcore.Pipeline) (apcore.StepResult, error) {
		time.Sleep(time.Minute)
		p.Inputs()["late"] = true
		p.SetOutput(obj{"late": true})
		return apcore.StepResult{}, nil
	}
	for name, test := range map[string]struct {
		step    string
		prepare func(s *apcore.Strategy) error
		effects int
	}{
		"module": {"execute", nil, 1},
		"gate":   {"approval_gate", nil, 0},
		"rules":  {"acl_check", nil, 0},
		"custom": {"slow", func(s *apcore.Strategy) error {
			return s.InsertBefore("execute", apcore.Step{Name: "slow", Run: slow})
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := strategy(t, "standard")
				if test.prepare != nil {
					must(t, test.prepare(s))
				}
				must(t, s.Configure(test.step, apcore.StepConfig{Timeout: new(time.Second)}))
				var told *apcore.Error
				opts := apcore.ExecutorOptions{Strategy: s, Middleware: []apcore.Middleware{&hook{
					onError: func(_ *apcore.MiddlewareCall, err *apcore.Error) (*apcore.Recovery, error) {
						told = err
						return nil, nil
					},
				}}}
				if name == "gate" {
					opts.ApprovalHandler = deafHandler{&ledger{}}
				} else {
					opts.ApprovalHandler = apcore.AutoApprove{}
				}
				if name == "rules" {
					opts.AccessControl = accessFunc(func(context.Context, apcore.AccessRequest) apcore.AccessDecision {
						time.Sleep(time.Minute)
						return apcore.AccessDecision{Allowed: true}
					})
				}
				h := newHost(t, opts).module("m", func(context.Context, obj, *apcore.Context) (obj, error) {
					time.Sleep(time.Minute)
					return obj{}, nil
				}, gated)
				begin := time.Now()
				outcome, err := h.call("m", obj{"n": 1}, nil)
				h.wants(err, apcore.CodeModuleTimeout, test.effects)
				if took := time.Since(begin); took != time.Second {
					t.Errorf("the call took %v", took)
				}
				details := apcore.AsError(err).Details
				if details["step"] != test.step || details["timeout_ms"] != int64(1000) || details["module_id"] != "m" {
					t.Errorf("details %v", details)
				}
				before := test.step == "acl_check" || test.step == "approval_gate"
				if (told == nil) != before || outcome.Started != (test.effects > 0) {
					t.Errorf("error hooks were told %v, started %t", told, outcome.Started)
				}
				time.Sleep(2 * time.Minute) // the late ones end
			})
		})
	}
}

// A step that is in time keeps what it did.
func TestStepInTimeCounts(t *testing.T) {
	s := strategy(t, "standard")
	must(t, s.InsertBefore("input_validation", apcore.Step{Name: "adds", Timeout: time.Hour, Run: func(_ context.Context, p *apcore.Pipeline) (apcore.StepResult, error) {
		p.SetInputs(obj{"n": p.Inputs()["n"], "more": true})
		return apcore.StepResult{}, nil
	}}))
	must(t, s.Configure("approval_gate", apcore.StepConfig{Timeout: new(time.Hour)}))
	var saw obj
	h := newHost(t, apcore.ExecutorOptions{Strategy: s, ApprovalHandler: apcore.AutoApprove{}, RewriteAfterApproval: true}).module("m", func(_ context.Context, in obj, _ *apcore.Context) (obj, error) {
		saw = in
		return obj{}, nil
	}, gated)
	_, err := h.call("m", obj{"n": 1, apcore.ApprovalTokenKey: "id"}, nil)
	h.wants(err, "", 1)
	if diff := cmp.Diff(obj{"n": 1, "more": true}, saw); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}
}

// A caller that gives up while a step with a timeout waits is cancelled, not late.
func TestStepTimeoutIsNotItsCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := strategy(t, "standard")
		must(t, s.Configure("approval_gate", apcore.StepConfig{Timeout: new(time.Minute)}))
		h := newHost(t, apcore.ExecutorOptions{Strategy: s, ApprovalHandler: deafHandler{&ledger{}}}).module("m", nil, gated)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		begin := time.Now()
		_, err := h.Do(ctx, apcore.Request{ModuleID: "m"})
		h.wants(err, apcore.CodeExecutionCancelled, 0)
		if took := time.Since(begin); took != time.Second {
			t.Errorf("the call took %v", took)
		}
		time.Sleep(2 * time.Minute)
	})
}

// What is pure by declaration still never runs in a validation.
func TestValidateNeverRunsTheModule(t *testing.T) {
	s, pure := strategy(t, "standard"), new(true)
	for _, step := range []string{"execute", "middleware_before", "middleware_after"} {
		must(t, s.Configure(step, apcore.StepConfig{Pure: pure}))
	}
	hooks := &ledger{}
	h := newHost(t, apcore.ExecutorOptions{Strategy: s, Middleware: []apcore.Middleware{traced(hooks, "m", 1)}}).module("m", nil)
	if result := h.Validate(t.Context(), "m", nil, nil); !result.Valid {
		t.Errorf("%v", outline(result))
	}
	h.wants(nil, "", 0)
	if hooks.count() > 0 {
		t.Errorf("hooks ran: %v", hooks.all())
	}
}

// A validation leaves no trace in the context it was given.
func TestValidateBindsNobody(t *testing.T) {
	a, b := newHost(t, apcore.ExecutorOptions{}).module("m", nil), newHost(t, apcore.ExecutorOptions{}).module("m", nil)
	c := apcore.NewContext(apcore.ContextOptions{Data: obj{"x": 1}})
	if result := a.Validate(t.Context(), "m", nil, c); !result.Valid || c.Executor() != nil || c.Data().Len() != 1 {
		t.Errorf("%v, executor %v, data %v", outline(result), c.Executor(), c.Data().Keys())
	}
	_, err := b.call("m", nil, c)
	b.wants(err, "", 1)
}
