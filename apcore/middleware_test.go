package apcore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// traced is a middleware that enters its hooks in a ledger.
func traced(l *ledger, name string, priority int) *hook {
	return &hook{
		priority: &priority,
		before: func(*apcore.MiddlewareCall) (obj, error) {
			l.add("before %s", name)
			return nil, nil
		},
		after: func(*apcore.MiddlewareCall, obj) (obj, error) {
			l.add("after %s", name)
			return nil, nil
		},
		onError: func(_ *apcore.MiddlewareCall, err *apcore.Error) (*apcore.Recovery, error) {
			l.add("error %s %s", name, err.Code)
			return nil, nil
		},
	}
}

// TestOnion walks the chain: what fails where, and who hears of it.
func TestOnion(t *testing.T) {
	boom := apcore.NewError("BOOM", "boom")
	tests := []struct {
		name   string
		module error
		edit   func(a, b, c *hook)
		code   apcore.Code
		want   []string
	}{
		{name: "success", want: []string{"before A", "before B", "before C", "m", "after C", "after B", "after A"}},
		{name: "the module fails", module: boom, code: "BOOM", want: []string{
			"before A", "before B", "before C", "m", "error C BOOM", "error B BOOM", "error A BOOM",
		}},
		{name: "before fails", code: "BOOM", want: []string{"before A", "error B BOOM", "error A BOOM"}, edit: func(_, b, _ *hook) {
			b.before = func(*apcore.MiddlewareCall) (obj, error) { return nil, boom }
		}},
		{name: "after fails", code: "BOOM", want: []string{
			"before A", "before B", "before C", "m", "after C", "error C BOOM", "error B BOOM", "error A BOOM",
		}, edit: func(_, b, _ *hook) {
			b.after = func(*apcore.MiddlewareCall, obj) (obj, error) { return nil, boom }
		}},
		{name: "the first recovery wins", module: boom, want: []string{"before A", "before B", "before C", "m", "error C BOOM"}, edit: func(_, b, _ *hook) {
			b.onError = func(*apcore.MiddlewareCall, *apcore.Error) (*apcore.Recovery, error) {
				return &apcore.Recovery{Output: obj{"recovered": true}}, nil
			}
		}},
		{name: "a failing error hook counts as nothing", module: boom, code: "BOOM", want: []string{
			"before A", "before B", "before C", "m", "error C BOOM", "error A BOOM",
		}, edit: func(_, b, _ *hook) {
			b.onError = func(*apcore.MiddlewareCall, *apcore.Error) (*apcore.Recovery, error) {
				return &apcore.Recovery{Output: obj{}}, errors.New("hook")
			}
		}},
		{name: "cancellation reaches no error hook", module: context.Canceled, code: apcore.CodeExecutionCancelled, want: []string{
			"before A", "before B", "before C", "m",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHost(t, apcore.ExecutorOptions{})
			a, b, c := traced(&h.effects, "A", 500), traced(&h.effects, "B", 100), traced(&h.effects, "C", 100)
			if test.edit != nil {
				test.edit(a, b, c)
			}
			for _, m := range []*hook{b, c, a} {
				if err := h.Use(m); err != nil {
					t.Fatal(err)
				}
			}
			h.module("m", func(context.Context, obj, *apcore.Context) (obj, error) { return obj{}, test.module })
			_, err := h.call("m", nil, nil)
			h.wants(err, test.code, len(test.want))
			if diff := cmp.Diff(test.want, h.effects.all()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestErrorHooksStandBehindTheGate: errors of the first five steps pass them by.
func TestErrorHooksStandBehindTheGate(t *testing.T) {
	recovers := &hook{onError: func(*apcore.MiddlewareCall, *apcore.Error) (*apcore.Recovery, error) {
		return &apcore.Recovery{Output: obj{}}, nil
	}}
	tests := []struct {
		name    string
		opts    apcore.ExecutorOptions
		id      string
		context *apcore.Context
		code    apcore.Code
	}{
		{"guard", apcore.ExecutorOptions{}, "m", apcore.NewContext(apcore.ContextOptions{}).Child("m").Child("x"), apcore.CodeCircularCall},
		{"lookup", apcore.ExecutorOptions{}, "none", nil, apcore.CodeModuleNotFound},
		{"access", apcore.ExecutorOptions{AccessControl: accessFunc(denyAll)}, "m", nil, apcore.CodeACLDenied},
		{"approval", apcore.ExecutorOptions{ApprovalHandler: apcore.AlwaysDeny{}}, "m", nil, apcore.CodeApprovalDenied},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.opts.Middleware = []apcore.Middleware{recovers}
			h := newHost(t, test.opts).module("m", nil, gated)
			_, err := h.call(test.id, nil, test.context)
			h.wants(err, test.code, 0)
		})
	}
}

func TestReplace(t *testing.T) {
	var seen, afterSaw obj
	h := newHost(t, apcore.ExecutorOptions{Middleware: []apcore.Middleware{&hook{
		before: func(call *apcore.MiddlewareCall) (obj, error) {
			return obj{"n": 2, "password": "hunter2", "was": call.Inputs["n"]}, nil
		},
		after: func(call *apcore.MiddlewareCall, output obj) (obj, error) {
			afterSaw = call.Inputs
			return obj{"n": "not what the schema wants", "was": output["n"]}, nil
		},
	}}})
	h.module("m", func(_ context.Context, in obj, c *apcore.Context) (obj, error) {
		seen = c.RedactedInputs()
		in["n"] = 3 // the module's own copy
		return obj{"n": in["was"]}, nil
	}, outputSchema(obj{"properties": obj{"n": obj{"type": "integer"}}}))
	outcome, err := h.call("m", obj{"n": 1}, nil)
	h.wants(err, "", 1)
	want := []obj{{"n": 2, "password": "***REDACTED***", "was": 1}, {"n": 2, "password": "hunter2", "was": 1}, {"n": "not what the schema wants", "was": 1}}
	if diff := cmp.Diff(want, []obj{seen, afterSaw, outcome.Output}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReplacedInputsAreValidated(t *testing.T) {
	for name, inputs := range map[string]obj{"schema": {"n": "x"}, "no JSON": {"n": func() {}}} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, apcore.ExecutorOptions{Middleware: []apcore.Middleware{&hook{
				before: func(*apcore.MiddlewareCall) (obj, error) { return inputs, nil },
			}}}).module("m", nil, inputSchema(strict))
			_, err := h.call("m", obj{"n": 1}, nil)
			h.wants(err, map[string]apcore.Code{"schema": apcore.CodeSchemaValidation, "no JSON": apcore.CodeInternal}[name], 0)
		})
	}
}

// TestRetrySignal: every attempt starts from the caller's context, the shared
// data survives, and the outcome remembers that the module was started.
func TestRetrySignal(t *testing.T) {
	attempts := apcore.NewKey[int]("_test.attempts")
	h := newHost(t, apcore.ExecutorOptions{Middleware: []apcore.Middleware{&hook{
		onError: func(call *apcore.MiddlewareCall, _ *apcore.Error) (*apcore.Recovery, error) {
			n, _ := attempts.Get(call.Context)
			attempts.Set(call.Context, n+1)
			if n == 5 {
				return nil, nil
			}
			return &apcore.Recovery{Retry: &apcore.RetrySignal{Inputs: obj{"attempt": n + 1}}}, nil
		},
	}}})
	h.module("m", func(_ context.Context, in obj, c *apcore.Context) (obj, error) {
		h.effects.add("%v %v %q", in["attempt"], c.CallChain(), c.CallerID())
		return nil, errors.New("again")
	}, inputSchema(obj{"properties": obj{"attempt": obj{"maximum": 4}}}))
	outcome, err := h.call("m", obj{"attempt": 0}, nil)
	var want []string
	for n := range 5 {
		want = append(want, "m", fmt.Sprintf(`%d [m] ""`, n))
	}
	h.wants(err, apcore.CodeSchemaValidation, len(want))
	if diff := cmp.Diff(want, h.effects.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !outcome.Started {
		t.Error("the last attempt did not start, but earlier ones did")
	}
}

// TestRetryEnds with the token, and with inputs that are no JSON.
func TestRetryEnds(t *testing.T) {
	token := apcore.NewCancelToken()
	retry := &apcore.RetrySignal{}
	h := newHost(t, apcore.ExecutorOptions{Middleware: []apcore.Middleware{&hook{
		onError: func(*apcore.MiddlewareCall, *apcore.Error) (*apcore.Recovery, error) {
			return &apcore.Recovery{Retry: retry}, nil
		},
	}}})
	h.module("m", func(context.Context, obj, *apcore.Context) (obj, error) {
		if h.effects.count() == 3 {
			token.Cancel()
		}
		return nil, errors.New("again")
	})
	_, err := h.call("m", nil, apcore.NewContext(apcore.ContextOptions{CancelToken: token}))
	h.wants(err, apcore.CodeExecutionCancelled, 3)
	retry.Inputs = obj{"x": make(chan int)}
	_, err = h.call("m", nil, nil)
	h.wants(err, apcore.CodeInternal, 4)
}

func TestUseAndRemove(t *testing.T) {
	var warnings ledger
	h := newHost(t, apcore.ExecutorOptions{Logger: logTo(&warnings)}).module("m", nil)
	a := traced(&h.effects, "A", 0)
	for _, m := range []apcore.Middleware{nil, (*hook)(nil), traced(&h.effects, "low", -1), traced(&h.effects, "high", 1001)} {
		if err := h.Use(m); !errors.Is(err, apcore.CodeInvalidInput) {
			t.Errorf("Use(%v): %v", m, err)
		}
	}
	use := func() {
		t.Helper()
		if err := h.Use(a); err != nil {
			t.Fatal(err)
		}
	}
	use()
	if !h.Remove(a) || h.Remove(a) {
		t.Error("Remove must report what it took out")
	}
	use()
	if warnings.count() != 0 {
		t.Errorf("warned of %v", warnings.all())
	}
	use()
	if warnings.count() != 1 {
		t.Errorf("twice registered, but warnings %v", warnings.all())
	}
	_, err := h.call("m", nil, nil)
	h.wants(err, "", 5)
}

// TestChainIsSnapshot: a middleware taken out during a call still ends it.
func TestChainIsSnapshot(t *testing.T) {
	h := newHost(t, apcore.ExecutorOptions{})
	a := traced(&h.effects, "A", 100)
	if err := h.Use(a); err != nil {
		t.Fatal(err)
	}
	h.module("m", func(context.Context, obj, *apcore.Context) (obj, error) {
		h.Remove(a)
		return obj{}, h.Use(traced(&h.effects, "B", 100))
	})
	_, err := h.call("m", nil, nil)
	h.wants(err, "", 3)
	if diff := cmp.Diff([]string{"before A", "m", "after A"}, h.effects.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
