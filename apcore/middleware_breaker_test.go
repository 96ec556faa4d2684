package apcore_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

func newBreaker(t *testing.T, opts apcore.CircuitBreakerOptions) *apcore.CircuitBreaker {
	t.Helper()
	breaker, err := apcore.NewCircuitBreaker(opts)
	if err != nil {
		t.Fatal(err)
	}
	return breaker
}

func TestCircuitBreakerOptions(t *testing.T) {
	for _, test := range []struct {
		opts  apcore.CircuitBreakerOptions
		parts []string
	}{
		{apcore.CircuitBreakerOptions{OpenThreshold: 1.5}, []string{"CircuitBreakerOptions.OpenThreshold", "1.5", "0 up to 1"}},
		{apcore.CircuitBreakerOptions{OpenThreshold: math.NaN()}, []string{"CircuitBreakerOptions.OpenThreshold", "NaN"}},
		{apcore.CircuitBreakerOptions{WindowSize: -1}, []string{"CircuitBreakerOptions.WindowSize", "-1", "1 to 10000"}},
		{apcore.CircuitBreakerOptions{MinSamples: -2}, []string{"CircuitBreakerOptions.MinSamples", "-2", "1 or more"}},
		{apcore.CircuitBreakerOptions{RecoveryWindow: -time.Second}, []string{"CircuitBreakerOptions.RecoveryWindow", "-1s", "positive"}},
		{apcore.CircuitBreakerOptions{Priority: 2000}, []string{"CircuitBreakerOptions.Priority", "2000", "1 to 1000"}},
	} {
		_, err := apcore.NewCircuitBreaker(test.opts)
		invalidOption(t, err, test.parts...)
	}
}

// patient is a module whose calls succeed, fail or block as their input says.
type patient struct {
	*host
	breaker *apcore.CircuitBreaker
	events  []obj
	free    chan struct{}
}

func newPatient(t *testing.T, opts apcore.CircuitBreakerOptions, others ...apcore.Middleware) *patient {
	t.Helper()
	p := &patient{free: make(chan struct{})}
	var mu sync.Mutex
	opts.OnEvent = func(e apcore.Event) {
		mu.Lock()
		defer mu.Unlock()
		p.events = append(p.events, obj{"type": e.Type, "severity": e.Severity, "module": e.ModuleID, "data": e.Data})
	}
	p.breaker = newBreaker(t, opts)
	host := with(append([]apcore.Middleware{p.breaker}, others...)...)
	host.GlobalTimeout = apcore.NoTimeout // calls wait for hours here
	p.host = newHost(t, host)
	p.module("m", func(ctx context.Context, in obj, _ *apcore.Context) (obj, error) {
		switch in["do"] {
		case "fail":
			return nil, errors.New("no")
		case "block":
			select {
			case <-p.free:
			case <-ctx.Done():
			}
			return obj{}, ctx.Err()
		}
		return obj{}, nil
	})
	return p
}

func (p *patient) do(what string) error {
	_, err := p.call("m", obj{"do": what}, nil)
	return err
}

// feed makes calls: s succeeds, f fails.
func (p *patient) feed(outcomes string) {
	for _, o := range outcomes {
		_ = p.do(map[rune]string{'s': "succeed", 'f': "fail"}[o])
	}
}

func (p *patient) state(want apcore.CircuitState) {
	p.t.Helper()
	if got := p.breaker.State("m", ""); got != want {
		p.t.Errorf("state %s, want %s", got, want)
	}
}

func circuitEvent(kind, severity string, rate float64) obj {
	return obj{"type": kind, "severity": severity, "module": "m", "data": obj{"module_id": "m", "caller_id": "", "error_rate": rate}}
}

// TestCircuitOpens by the last outcomes only.
func TestCircuitOpens(t *testing.T) {
	for name, test := range map[string]struct {
		opts     apcore.CircuitBreakerOptions
		outcomes string
		want     apcore.CircuitState
	}{
		"too few samples":                {outcomes: "ffff", want: apcore.CircuitClosed},
		"enough samples":                 {outcomes: "fffff", want: apcore.CircuitOpen},
		"exactly the threshold":          {outcomes: "sssfff", want: apcore.CircuitOpen},
		"below the threshold":            {outcomes: "sssff", want: apcore.CircuitClosed},
		"samples are at most a window":   {opts: apcore.CircuitBreakerOptions{WindowSize: 3, MinSamples: 9}, outcomes: "fff", want: apcore.CircuitOpen},
		"old errors leave the window":    {opts: apcore.CircuitBreakerOptions{WindowSize: 5, OpenThreshold: 0.6}, outcomes: "ffsssssff", want: apcore.CircuitClosed},
		"old successes leave it as well": {opts: apcore.CircuitBreakerOptions{WindowSize: 5, OpenThreshold: 0.6}, outcomes: "sssssssfff", want: apcore.CircuitOpen},
		"all must fail":                  {opts: apcore.CircuitBreakerOptions{WindowSize: 5, OpenThreshold: 1}, outcomes: "sffff", want: apcore.CircuitClosed},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPatient(t, test.opts)
			p.feed(test.outcomes)
			p.state(test.want)
		})
	}
}

