package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// breakers are the ways in which a module breaks, each after its effect.
func breakers() map[string]moduleFunc {
	var none map[string]any
	return map[string]moduleFunc{
		"text":          func(context.Context, map[string]any) (map[string]any, error) { panic("secret text") },
		"error":         func(context.Context, map[string]any) (map[string]any, error) { panic(errBoom) },
		"nil":           func(context.Context, map[string]any) (map[string]any, error) { panic(nil) }, //nolint:govet // that is the point
		"nil map write": func(context.Context, map[string]any) (map[string]any, error) { none["x"] = 1; return none, nil },
		"goexit":        func(context.Context, map[string]any) (map[string]any, error) { runtime.Goexit(); return none, nil },
		"output": func(context.Context, map[string]any) (map[string]any, error) {
			return map[string]any{"x": panics{}}, nil
		},
		"goroutine": func(ctx context.Context, _ map[string]any) (map[string]any, error) {
			c, _ := apcore.FromContext(ctx)
			return none, c.Go(ctx, func(context.Context) error { panic("secret text") })()
		},
		"goroutine's goexit": func(ctx context.Context, _ map[string]any) (map[string]any, error) {
			c, _ := apcore.FromContext(ctx)
			return none, c.Go(ctx, func(context.Context) error { runtime.Goexit(); return nil })()
		},
	}
}

// Scenario 49: however a module breaks, in a goroutine of its own too, the call
// ends with an error that names the module; it is repeated if the module may be;
// the worker goes on, and no stack or text of the panic is told.
func TestTheWorkerSurvivesPanics(t *testing.T) {
	t.Parallel()
	book := &ledger{}
	modules := []module{{id: "test.read", annotations: apcore.Annotations{Readonly: true}, run: actor(book)}}
	for name, breaks := range breakers() {
		counted := func(ctx context.Context, in map[string]any) (map[string]any, error) {
			lane, _ := in["lane"].(string)
			book.write(lane + name)
			return breaks(ctx, in)
		}
		id := strings.NewReplacer(" ", "_", "'", "").Replace(name)
		modules = append(modules, module{id: "once." + id, run: counted}, module{id: "safe." + id, annotations: apcore.Annotations{Readonly: true}, run: counted})
	}
	s := newQueue(t)
	s.work(executorOf(t, apcore.ExecutorOptions{}, modules...), worker.Options{}, OneCall)
	opts := temporal.CallOptions{Attempts: 2, RetryPolicy: &sdktemporal.RetryPolicy{InitialInterval: time.Millisecond}}
	var runs []client.WorkflowRun
	for _, m := range modules[1:] {
		runs = append(runs, s.start(t.Context(), OneCall, m.id, map[string]any{"lane": strings.SplitN(m.id, ".", 2)[0] + " "}, opts))
	}
	for at, run := range runs {
		e := temporal.AsError(s.end(run, nil))
		if e == nil || e.Code != apcore.CodeModuleExecuteError || e.ModuleID() != modules[at+1].id {
			t.Errorf("%s ended with %v", modules[at+1].id, e)
			continue
		}
		if text := e.Error() + temporal.AsError(e).Message; strings.Contains(text, "secret text") || strings.Contains(text, ".go:") {
			t.Errorf("%s tells too much: %s", modules[at+1].id, text)
		}
		s.noTaskFailed(run.GetID())
	}
	for name := range breakers() {
		if once, safe := book.count("once "+name), book.count("safe "+name); once != 1 || safe != 2 && name != "output" {
			t.Errorf("%s: at most once ran %d times, readonly %d times", name, once, safe)
		}
	}
	must(t, s.end(s.start(t.Context(), OneCall, "test.read", nil, temporal.CallOptions{}), nil))
}

// panicking panics wherever the core asks it.
type panicking struct{ apcore.BaseMiddleware }

func (panicking) CheckAccess(context.Context, apcore.AccessRequest) apcore.AccessDecision {
	panic("access")
}

func (panicking) RequestApproval(context.Context, *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
	panic("approval")
}

func (panicking) CheckApproval(context.Context, string) (*apcore.ApprovalResult, error) {
	panic("approval")
}

func (panicking) Before(context.Context, *apcore.MiddlewareCall) (map[string]any, error) {
	panic("before")
}

func (panicking) After(context.Context, *apcore.MiddlewareCall, map[string]any) (map[string]any, error) {
	panic("after")
}

// Scenario 49, around the module: a gate that panics lets nothing pass, and what
// panics after the module's effect is not repeated.
func TestPanicsAroundTheModule(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		opts apcore.ExecutorOptions
		want apcore.Code
		ran  int
	}{
		{"access", apcore.ExecutorOptions{AccessControl: panicking{}}, apcore.CodeACLDenied, 0},
		{"approval", apcore.ExecutorOptions{ApprovalHandler: panicking{}}, apcore.CodeInternal, 0},
		{"middleware", apcore.ExecutorOptions{Middleware: []apcore.Middleware{panicking{}}}, apcore.CodeInternal, 0},
		{"after", apcore.ExecutorOptions{Middleware: []apcore.Middleware{afterPanics{}}}, apcore.CodeInternal, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			book := &ledger{}
			s := newQueue(t)
			s.work(executorOf(t, test.opts, module{id: "test.charge", annotations: apcore.Annotations{RequiresApproval: test.name == "approval"}, run: actor(book)}), worker.Options{}, OneCall)
			run := s.start(t.Context(), OneCall, "test.charge", nil, temporal.CallOptions{RetryPolicy: quickly})
			err := s.end(run, nil)
			if codeOf(err) != test.want {
				t.Errorf("ended with %v, want %s", err, test.want)
			}
			if book.count("") != test.ran {
				t.Errorf("ran %d times, want %d", book.count(""), test.ran)
			}
			s.noTaskFailed(run.GetID())
		})
	}
}

