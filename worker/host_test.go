package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// ledger counts effects by name.
type ledger struct {
	mu    sync.Mutex
	lines map[string]int
}

func (l *ledger) write(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines == nil {
		l.lines = map[string]int{}
	}
	l.lines[name]++
	return l.lines[name]
}

func (l *ledger) count(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines[name]
}

func (l *ledger) all() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.lines)
}

// moduleFunc is what test modules are made of.
type moduleFunc = func(context.Context, map[string]any) (map[string]any, error)

// module is one test module without schemas.
type module struct {
	id          string
	annotations apcore.Annotations
	timeout     time.Duration
	run         moduleFunc
}

// executorOf hosts modules that take and return what they like.
func executorOf(t testing.TB, opts apcore.ExecutorOptions, modules ...module) *apcore.Executor {
	t.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	for _, m := range modules {
		made, err := apcore.NewRawFunc(m.run, apcore.Spec{Description: "Does as told", Annotations: m.annotations, Timeout: m.timeout, InputSchema: map[string]any{}, OutputSchema: map[string]any{}})
		must(t, err)
		must(t, registry.Register(m.id, made, apcore.RegisterOptions{}))
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	executor, err := apcore.NewExecutor(registry, opts)
	must(t, err)
	return executor
}

// newQueue is a place on the server without a worker.
func newQueue(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, queue: "queue-" + uuid.NewString(), client: testsuite.DevServer(t).Client(t, client.Options{})}
	var err error
	s.approvals, err = temporal.NewApprovals(s.client, temporal.ApprovalsOptions{Timeout: time.Minute})
	must(t, err)
	return s
}

// work starts a worker on the queue and returns how to stop it, which may be
// called often.
func (s *site) work(executor *apcore.Executor, opts worker.Options, fns ...any) (stop func()) {
	s.t.Helper()
	if opts.StopTimeout == 0 {
		opts.StopTimeout = time.Second
	}
	w, err := worker.New(s.client, s.queue, executor, opts)
	must(s.t, err)
	for _, fn := range fns {
		w.Registry().RegisterWorkflow(fn)
	}
	must(s.t, w.Start())
	stop = sync.OnceFunc(w.Stop)
	s.t.Cleanup(stop)
	return stop
}

// scheduled are the activities of a run, in order.
func (s *site) scheduled(id string) []*historypb.ActivityTaskScheduledEventAttributes {
	s.t.Helper()
	var list []*historypb.ActivityTaskScheduledEventAttributes
	for _, event := range testsuite.History(s.t, s.client, id).Events {
		if attributes := event.GetActivityTaskScheduledEventAttributes(); attributes != nil {
			list = append(list, attributes)
		}
	}
	return list
}

// until waits for something that has no event to wait on.
func (s *site) until(what string, done func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if done() {
			return
		}
	}
	s.t.Fatal("never happened: " + what)
}

// codeOf is the code of a failed run, empty for none.
func codeOf(err error) apcore.Code {
	if e := temporal.AsError(err); e != nil {
		return e.Code
	}
	return ""
}

// noTaskFailed reports workflow tasks that failed, which may loop for ever. One
// whose commands the server did not take, because something happened meanwhile, is
// nobody's fault and done again.
func (s *site) noTaskFailed(id string) {
	s.t.Helper()
	for _, event := range testsuite.History(s.t, s.client, id).Events {
		failed := event.GetWorkflowTaskFailedEventAttributes()
		if failed != nil && failed.Cause != enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND {
			s.t.Errorf("a workflow task of %s failed: %s %s", id, failed.Cause, failed.GetFailure().GetMessage())
		}
	}
}

var errBoom = errors.New("boom")

// OneCall is a workflow of one call.
func OneCall(ctx workflow.Context, id string, in map[string]any, opts temporal.CallOptions) (map[string]any, error) {
	return temporal.Call[map[string]any](temporal.WithCallOptions(ctx, opts), id, in)
}

// startOptions are those of a workflow that the server may retry.
func startOptions(queue string, policy *sdktemporal.RetryPolicy) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{ID: "run-" + uuid.NewString(), TaskQueue: queue, RetryPolicy: policy}
}