// TestCircuitLife goes once around.
func TestCircuitLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPatient(t, apcore.CircuitBreakerOptions{RecoveryWindow: time.Minute})
		p.feed("fffff")
		p.wants(p.do("succeed"), apcore.CodeCircuitBreakerOpen, 5)
		err := apcore.AsError(p.do("succeed"))
		if diff := cmp.Diff(obj{"module_id": "m", "caller_id": "", "call_chain": []any{"m"}}, err.Details); diff != "" || err.Retryable == nil || !*err.Retryable {
			t.Errorf("retryable %v, details (-want +got):\n%s", err.Retryable, diff)
		}
		time.Sleep(time.Minute - time.Nanosecond)
		p.wants(p.do("succeed"), apcore.CodeCircuitBreakerOpen, 5)
		p.state(apcore.CircuitOpen)
		time.Sleep(time.Nanosecond)
		p.wants(p.do("fail"), apcore.CodeModuleExecuteError, 6) // the probe
		p.state(apcore.CircuitOpen)
		p.wants(p.do("succeed"), apcore.CodeCircuitBreakerOpen, 6)
		time.Sleep(time.Minute)
		p.wants(p.do("succeed"), "", 7)
		p.state(apcore.CircuitClosed)
		p.feed("ffff") // the window began anew
		p.state(apcore.CircuitClosed)
		want := []obj{
			circuitEvent(apcore.EventCircuitOpened, "warn", 1),
			circuitEvent(apcore.EventCircuitOpened, "warn", 1),
			circuitEvent(apcore.EventCircuitClosed, "info", 0),
		}
		if diff := cmp.Diff(want, p.events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// TestCircuitProbesOnce, however many calls come at once.
func TestCircuitProbesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPatient(t, apcore.CircuitBreakerOptions{})
		p.feed("fffff")
		time.Sleep(apcore.DefaultRecoveryWindow)
		codes := make(chan apcore.Code, 50)
		var all sync.WaitGroup
		for range cap(codes) {
			all.Go(func() { codes <- apcore.CodeOf(p.do("block")) })
		}
		synctest.Wait()
		p.state(apcore.CircuitHalfOpen)
		p.wants(nil, "", 6)
		close(p.free)
		all.Wait()
		close(codes)
		count := map[apcore.Code]int{}
		for code := range codes {
			count[code]++
		}
		if diff := cmp.Diff(map[apcore.Code]int{"": 1, apcore.CodeCircuitBreakerOpen: 49}, count); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		p.state(apcore.CircuitClosed)
	})
}

// TestCircuitSurvivesItsProbe: one without an outcome leaves its place.
func TestCircuitSurvivesItsProbe(t *testing.T) {
	recovers := &hook{onError: func(*apcore.MiddlewareCall, *apcore.Error) (*apcore.Recovery, error) {
		return &apcore.Recovery{Output: obj{}}, nil
	}}
	cancelled := func(p *patient) {
		token := apcore.NewCancelToken()
		time.AfterFunc(time.Second, token.Cancel)
		_, err := p.call("m", obj{"do": "block"}, apcore.NewContext(apcore.ContextOptions{CancelToken: token}))
		p.wants(err, apcore.CodeExecutionCancelled, 6)
	}
	for name, test := range map[string]struct {
		others []apcore.Middleware
		probe  func(*patient)
	}{
		"cancelled":            {probe: cancelled},
		"recovered by another": {others: []apcore.Middleware{recovers}, probe: func(p *patient) { p.wants(p.do("fail"), "", 6) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPatient(t, apcore.CircuitBreakerOptions{})
				p.feed("fffff")
				time.Sleep(apcore.DefaultRecoveryWindow)
				for _, m := range test.others {
					if err := p.Use(m); err != nil {
						t.Fatal(err)
					}
				}
				test.probe(p)
				p.state(apcore.CircuitHalfOpen)
				p.wants(p.do("succeed"), "", 7)
				p.state(apcore.CircuitClosed)
			})
		})
	}
}

