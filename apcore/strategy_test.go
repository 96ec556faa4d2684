package apcore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pipelined hosts test.echo under a strategy.
func pipelined(t testing.TB, opts apcore.ExecutorOptions, spec apcore.Spec) (executor *apcore.Executor, ran *int) {
	t.Helper()
	ran = new(int)
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	spec.Description = "Echoes"
	must(t, apcore.Register(registry, "test.echo", func(_ context.Context, in map[string]any) (map[string]any, error) {
		*ran++
		return in, nil
	}, spec))
	opts.Logger = slog.New(slog.DiscardHandler)
	executor, err := apcore.NewExecutor(registry, opts)
	must(t, err)
	return executor, ran
}

func strategy(t testing.TB, preset string) *apcore.Strategy {
	t.Helper()
	s, err := apcore.NewStrategy(preset)
	must(t, err)
	return s
}

// mark is a step that notes that it ran.
func mark(name string, log *[]string) apcore.Step {
	return apcore.Step{Name: name, Removable: true, Replaceable: true, Run: func(_ context.Context, p *apcore.Pipeline) (apcore.StepResult, error) {
		*log = append(*log, name+" "+p.ModuleID())
		return apcore.StepResult{}, nil
	}}
}

func TestPresets(t *testing.T) {
	for preset, missing := range map[string][]string{
		"standard":    {},
		"internal":    {"acl_check", "approval_gate"},
		"testing":     {"acl_check", "approval_gate", "call_chain_guard"},
		"performance": {"middleware_before", "middleware_after"},
		"minimal":     {"call_chain_guard", "acl_check", "approval_gate", "middleware_before", "input_validation", "output_validation", "middleware_after"},
	} {
		want := slices.DeleteFunc(apcore.StepNames(), func(name string) bool { return slices.Contains(missing, name) })
		s := strategy(t, preset)
		if diff := cmp.Diff(want, s.StepNames()); diff != "" || s.Info().StepCount != len(want) {
			t.Errorf("%s (-want +got):\n%s", preset, diff)
		}
		executor, ran := pipelined(t, apcore.ExecutorOptions{Strategy: s}, apcore.Spec{})
		if out, err := executor.Call(t.Context(), "test.echo", map[string]any{"x": 1}, nil); err != nil || *ran != 1 || len(out) != 1 {
			t.Errorf("%s: %v, %v", preset, out, err)
		}
	}
	if _, err := apcore.NewStrategy("fast"); !errors.Is(err, apcore.CodeStrategyNotFound) {
		t.Errorf("unknown preset: %v", err)
	}
}

