package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	historypb "go.temporal.io/api/history/v1"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// policyOf writes down how the server was told to run an activity.
func policyOf(a *historypb.ActivityTaskScheduledEventAttributes) string {
	return fmt.Sprintf("attempts %d, %v*%v<=%v, start %v, wait %v, all %v, heartbeat %v, priority %d %s %v",
		a.RetryPolicy.MaximumAttempts, a.RetryPolicy.InitialInterval.AsDuration(), a.RetryPolicy.BackoffCoefficient, a.RetryPolicy.MaximumInterval.AsDuration(),
		a.StartToCloseTimeout.AsDuration(), a.ScheduleToStartTimeout.AsDuration(), a.ScheduleToCloseTimeout.AsDuration(), a.HeartbeatTimeout.AsDuration(),
		a.Priority.GetPriorityKey(), a.Priority.GetFairnessKey(), a.Priority.GetFairnessWeight())
}

// EveryCombination calls the module of each combination of annotations, and one
// that nobody has.
func EveryCombination(ctx workflow.Context) error {
	var calls []*temporal.Future[map[string]any]
	for bits := range 16 {
		calls = append(calls, temporal.CallAsync[map[string]any](ctx, "test.m"+strconv.Itoa(bits), nil))
	}
	ctx = temporal.WithCallOptions(ctx, temporal.CallOptions{RetryPolicy: &sdktemporal.RetryPolicy{InitialInterval: time.Millisecond}})
	calls = append(calls, temporal.CallAsync[map[string]any](ctx, "test.unknown", nil))
	for _, call := range calls {
		_, _ = call.Get(ctx) // all fail
	}
	return nil
}

// Scenario 36, target 24: what the server is told for every combination of
// annotations; the number of attempts is never left to it, for zero is unlimited
// there. Each module always fails and is not retryable, so each is scheduled once.
func TestTheServerIsToldEveryBound(t *testing.T) {
	t.Parallel()
	var modules []module
	fails := func(context.Context, map[string]any) (map[string]any, error) {
		return nil, apcore.NewError("ACME_BAD", "bad").WithRetryable(new(false))
	}
	for bits := range 16 {
		modules = append(modules, module{id: "test.m" + strconv.Itoa(bits), run: fails, annotations: apcore.Annotations{
			Readonly: bits&8 > 0, Destructive: bits&4 > 0, Idempotent: bits&2 > 0, RequiresApproval: bits&1 > 0,
		}})
	}
	s := newQueue(t)
	s.work(executorOf(t, apcore.ExecutorOptions{ApprovalHandler: apcore.AutoApprove{}}, modules...), worker.Options{}, EveryCombination)
	run := s.start(t.Context(), EveryCombination)
	must(t, s.end(run, nil))
	s.noTaskFailed(run.GetID())
	const (
		repeats = "attempts 6, 1s*2<=1m0s, start 40s, wait 1h0m0s, all 1h0m0s, heartbeat 10s, priority 0  0"
		once    = "attempts 1, 1s*2<=1m0s, start 40s, wait 1h0m0s, all 0s, heartbeat 10s, priority 0  0"
	)
	seen := map[string]bool{}
	for _, a := range s.scheduled(run.GetID()) {
		var request durable.CallRequest
		must(t, json.Unmarshal(a.Input.Payloads[0].Data, &request))
		bits, known := 0, request.ModuleID != "test.unknown"
		if known {
			_, err := fmt.Sscanf(request.ModuleID, "test.m%d", &bits)
			must(t, err)
		}
		want := once
		if safe := bits&8 > 0 && bits&4 == 0; known && (safe || bits&2 > 0) || request.Ask {
			want = repeats
		}
		got := policyOf(a)
		if known && got != want {
			t.Errorf("%s (ask %t): %s, want %s", request.ModuleID, request.Ask, got, want)
		}
		if !known && a.RetryPolicy.MaximumAttempts != 1 || a.StartToCloseTimeout.AsDuration() <= 0 || a.HeartbeatTimeout.AsDuration() <= 0 {
			t.Errorf("%s: %s", request.ModuleID, got)
		}
		if missing := slices.DeleteFunc(durable.NeverRetried(), func(code string) bool { return slices.Contains(a.RetryPolicy.NonRetryableErrorTypes, code) }); len(missing) > 0 {
			t.Errorf("%s: the server may retry %q", request.ModuleID, missing)
		}
		seen[request.ModuleID] = true
	}
	if len(seen) != 17 {
		t.Errorf("scheduled %d modules", len(seen))
	}
}

// ThreeWays calls one module with the module's settings alone and with two
// callers' options.
func ThreeWays(ctx workflow.Context, queue string) error {
	policy := &sdktemporal.RetryPolicy{MaximumAttempts: 3, InitialInterval: 10 * time.Millisecond, NonRetryableErrorTypes: []string{"ACME_B"}}
	before := *policy
	for _, opts := range []temporal.CallOptions{
		{},
		{RetryPolicy: policy, StartToClose: time.Second, Priority: 1, ScheduleToClose: time.Minute},
		{RetryPolicy: policy, Attempts: 2, FairnessKey: "caller", FairnessWeight: 2.5, TaskQueue: queue, ScheduleToStart: time.Minute, Heartbeat: time.Second},
	} {
		if _, err := temporal.Call[map[string]any](temporal.WithCallOptions(ctx, opts), "test.set", nil); err != nil {
			return err
		}
	}
	if diff := cmp.Diff(before, *policy); diff != "" {
		return fmt.Errorf("the caller's policy was changed: %s", diff)
	}
	return nil
}

