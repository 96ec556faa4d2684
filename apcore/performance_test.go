package apcore_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// TestCallAllocations is red when a call begins to pay for something that it
// does not use, such as redacted forms that nobody reads: these alone are a
// hundred. Times are for benchmarks; allocations are the same everywhere.
func TestCallAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	executor := benchExecutor(t, 1, apcore.ExecutorOptions{})
	hooked := benchExecutor(t, 1, apcore.ExecutorOptions{Middleware: []apcore.Middleware{apcore.BaseMiddleware{}}})
	c, acl := apcore.NewContext(apcore.ContextOptions{}), benchACL(t, 1_000)
	for name, test := range map[string]struct {
		atMost float64
		do     func()
	}{
		"typed":        {45, caller(t, "", executor, "bench.order").do},
		"in a context": {43, func() { _, _ = executor.Call(t.Context(), "bench.order", benchInputs, c) }},
		"middleware":   {60, caller(t, "", hooked, "bench.order").do},
		"bare":         {8, bare(t).do},
		"access":       {4, func() { acl.CheckAccess(t.Context(), apcore.AccessRequest{TargetID: "bench.order"}) }},
	} {
		test.do()
		if got := testing.AllocsPerRun(100, test.do); got > test.atMost {
			t.Errorf("%s: %v allocations, want %v at most", name, got, test.atMost)
		}
	}
}

// leaving is an error that ends the goroutine of whoever reads it.
type leaving struct{}

func (leaving) Error() string {
	runtime.Goexit()
	return ""
}

// TestQuietCallsAreContained: a call without hooks has no goroutine of its own,
// and yet nothing of the module ends the caller's.
func TestQuietCallsAreContained(t *testing.T) {
	h := newHost(t, apcore.ExecutorOptions{})
	for id, body := range map[string]func(context.Context, map[string]any) (map[string]any, error){
		"leaving":  func(context.Context, map[string]any) (map[string]any, error) { return nil, leaving{} },
		"goexit":   func(context.Context, map[string]any) (map[string]any, error) { runtime.Goexit(); return nil, nil },
		"panicked": func(context.Context, map[string]any) (map[string]any, error) { panic("x") },
	} {
		module, err := apcore.NewRawFunc(body, apcore.Spec{Description: "Breaks", InputSchema: obj{}, OutputSchema: obj{}})
		must(t, err)
		must(t, h.registry.Register(id, module, apcore.RegisterOptions{}))
		ended := make(chan error, 1)
		go func() {
			defer close(ended)
			_, err := h.Call(t.Context(), id, nil, nil)
			ended <- err
		}()
		if err, returned := <-ended; !returned || err == nil {
			t.Errorf("%s: returned %t, %v", id, returned, err)
		}
	}
}

// TestCapturesAreOfTheirMoment: the redacted forms are made when they are read,
// and tell what was there at steps 3, 7 and 9 all the same.
func TestCapturesAreOfTheirMoment(t *testing.T) {
	var early *apcore.Context
	strategy, err := apcore.NewStrategy("standard")
	must(t, err)
	var held obj
	must(t, strategy.InsertBefore("module_lookup", apcore.Step{Name: "holds", Run: func(_ context.Context, p *apcore.Pipeline) (apcore.StepResult, error) {
		held = p.Inputs()
		return apcore.StepResult{}, nil
	}}))
	must(t, strategy.InsertAfter("module_lookup", apcore.Step{Name: "writes", Run: func(_ context.Context, p *apcore.Pipeline) (apcore.StepResult, error) {
		held["n"], early = "late", p.Context()
		return apcore.StepResult{}, nil
	}}))
	for name, opts := range map[string]apcore.ExecutorOptions{
		"quiet": {}, "steps": {Strategy: strategy},
		"middleware": {Middleware: []apcore.Middleware{&hook{after: func(call *apcore.MiddlewareCall, output obj) (obj, error) {
			call.Inputs["n"], output["n"] = "after", "after"
			return nil, nil
		}}}},
	} {
		t.Run(name, func(t *testing.T) {
			early = nil
			h := newHost(t, opts)
			must(t, apcore.Register(h.registry, "typed", func(_ context.Context, in struct {
				N        any    `json:"n"`
				Password string `json:"password"`
			}) (map[string]any, error) {
				return map[string]any{"n": "out", "token": in.Password}, nil
			}, apcore.Spec{Description: "Returns a secret"}))
			inputs := obj{"n": "in", "password": "hunter2"}
			outcome, err := h.call("typed", inputs, nil)
			must(t, err)
			inputs["n"], outcome.Output["n"] = "changed", "changed"
			if diff := cmp.Diff(obj{"n": "in", "password": "***REDACTED***"}, outcome.Context.RedactedInputs()); diff != "" {
				t.Errorf("inputs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(obj{"n": "out", "token": "***REDACTED***"}, outcome.Context.RedactedOutput()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if early != nil && early.RedactedInputs()["n"] != "in" {
				t.Errorf("a step sees %v", early.RedactedInputs())
			}
		})
	}
}
