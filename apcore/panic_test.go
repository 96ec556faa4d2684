package apcore_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// disasters are the ways in which foreign code ends without returning.
var disasters = map[string]func(){
	"text":      func() { panic("secret text") },
	"nil map":   func() { map[string]map[string]int{}["a"]["b"] = 1 },
	"nil value": func() { panic(nil) },
	"error":     func() { panic(errors.New("secret text")) },
	"goexit":    runtime.Goexit,
}

type moody struct{ do func() }

func (m moody) RequestApproval(context.Context, *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
	m.do()
	return &apcore.ApprovalResult{Status: apcore.ApprovalApproved}, nil
}

func (m moody) CheckApproval(context.Context, string) (*apcore.ApprovalResult, error) {
	m.do()
	return &apcore.ApprovalResult{Status: apcore.ApprovalApproved}, nil
}

// TestDisasters lets foreign code fail everywhere: the call ends with an error,
// the process lives, and what fails before the module keeps it from running.
func TestDisasters(t *testing.T) {
	tests := []struct {
		place  string
		opts   func(do func()) apcore.ExecutorOptions
		inputs obj
		code   apcore.Code
		exit   apcore.Code
		runs   int
	}{
		{place: "module", code: apcore.CodeModuleExecuteError, exit: apcore.CodeModuleExecuteError, runs: 1},
		{place: "access", code: apcore.CodeACLDenied, exit: apcore.CodeInternal, opts: func(do func()) apcore.ExecutorOptions {
			return apcore.ExecutorOptions{AccessControl: accessFunc(func(context.Context, apcore.AccessRequest) apcore.AccessDecision {
				do()
				return apcore.AccessDecision{Allowed: true}
			})}
		}},
		{place: "handler", code: apcore.CodeInternal, exit: apcore.CodeInternal, opts: func(do func()) apcore.ExecutorOptions {
			return apcore.ExecutorOptions{ApprovalHandler: moody{do}}
		}},
		{place: "handler on resume", inputs: obj{apcore.ApprovalTokenKey: "id"}, code: apcore.CodeInternal, exit: apcore.CodeInternal, opts: func(do func()) apcore.ExecutorOptions {
			return apcore.ExecutorOptions{ApprovalHandler: moody{do}}
		}},
		{place: "before", code: apcore.CodeInternal, exit: apcore.CodeInternal, opts: func(do func()) apcore.ExecutorOptions {
			return apcore.ExecutorOptions{Middleware: []apcore.Middleware{&hook{before: func(*apcore.MiddlewareCall) (obj, error) { do(); return nil, nil }}}}
		}},
		{place: "after", code: apcore.CodeInternal, exit: apcore.CodeInternal, runs: 1, opts: func(do func()) apcore.ExecutorOptions {
			return apcore.ExecutorOptions{Middleware: []apcore.Middleware{&hook{after: func(*apcore.MiddlewareCall, obj) (obj, error) { do(); return nil, nil }}}}
		}},
	}
	for _, test := range tests {
		for kind, do := range disasters {
			t.Run(test.place+"/"+kind, func(t *testing.T) {
				var opts apcore.ExecutorOptions
				var body execute
				if test.opts != nil {
					opts = test.opts(do)
				} else {
					body = func(context.Context, obj, *apcore.Context) (obj, error) { do(); return obj{}, nil }
				}
				h := newHost(t, opts).module("m", body, gated)
				code := test.code
				if kind == "goexit" {
					code = test.exit
				}
				outcome, err := h.call("m", test.inputs, nil)
				h.wants(err, code, test.runs)
				if outcome.Started != (test.runs > 0) || outcome.Output != nil {
					t.Errorf("started %t, output %v", outcome.Started, outcome.Output)
				}
				if err != nil && strings.Contains(err.Error(), "secret") {
					t.Errorf("the panic's text got out: %v", err)
				}
			})
		}
	}
}

// TestErrorHookDisasters: a broken error hook leaves the module's error.
func TestErrorHookDisasters(t *testing.T) {
	for kind, do := range disasters {
		t.Run(kind, func(t *testing.T) {
			h := newHost(t, apcore.ExecutorOptions{Middleware: []apcore.Middleware{&hook{
				onError: func(*apcore.MiddlewareCall, *apcore.Error) (*apcore.Recovery, error) {
					do()
					return &apcore.Recovery{Output: obj{}}, nil
				},
			}}}).module("m", func(context.Context, obj, *apcore.Context) (obj, error) {
				return nil, apcore.NewError("MODULE_OWN", "failed")
			})
			want := apcore.Code("MODULE_OWN")
			if kind == "goexit" {
				want = apcore.CodeInternal
			}
			_, err := h.call("m", nil, nil)
			h.wants(err, want, 1)
		})
	}
}

type brokenError struct{ inner error }

func (e *brokenError) Error() string { return e.inner.Error() }

// TestBrokenErrors: errors whose own methods panic are errors like others.
func TestBrokenErrors(t *testing.T) {
	tests := []struct {
		name    string
		failure error
		code    apcore.Code
	}{
		{"nil of this package", (*apcore.Error)(nil), apcore.CodeModuleExecuteError},
		{"nil of another", (*brokenError)(nil), apcore.CodeModuleExecuteError},
		{"panics", &brokenError{}, apcore.CodeInternal},
		{"wrapped nil", fmt.Errorf("w: %w", (*apcore.Error)(nil)), apcore.CodeModuleExecuteError},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHost(t, apcore.ExecutorOptions{}).module("m", func(context.Context, obj, *apcore.Context) (obj, error) {
				return obj{}, test.failure
			})
			outcome, err := h.call("m", nil, nil)
			h.wants(err, test.code, 1)
			if outcome.Output != nil || !outcome.Started {
				t.Errorf("outcome %+v", outcome)
			}
			if e := apcore.AsError(err); e == nil || e.Retryable != nil && *e.Retryable {
				t.Errorf("%v must not ask for a retry", err)
			}
		})
	}
	if got := apcore.CodeOf((*apcore.Error)(nil)); got != apcore.CodeModuleExecuteError {
		t.Errorf("code of a nil *Error: %q", got)
	}
}

// TestLateModuleKeepsItsInputs: a module that writes to its inputs after its
// call has ended does not race with hooks that read the call's. Run with -race.
func TestLateModuleKeepsItsInputs(t *testing.T) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	token := apcore.NewCancelToken()
	h := newHost(t, apcore.ExecutorOptions{DefaultTimeout: 1, Middleware: []apcore.Middleware{&hook{
		onError: func(call *apcore.MiddlewareCall, _ *apcore.Error) (*apcore.Recovery, error) {
			for range 1000 {
				for range call.Inputs {
				}
			}
			return nil, nil
		},
	}}}).module("m", func(_ context.Context, in obj, _ *apcore.Context) (obj, error) {
		defer close(stopped)
		for i := 0; ; i++ {
			in["n"] = i
			select {
			case <-stop:
				return obj{}, nil
			default:
			}
		}
	})
	outcome, err := h.call("m", obj{"n": 0}, apcore.NewContext(apcore.ContextOptions{CancelToken: token}))
	if !errors.Is(err, apcore.CodeModuleTimeout) || !outcome.Started {
		t.Errorf("%v", err)
	}
	close(stop)
	<-stopped
}
