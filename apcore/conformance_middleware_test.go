package apcore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// driveMiddleware takes the cases of middleware_hardening by what they are about.
func driveMiddleware(_ *fixture, test map[string]any) error {
	id, input, want := text(test["id"]), object(test["input"]), object(test["expected"])
	switch {
	case strings.HasPrefix(id, "context_namespace_"):
		got := apcore.ValidateContextKey(text(input["writer"]), text(input["key"]))
		c := &check{}
		c.that(got.Valid == want["valid"] && (got.Warning != "") == want["warning"], "%+v", got)
		return c.err()
	case strings.HasPrefix(id, "circuit_breaker_"):
		return driveCircuit(input, want)
	case input["sequence"] != nil:
		return driveUse(input, want)
	case id == "tracing_noop_without_otel":
		return driveUntraced(input)
	case input["language"] != nil:
		return nil // the shape of another language's interface
	default:
		return fmt.Errorf("no driver for %s", id)
	}
}

// breakerCase is a breaker whose clock the case moves.
type breakerCase struct {
	breaker  *apcore.CircuitBreaker
	executor *apcore.Executor
	caller   *apcore.Context
	now      time.Time
	fails    bool
	reached  int
	during   apcore.CircuitState // while the module last ran
	events   []string
}

func newBreakerCase(input obj) (*breakerCase, error) {
	b := &breakerCase{now: time.Now(), caller: apcore.NewContext(apcore.ContextOptions{}).Child(text(input["caller_id"]))}
	opts := apcore.CircuitBreakerOptions{OnEvent: func(e apcore.Event) { b.events = append(b.events, e.Type) }}
	opts.OpenThreshold, _ = input["open_threshold"].(float64)
	size, _ := input["window_size"].(float64)
	recovery, _ := input["recovery_window_ms"].(float64)
	opts.WindowSize, opts.RecoveryWindow = int(size), time.Duration(recovery)*time.Millisecond
	var err error
	if b.breaker, err = apcore.NewCircuitBreaker(opts); err != nil {
		return nil, err
	}
	b.breaker.WithClock(func() time.Time { return b.now })
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	err = apcore.Register(registry, text(input["module_id"]), func(context.Context, map[string]any) (map[string]any, error) {
		b.reached++
		b.during = b.breaker.State(text(input["module_id"]), text(input["caller_id"]))
		if b.fails {
			return nil, errors.New("no")
		}
		return obj{}, nil
	}, apcore.Spec{Description: "Fails as told"})
	if err != nil {
		return nil, err
	}
	b.executor, err = apcore.NewExecutor(registry, with(b.breaker))
	return b, err
}

func (b *breakerCase) call(input obj, fails bool) error {
	b.fails = fails
	_, err := b.executor.Call(context.Background(), text(input["module_id"]), nil, b.caller)
	return err
}

// bring leads the circuit to the state the case begins with.
func (b *breakerCase) bring(input obj) {
	if input["circuit_state"] == nil {
		return
	}
	for range apcore.DefaultMinSamples {
		_ = b.call(input, true)
	}
	elapsed, given := input["ms_since_opened"].(float64)
	if !given {
		elapsed = float64(apcore.DefaultRecoveryWindow.Milliseconds())
	}
	b.now = b.now.Add(time.Duration(elapsed) * time.Millisecond)
	b.events, b.reached = nil, 0
}

func driveCircuit(input, want obj) error {
	b, err := newBreakerCase(input)
	if err != nil {
		return err
	}
	b.bring(input)
	failures, _ := input["errors_in_window"].(float64)
	successes, _ := input["successes_in_window"].(float64)
	for i := range int(failures + successes) {
		_ = b.call(input, i >= int(successes))
	}
	if input["circuit_state"] != nil {
		err = b.call(input, false)
	}
	c := &check{}
	c.that(string(apcore.CodeOf(err)) == text(want["error_code"]), "the call: %v", err)
	state := b.breaker.State(text(input["module_id"]), text(input["caller_id"]))
	if want["probe_call_allowed"] == true {
		c.that(b.reached == 1, "reached %d times", b.reached)
		state = b.during
	}
	if want["circuit_state"] != nil {
		c.that(string(state) == want["circuit_state"], "state %s", state)
	}
	if want["event_emitted"] != nil {
		c.that(slices.Equal(b.events, []string{text(want["event_emitted"])}), "events %q", b.events)
	}
	if want["module_reached"] == false {
		c.that(b.reached == 0, "the module was reached")
	}
	return c.err()
}