// TestCircuitCountsProbesThatTimedOut even when another middleware holds the
// error back.
func TestCircuitCountsProbesThatTimedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPatient(t, apcore.CircuitBreakerOptions{RecoveryWindow: time.Minute})
		p.feed("fffff")
		time.Sleep(time.Minute)
		retry := newRetry(t, apcore.RetryOptions{NoJitter: true, BaseDelay: time.Hour, MaxDelay: time.Hour, MaxRetries: 1})
		if err := p.Use(retry); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- p.do("block") }() // times out, then waits an hour for its retry
		time.Sleep(apcore.DefaultModuleTimeout + time.Second)
		if !p.Remove(retry) {
			t.Fatal("not removed")
		}
		p.wants(p.do("succeed"), apcore.CodeCircuitBreakerOpen, 6)
		p.state(apcore.CircuitOpen)
		close(p.free)
		if err := <-done; err != nil {
			t.Error(err)
		}
		p.state(apcore.CircuitClosed) // the retry was the next probe
	})
}

// TestCircuitIgnoresLateOutcomes of calls that began before it opened.
func TestCircuitIgnoresLateOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPatient(t, apcore.CircuitBreakerOptions{RecoveryWindow: time.Second})
		late, probe := make(chan error), make(chan error)
		go func() { late <- p.do("block") }()
		synctest.Wait()
		p.feed("fffff")
		time.Sleep(time.Second)
		old := p.free
		p.free = make(chan struct{})
		go func() { probe <- p.do("block") }()
		synctest.Wait()
		close(old)
		p.wants(<-late, "", 7)
		p.state(apcore.CircuitHalfOpen) // the late success closes nothing
		close(p.free)
		p.wants(<-probe, "", 7)
		p.state(apcore.CircuitClosed)
	})
}

// TestCircuitCountsOnce: refusals do not count, nor does an error that comes
// after a success.
func TestCircuitCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		breaker := newBreaker(t, apcore.CircuitBreakerOptions{MinSamples: 1, WindowSize: 2})
		h := newHost(t, with(&hook{after: func(call *apcore.MiddlewareCall, _ obj) (obj, error) {
			if call.ModuleID == "late" {
				return nil, errors.New("no")
			}
			return nil, nil
		}}, breaker))
		h.module("inner", failing(errors.New("no")))
		h.module("outer", func(ctx context.Context, _ obj, _ *apcore.Context) (obj, error) {
			return apcore.Call[obj](ctx, "inner", nil)
		})
		h.module("late", nil)
		c := apcore.NewContext(apcore.ContextOptions{})
		_, err := h.call("late", nil, c)
		h.wants(err, apcore.CodeModuleExecuteError, 1)
		_, err = h.call("inner", nil, c.Child("outer"))
		h.wants(err, apcore.CodeModuleExecuteError, 2)
		for range 3 {
			_, err = h.call("outer", nil, c)
			h.wants(err, apcore.CodeCircuitBreakerOpen, h.effects.count())
		}
		want := map[string]apcore.CircuitState{
			"late": apcore.CircuitClosed, "outer": apcore.CircuitClosed, "inner by outer": apcore.CircuitOpen, "inner": apcore.CircuitClosed,
		}
		got := map[string]apcore.CircuitState{
			"late": breaker.State("late", ""), "outer": breaker.State("outer", ""),
			"inner by outer": breaker.State("inner", "outer"), "inner": breaker.State("inner", ""),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestCircuitListenerPanics: events never change an outcome.
func TestCircuitListenerPanics(t *testing.T) {
	var warnings ledger
	breaker := newBreaker(t, apcore.CircuitBreakerOptions{MinSamples: 1, Logger: logTo(&warnings), OnEvent: func(apcore.Event) { panic("x") }})
	h := newHost(t, with(breaker)).module("m", failing(errors.New("no")))
	_, err := h.call("m", nil, nil)
	h.wants(err, apcore.CodeModuleExecuteError, 1)
	if breaker.State("m", "") != apcore.CircuitOpen || warnings.count() != 1 {
		t.Errorf("state %s, warnings %v", breaker.State("m", ""), warnings.all())
	}
}