// Options of a call go over what the module says, which goes over the defaults;
// error types add up.
func TestOptionsGoOverSettings(t *testing.T) {
	t.Parallel()
	s := newQueue(t)
	s.work(executorOf(t, apcore.ExecutorOptions{}, module{id: "test.set", run: actor(&ledger{}), annotations: apcore.Annotations{Readonly: true, Extra: map[string]any{"x-temporal": map[string]any{
		"start_to_close_ms": 5000, "attempts": 4, "priority": 2, "fairness_key": "module", "task_queue": s.queue, "never_retry": []any{"ACME_A"}, "backoff_ms": 20, "max_backoff_ms": 3000, "backoff_coefficient": 3,
	}}}}), worker.Options{}, ThreeWays)
	run := s.start(t.Context(), ThreeWays, s.queue)
	must(t, s.end(run, nil))
	want := []string{
		"attempts 4, 20ms*3<=3s, start 5s, wait 1h0m0s, all 1h0m0s, heartbeat 5s, priority 2 module 0", // the server cuts a heartbeat to the attempt
		"attempts 3, 10ms*3<=3s, start 1s, wait 1m0s, all 1m0s, heartbeat 1s, priority 1 module 0",
		"attempts 2, 10ms*3<=3s, start 5s, wait 1m0s, all 1h0m0s, heartbeat 1s, priority 2 caller 2.5",
	}
	var got []string
	for at, a := range s.scheduled(run.GetID()) {
		got = append(got, policyOf(a))
		types := a.RetryPolicy.NonRetryableErrorTypes
		if !slices.Contains(types, "ACME_A") || slices.Contains(types, "ACME_B") != (at > 0) || len(types) <= len(durable.NeverRetried()) {
			t.Errorf("call %d: never retried %q", at, types)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// shop is a server that says when to come back.
type shop struct {
	*httptest.Server
	mu    sync.Mutex
	times []time.Time
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.times = append(s.times, time.Now()); len(s.times) == 1 {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *shop) asked() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.times)
}

// visit is a module whose client does not retry by itself.
func (s *shop) visit(ctx context.Context, _ map[string]any) (map[string]any, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.Client().Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it is empty
	if response.StatusCode == http.StatusOK {
		return map[string]any{"ok": true}, nil
	}
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil {
		return nil, err
	}
	return nil, apcore.NewError("SHOP_CLOSED", "the shop is closed").WithRetryAfter(time.Duration(seconds) * time.Second)
}

// Target 28, pitfall 32: a server that says 7 s is not asked again earlier, and it
// is asked once for each attempt.
func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	for _, execution := range []durable.Execution{durable.ExecutionActivity, durable.ExecutionLocal} {
		opts := temporal.CallOptions{Execution: execution, RetryPolicy: &sdktemporal.RetryPolicy{InitialInterval: 10 * time.Millisecond}}
		t.Run("environment, "+string(execution), func(t *testing.T) {
			t.Parallel()
			closed := newShop(t)
			env := testsuite.NewEnvironment(t, executorOf(t, apcore.ExecutorOptions{}, module{id: "shop.visit", annotations: apcore.Annotations{Readonly: true}, run: closed.visit}))
			env.ExecuteWorkflow(func(ctx workflow.Context) (time.Duration, error) {
				begin := workflow.Now(ctx)
				_, err := OneCall(ctx, "shop.visit", nil, opts)
				return workflow.Now(ctx).Sub(begin), err
			})
			must(t, env.GetWorkflowError())
			var waited time.Duration
			must(t, env.GetWorkflowResult(&waited))
			if len(closed.asked()) != 2 || waited < 7*time.Second {
				t.Errorf("asked %d times within %v", len(closed.asked()), waited)
			}
		})
		t.Run("server, "+string(execution), func(t *testing.T) {
			t.Parallel()
			closed := newShop(t)
			s := newQueue(t)
			s.work(executorOf(t, apcore.ExecutorOptions{}, module{id: "shop.visit", annotations: apcore.Annotations{Readonly: true}, run: closed.visit}), worker.Options{}, OneCall)
			run := s.start(t.Context(), OneCall, "shop.visit", nil, opts)
			must(t, s.end(run, nil))
			asked := closed.asked()
			if len(asked) != 2 {
				t.Fatalf("asked %d times", len(asked))
			}
			if waited := asked[1].Sub(asked[0]); waited < 6900*time.Millisecond { // the server counts from the end of the attempt, in its own clock
				t.Errorf("came back after %v", waited)
			}
		})
	}
}

// The wait that a failure before the start asks for is kept between two units of a
// module that runs at most once.
func TestRetryAfterBeforeTheStart(t *testing.T) {
	book := &ledger{}
	limited := limiter{after: 42 * time.Second, book: book}
	env := testsuite.NewEnvironment(t, executorOf(t, apcore.ExecutorOptions{Middleware: []apcore.Middleware{limited}}, module{id: "test.charge", run: actor(book)}))
	env.ExecuteWorkflow(func(ctx workflow.Context) (time.Duration, error) {
		begin := workflow.Now(ctx)
		_, err := OneCall(ctx, "test.charge", nil, temporal.CallOptions{})
		return workflow.Now(ctx).Sub(begin), err
	})
	must(t, env.GetWorkflowError())
	var waited time.Duration
	must(t, env.GetWorkflowResult(&waited))
	if waited != 42*time.Second || book.count("") != 1 {
		t.Errorf("waited %v, %d effects", waited, book.count(""))
	}
}

// limiter lets the second call pass.
type limiter struct {
	apcore.BaseMiddleware
	after time.Duration
	book  *ledger
}

func (l limiter) Before(context.Context, *apcore.MiddlewareCall) (map[string]any, error) {
	if l.book.write("limited") == 1 {
		return nil, apcore.NewError(apcore.CodeCircuitBreakerOpen, "too many").WithRetryAfter(l.after)
	}
	return nil, nil
}