func driveUse(input, want obj) error {
	var warnings ledger
	executor, err := apcore.NewExecutor(apcore.NewRegistry(apcore.RegistryOptions{}), apcore.ExecutorOptions{Logger: logTo(&warnings)})
	if err != nil {
		return err
	}
	c, middleware := &check{}, &hook{}
	for _, step := range texts(input["sequence"]) {
		if step == "use" {
			c.that(executor.Use(middleware) == nil, "use failed")
		} else {
			c.that(executor.Remove(middleware), "remove found nothing")
		}
	}
	c.that(float64(warnings.count()) == want["duplicate_warnings"], "warnings %v", warnings.all())
	return c.err()
}

// driveUntraced: nothing here needs a tracing backend, and a call without one
// keeps its trace id and leaves no spans.
func driveUntraced(input obj) error {
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	caller := apcore.NewContext(apcore.ContextOptions{
		TraceParent: &apcore.TraceParent{TraceID: text(input["trace_id"])},
	}).Child(text(input["caller_id"]))
	err := apcore.Register(registry, text(input["module_id"]), func(context.Context, map[string]any) (map[string]any, error) {
		return obj{}, nil
	}, apcore.Spec{Description: "Does nothing"})
	if err != nil {
		return err
	}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{})
	if err != nil {
		return err
	}
	outcome, err := executor.Do(context.Background(), apcore.Request{ModuleID: text(input["module_id"]), Context: caller})
	if err != nil {
		return err
	}
	_, spans := outcome.Context.Data().Get("_apcore.mw.tracing.spans")
	c := &check{}
	c.that(!spans && outcome.Context.TraceID() == input["trace_id"], "spans %t, trace %s", spans, outcome.Context.TraceID())
	return c.err()
}

// runRecovery runs a case of middleware_on_error_recovery against error hooks, of
// which the one listed first is asked first.
func runRecovery(test obj) (invoked []string, output obj, err error) {
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	err = apcore.Register(registry, "test.module", func(context.Context, map[string]any) (map[string]any, error) {
		if test["module_raises_error"] == true {
			return nil, errors.New("no")
		}
		return object(test["module_output"]), nil
	}, apcore.Spec{Description: "Fails as told"})
	if err != nil {
		return nil, nil, err
	}
	opts := apcore.ExecutorOptions{}
	for _, item := range slices.Backward(list(test["after_middleware"])) {
		opts.Middleware = append(opts.Middleware, &hook{onError: func(*apcore.MiddlewareCall, *apcore.Error) (*apcore.Recovery, error) {
			invoked = append(invoked, text(object(item)["id"]))
			if result := object(object(item)["returns"]); result != nil {
				return &apcore.Recovery{Output: result}, nil
			}
			return nil, nil
		}})
	}
	executor, err := apcore.NewExecutor(registry, opts)
	if err != nil {
		return nil, nil, err
	}
	output, err = executor.Call(context.Background(), "test.module", nil, nil)
	return invoked, output, err
}

func driveRecovery(_ *fixture, test map[string]any) error {
	invoked, output, err := runRecovery(test)
	c, want := &check{}, object(test["expected"])
	c.that((err == nil) == (want["outcome"] == "success"), "error %v", err)
	if want["result"] != nil {
		diff := cmp.Diff(object(want["result"]), wire(output))
		c.that(diff == "", "result (-want +got):\n%s", diff)
	}
	c.that(slices.Equal(invoked, texts(want["after_middleware_invoked"])), "invoked %q", invoked)
	return c.err()
}

// TestRecoveryFixture checks the cases that stand in the baseline in all that is
// not stale: error hooks run on failure only, and the first recovery is the last
// hook.
func TestRecoveryFixture(t *testing.T) {
	f := readFixture(t, fixtureDirectory(t), "middleware_on_error_recovery")
	hooks := map[string][]string{"first_dict_wins_recovery": {"recovery_mw"}, "no_recovery_on_success": nil}
	for i, test := range f.cases {
		want, stale := hooks[caseID(test, i)]
		if !stale {
			continue
		}
		delete(hooks, caseID(test, i))
		invoked, output, err := runRecovery(test)
		if diff := cmp.Diff(object(object(test["expected"])["result"]), wire(output)); diff != "" || err != nil || !slices.Equal(invoked, want) {
			t.Errorf("%s: %v, invoked %q, (-want +got):\n%s", caseID(test, i), err, invoked, diff)
		}
	}
	if len(hooks) != 0 {
		t.Errorf("the fixture lacks %v", hooks)
	}
}