func TestStrategyRules(t *testing.T) {
	nothing := func(context.Context, *apcore.Pipeline) (apcore.StepResult, error) { return apcore.StepResult{}, nil }
	for name, test := range map[string]struct {
		edit func(*apcore.Strategy) error
		want apcore.Code
	}{
		"insert":            {func(s *apcore.Strategy) error { return s.InsertAfter("execute", apcore.Step{Name: "x", Run: nothing}) }, ""},
		"insert at nothing": {func(s *apcore.Strategy) error { return s.InsertAfter("none", apcore.Step{Name: "x", Run: nothing}) }, apcore.CodeStepNotFound},
		"insert twice": {func(s *apcore.Strategy) error {
			return s.InsertBefore("execute", apcore.Step{Name: "execute", Run: nothing})
		}, apcore.CodeStepNameDuplicate},
		"insert without run": {func(s *apcore.Strategy) error { return s.InsertBefore("execute", apcore.Step{Name: "x"}) }, apcore.CodeInvalidInput},
		"insert without provider": {func(s *apcore.Strategy) error {
			return s.InsertBefore("execute", apcore.Step{Name: "x", Run: nothing, Requires: []string{"quota"}})
		}, apcore.CodePipelineDependency},
		"remove":                 {func(s *apcore.Strategy) error { return s.Remove("acl_check") }, ""},
		"remove what must stay":  {func(s *apcore.Strategy) error { return s.Remove("execute") }, apcore.CodeStepNotRemovable},
		"remove nothing":         {func(s *apcore.Strategy) error { return s.Remove("none") }, apcore.CodeStepNotFound},
		"replace":                {func(s *apcore.Strategy) error { return s.Replace("execute", apcore.Step{Run: nothing}) }, ""},
		"replace what must stay": {func(s *apcore.Strategy) error { return s.Replace("middleware_before", apcore.Step{Run: nothing}) }, apcore.CodeStepNotReplaceable},
		"gate that ignores errors": {func(s *apcore.Strategy) error {
			return s.Configure("acl_check", apcore.StepConfig{IgnoreErrors: new(true)})
		}, apcore.CodePipelineConfiguration},
		"gate for some modules": {func(s *apcore.Strategy) error {
			return s.Configure("approval_gate", apcore.StepConfig{MatchModules: []string{"*"}})
		}, apcore.CodePipelineConfiguration},
		"pure approval gate": {func(s *apcore.Strategy) error {
			return s.Configure("approval_gate", apcore.StepConfig{Pure: new(true)})
		}, apcore.CodePipelineConfiguration},
		"gate replaced by one that ignores errors": {func(s *apcore.Strategy) error {
			return s.Replace("acl_check", apcore.Step{Run: nothing, IgnoreErrors: true})
		}, apcore.CodePipelineConfiguration},
		"configure nothing": {func(s *apcore.Strategy) error { return s.Configure("none", apcore.StepConfig{}) }, apcore.CodePipelineStepNotFound},
	} {
		if err := test.edit(strategy(t, "standard")); apcore.CodeOf(err) != test.want {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// An executor has its own copy: what is edited later is for later executors.
func TestExecutorKeepsItsStrategy(t *testing.T) {
	var log []string
	s := strategy(t, "standard")
	executor, _ := pipelined(t, apcore.ExecutorOptions{Strategy: s}, apcore.Spec{})
	must(t, s.InsertBefore("execute", mark("late", &log)))
	_, err := executor.Call(t.Context(), "test.echo", nil, nil)
	must(t, err)
	if len(log) != 0 || slices.Contains(executor.DescribePipeline().StepNames, "late") {
		t.Errorf("the edited step ran: %q", log)
	}
}

func TestStepActions(t *testing.T) {
	step := func(result apcore.StepResult, err error) apcore.Step {
		return apcore.Step{Name: "own", Run: func(context.Context, *apcore.Pipeline) (apcore.StepResult, error) { return result, err }}
	}
	for name, test := range map[string]struct {
		step apcore.Step
		want apcore.Code
		ran  int
	}{
		"continue":        {step(apcore.StepResult{}, nil), "", 1},
		"skip validation": {step(apcore.StepResult{Action: apcore.StepSkipTo, SkipTo: "execute"}, nil), "", 1},
		"skip the module": {step(apcore.StepResult{Action: apcore.StepSkipTo, SkipTo: "return_result"}, nil), "", 0},
		"skip backwards":  {step(apcore.StepResult{Action: apcore.StepSkipTo, SkipTo: "acl_check"}, nil), apcore.CodeStepNotFound, 0},
		"skip to nothing": {step(apcore.StepResult{Action: apcore.StepSkipTo, SkipTo: "none"}, nil), apcore.CodeStepNotFound, 0},
		"abort":           {step(apcore.StepResult{Action: apcore.StepAbort, Explanation: "enough"}, nil), apcore.CodePipelineAbort, 0},
		"fail":            {step(apcore.StepResult{}, apcore.NewError("ACME_X", "no")), "ACME_X", 0},
		"fail, ignored":   {func() apcore.Step { s := step(apcore.StepResult{}, errors.New("no")); s.IgnoreErrors = true; return s }(), "", 1},
		"for other modules": {func() apcore.Step {
			s := step(apcore.StepResult{}, errors.New("no"))
			s.MatchModules = []string{"other.*"}
			return s
		}(), "", 1},
		"too slow": {apcore.Step{Name: "own", Timeout: time.Millisecond, Run: func(ctx context.Context, _ *apcore.Pipeline) (apcore.StepResult, error) {
			<-ctx.Done()
			return apcore.StepResult{}, nil
		}}, apcore.CodeModuleTimeout, 0},
		"panic": {apcore.Step{Name: "own", Run: func(context.Context, *apcore.Pipeline) (apcore.StepResult, error) { panic("x") }}, apcore.CodeInternal, 0},
	} {
		s := strategy(t, "standard")
		must(t, s.InsertBefore("input_validation", test.step))
		executor, ran := pipelined(t, apcore.ExecutorOptions{Strategy: s}, apcore.Spec{})
		if _, err := executor.Call(t.Context(), "test.echo", nil, nil); apcore.CodeOf(err) != test.want || *ran != test.ran {
			t.Errorf("%s: %v after %d runs; want %q after %d", name, err, *ran, test.want, test.ran)
		}
	}
}

// hooks notes what happens around steps.
type hooks struct {
	name    string
	log     *[]string
	rescue  bool
	fail    error
	onlyFor string
}

func (h hooks) note(what, step string) {
	if h.onlyFor == "" || h.onlyFor == step {
		*h.log = append(*h.log, h.name+" "+what+" "+step)
	}
}

func (h hooks) BeforeStep(_ context.Context, step string, _ *apcore.Pipeline) error {
	h.note("before", step)
	if step == h.onlyFor {
		return h.fail
	}
	return nil
}

func (h hooks) AfterStep(_ context.Context, step string, _ *apcore.Pipeline) { h.note("after", step) }

func (h hooks) OnStepError(_ context.Context, step string, _ *apcore.Pipeline, _ error) (map[string]any, bool) {
	h.note("error", step)
	return map[string]any{"rescued": true}, h.rescue
}

func TestStepMiddleware(t *testing.T) {
	failing := apcore.Step{Name: "own", Run: func(context.Context, *apcore.Pipeline) (apcore.StepResult, error) {
		return apcore.StepResult{}, errors.New("no")
	}}
	for name, test := range map[string]struct {
		a, b hooks
		want string
		code apcore.Code
	}{
		"nobody rescues":     {hooks{}, hooks{}, "a before own, b before own, b error own, a error own", apcore.CodeModuleExecuteError},
		"the outer rescues":  {hooks{rescue: true}, hooks{}, "a before own, b before own, b error own, a error own, b after own, a after own", ""},
		"the inner rescues":  {hooks{}, hooks{rescue: true}, "a before own, b before own, b error own, b after own, a after own", ""},
		"before is terminal": {hooks{rescue: true}, hooks{fail: errors.New("stop")}, "a before own, b before own, b error own, a error own", apcore.CodeModuleExecuteError},
	} {
		var log []string
		s := strategy(t, "standard")
		must(t, s.InsertBefore("execute", failing))
		for i, h := range []hooks{test.a, test.b} {
			h.name, h.log, h.onlyFor = string(rune('a'+i)), &log, "own"
			must(t, s.AddStepMiddleware(h))
		}
		executor, _ := pipelined(t, apcore.ExecutorOptions{Strategy: s}, apcore.Spec{})
		_, err := executor.Call(t.Context(), "test.echo", nil, nil)
		if got := strings.Join(log, ", "); got != test.want || apcore.CodeOf(err) != test.code {
			t.Errorf("%s: %s (%v), want %s (%q)", name, got, err, test.want, test.code)
		}
	}
}

// A hook cannot rescue a call from a gate.
func TestGatesCannotBeRescued(t *testing.T) {
	var log []string
	s := strategy(t, "standard")
	must(t, s.AddStepMiddleware(hooks{name: "a", log: &log, rescue: true, onlyFor: "approval_gate"}))
	executor, ran := pipelined(t, apcore.ExecutorOptions{Strategy: s, ApprovalHandler: apcore.AlwaysDeny{}}, apcore.Spec{Annotations: apcore.Annotations{RequiresApproval: true}})
	if _, err := executor.Call(t.Context(), "test.echo", nil, nil); !errors.Is(err, apcore.CodeApprovalDenied) || *ran != 0 {
		t.Errorf("%v after %d runs", err, *ran)
	}
}

func TestCallWithTrace(t *testing.T) {
	executor, _ := pipelined(t, apcore.ExecutorOptions{}, apcore.Spec{})
	_, trace, err := executor.CallWithTrace(t.Context(), "test.echo", nil, nil)
	must(t, err)
	var names []string
	for _, step := range trace.Steps {
		names = append(names, step.Name)
	}
	if diff := cmp.Diff(apcore.StepNames(), names); diff != "" || !trace.Success || trace.StrategyName != "standard" || trace.ModuleID != "test.echo" {
		t.Errorf("trace %+v (-want +got):\n%s", trace, diff)
	}
	_, trace, err = executor.CallWithTrace(t.Context(), "no.such", nil, nil)
	if !errors.Is(err, apcore.CodeModuleNotFound) || trace.Success || len(trace.Steps) != 3 {
		t.Errorf("%v, %d steps", err, len(trace.Steps))
	}
}

// driveTraceCancellation: an error hook can undo a cancellation in neither kind
// of call.
func driveTraceCancellation(_ *fixture, test map[string]any) error {
	c := &check{}
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	err := apcore.Register(registry, "test.cancelling", func(ctx context.Context, _ map[string]any) (map[string]any, error) {
		callee, _ := apcore.FromContext(ctx)
		callee.CancelToken().Cancel()
		return nil, callee.CancelToken().Check()
	}, apcore.Spec{Description: "Cancels itself"})
	c.that(err == nil, "register: %v", err)
	swallow := &swallower{}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{Middleware: []apcore.Middleware{swallow}, Logger: slog.New(slog.DiscardHandler)})
	c.that(err == nil, "executor: %v", err)
	_, _, traced := executor.CallWithTrace(context.Background(), "test.cancelling", nil, nil)
	_, plain := executor.Call(context.Background(), "test.cancelling", nil, nil)
	for _, err := range []error{traced, plain} {
		c.that(string(apcore.CodeOf(err)) == text(test["expected_error"]), "error %v", err)
	}
	c.that(swallow.asked == test["expected_on_error_invoked"], "on_error invoked = %t", swallow.asked)
	return c.err()
}

type swallower struct {
	apcore.BaseMiddleware
	asked bool
}

func (s *swallower) OnError(context.Context, *apcore.MiddlewareCall, *apcore.Error) (*apcore.Recovery, error) {
	s.asked = true
	return &apcore.Recovery{Output: map[string]any{}}, nil
}

// drivePipelineHardening: the engine's own error of a failing step is the cause,
// which Executor.Call unwraps to.
func drivePipelineHardening(_ *fixture, test map[string]any) error {
	c := &check{}
	input, want := object(test["input"]), object(test["expected"])
	s, err := apcore.NewStrategy("minimal")
	c.that(err == nil, "strategy: %v", err)
	broken := apcore.Step{Name: "validate_input", Run: func(context.Context, *apcore.Pipeline) (apcore.StepResult, error) {
		if input["raises"] == true {
			return apcore.StepResult{}, errors.New("no")
		}
		return apcore.StepResult{}, nil
	}}
	broken.IgnoreErrors, _ = input["ignore_errors"].(bool)
	c.that(s.InsertAfter("module_lookup", broken) == nil, "insert")
	times, _ := input["times"].(float64)
	for range int(times) {
		c.that(s.Configure("validate_input", apcore.StepConfig{Timeout: new(time.Second)}) == nil, "configure")
	}
	if count, ok := want["step_count_for_name"].(float64); ok {
		names := slices.DeleteFunc(s.StepNames(), func(name string) bool { return name != "validate_input" })
		c.that(len(names) == int(count), "%d steps of that name", len(names))
	}
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	c.that(apcore.Register(registry, "test.echo", func(_ context.Context, in map[string]any) (map[string]any, error) { return in, nil }, apcore.Spec{Description: "Echoes"}) == nil, "register")
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{Strategy: s, Logger: slog.New(slog.DiscardHandler)})
	c.that(err == nil, "executor: %v", err)
	last := ""
	_, trace, err := executor.CallWithTrace(context.Background(), "test.echo", nil, nil)
	_, untilErr := executor.Do(context.Background(), apcore.Request{ModuleID: "test.echo", Until: func(step string, _ *apcore.Pipeline) bool {
		last = step
		return step == input["run_until_after"]
	}})
	switch {
	case want["stopped"] == true:
		var steps []string
		for _, step := range trace.Steps {
			steps = append(steps, step.Name)
		}
		c.that(err != nil && cmp.Equal(steps, texts(want["steps_executed"])), "%v after %v", err, steps)
	case want["last_step_executed"] != nil:
		c.that(untilErr == nil && last == want["last_step_executed"], "%v after %s", untilErr, last)
	default:
		c.that(err == nil, "%v", err)
	}
	return c.err()
}

// Looking a step up costs the same in a long strategy as in a short one.
func BenchmarkStepLookup(b *testing.B) {
	for _, size := range []int{10, 10_000} {
		s := strategy(b, "minimal")
		var log []string
		for i := range size {
			must(b, s.InsertAfter("execute", mark(fmt.Sprintf("own%d", i), &log)))
		}
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			for b.Loop() {
				_ = s.Configure("none", apcore.StepConfig{})
			}
		})
	}
}