type afterPanics struct{ apcore.BaseMiddleware }

func (afterPanics) After(context.Context, *apcore.MiddlewareCall, map[string]any) (map[string]any, error) {
	panic("after")
}

// listener keeps log lines of level error and above.
type listener struct {
	slog.Handler
	mu    sync.Mutex
	lines []string
}

func newListener() *listener { return &listener{Handler: slog.DiscardHandler} }

func (l *listener) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

func (l *listener) Handle(_ context.Context, record slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := record.Message
	record.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	l.lines = append(l.lines, text)
	return nil
}

func (l *listener) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l *listener) WithGroup(string) slog.Handler { return l }

func (l *listener) heard() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

// Target 28: an ordinary answer of governance is no fault: neither the SDK nor the
// core logs an error for it, wherever it falls. A fault is logged.
func TestDenialsAreNoErrorsInTheLog(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		opts apcore.ExecutorOptions
		call temporal.CallOptions
		in   map[string]any
		want apcore.Code
		loud bool
	}{
		{"denied by the handler", apcore.ExecutorOptions{ApprovalHandler: apcore.AlwaysDeny{}}, temporal.CallOptions{}, nil, apcore.CodeApprovalDenied, false},
		{"denied by the approver", apcore.ExecutorOptions{ApprovalHandler: temporal.NewApprovalHandler()}, temporal.CallOptions{}, nil, apcore.CodeApprovalDenied, false},
		{"nobody decides", apcore.ExecutorOptions{ApprovalHandler: temporal.NewApprovalHandler()}, temporal.CallOptions{ApprovalTimeout: time.Millisecond}, nil, apcore.CodeApprovalTimeout, false},
		{"no access", apcore.ExecutorOptions{ApprovalHandler: apcore.AutoApprove{}, AccessControl: closedDoor{}}, temporal.CallOptions{}, nil, apcore.CodeACLDenied, false},
		{"fault", apcore.ExecutorOptions{ApprovalHandler: apcore.AutoApprove{}}, temporal.CallOptions{}, map[string]any{"how": "fail"}, apcore.CodeModuleExecuteError, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ear := newListener()
			s := newQueue(t)
			s.client = testsuite.DevServer(t).Client(t, client.Options{Logger: log.NewStructuredLogger(slog.New(ear))})
			test.opts.Logger = slog.New(ear)
			s.work(executorOf(t, test.opts, module{id: "test.charge", annotations: apcore.Annotations{RequiresApproval: true}, run: actor(&ledger{})}), worker.Options{}, OneCall)
			run := s.start(t.Context(), OneCall, "test.charge", test.in, test.call)
			if test.name == "denied by the approver" {
				approval := s.pending(run.GetID())
				no := approve(approval.ApprovalID)
				no.Status = apcore.ApprovalRejected
				must(t, s.approvals.Decide(t.Context(), run.GetID(), no))
			}
			if err := s.end(run, nil); codeOf(err) != test.want {
				t.Errorf("ended with %v, want %s", err, test.want)
			}
			if lines := ear.heard(); (len(lines) > 0) != test.loud {
				t.Errorf("errors in the log: %q", lines)
			}
		})
	}
}

type closedDoor struct{}

func (closedDoor) CheckAccess(context.Context, apcore.AccessRequest) apcore.AccessDecision {
	return apcore.AccessDecision{Reason: "closed"}
}

// Pitfall 31: a failure that is retried shows as a failure with its attempts, not
// as a result; a module that returns an error as a value has not failed.
func TestFailuresShowAsFailures(t *testing.T) {
	t.Parallel()
	book := &ledger{}
	s := newQueue(t)
	release := make(chan struct{})
	s.work(executorOf(t, apcore.ExecutorOptions{},
		module{id: "test.read", annotations: apcore.Annotations{Readonly: true}, run: func(context.Context, map[string]any) (map[string]any, error) {
			if book.write("read") == 1 {
				return nil, errors.New("boom")
			}
			<-release
			return map[string]any{"error": map[string]any{"code": "ACME_BUSY"}}, nil
		}},
	), worker.Options{}, OneCall)
	run := s.start(t.Context(), OneCall, "test.read", nil, temporal.CallOptions{RetryPolicy: quickly})
	s.until("the second attempt shows the failure of the first", func() bool {
		described, err := s.client.DescribeWorkflow(t.Context(), run.GetID(), "")
		if err != nil || len(described.RawResponse.PendingActivities) == 0 {
			return false
		}
		pending := described.RawResponse.PendingActivities[0]
		return pending.Attempt == 2 && pending.LastFailure.GetApplicationFailureInfo().GetType() == string(apcore.CodeModuleExecuteError)
	})
	close(release)
	var out map[string]any
	must(t, s.end(run, &out))
	if out["error"] == nil || book.count("read") != 2 {
		t.Errorf("output %v after %d attempts", out, book.count("read"))
	}
}
