package apcore_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Scenario 37, core half: an attempt that its timer has ended goes on beside the
// retry. Who is not idempotent is not retried and commits once; who is gets the
// same key in every attempt, through its context, and can tell them apart from
// nothing else.
func TestTimedOutAttemptBesideTheRetry(t *testing.T) {
	for name, test := range map[string]struct {
		annotations apcore.Annotations
		quickFrom   int // the attempt from which the module is quick, 0 for none
		runs        int
		code        apcore.Code
	}{
		"not idempotent":           {runs: 1, code: apcore.CodeModuleTimeout},
		"idempotent":               {annotations: apcore.Annotations{Idempotent: true}, runs: 3, code: apcore.CodeModuleTimeout},
		"idempotent, second quick": {annotations: apcore.Annotations{Idempotent: true}, quickFrom: 2, runs: 2},
		"readonly":                 {annotations: apcore.Annotations{Readonly: true}, quickFrom: 2, runs: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				retry := newRetry(t, apcore.RetryOptions{MaxRetries: 2, RequireIdempotent: true, NoJitter: true})
				opts := with(retry)
				opts.DefaultTimeout = 2 * time.Second
				h, commits := newHost(t, opts), &ledger{}
				key := apcore.NewKey[string]("x-correlation-id")
				h.module("pay.charge", func(_ context.Context, in obj, c *apcore.Context) (obj, error) {
					attempt := h.effects.count()
					if in["amount"] != 5 {
						t.Errorf("attempt %d has the inputs %v", attempt, in)
					}
					in["amount"] = "spoiled" // its own copy
					if test.quickFrom == 0 || attempt < test.quickFrom {
						time.Sleep(4 * time.Second) // deaf to its context
						if !c.CancelToken().Cancelled() {
							t.Errorf("attempt %d is over but its token lives", attempt)
						}
					}
					own, _ := key.Get(c)
					commits.add("%s %v", own, c.CallChain())
					return obj{"attempt": attempt}, nil
				}, func(m *testModule) { m.annotations = test.annotations })
				caller := apcore.NewContext(apcore.ContextOptions{Data: obj{"x-correlation-id": "order-7"}})
				outcome, err := h.call("pay.charge", obj{"amount": 5}, caller)
				h.wants(err, test.code, test.runs)
				if !outcome.Started || test.code == "" && outcome.Output["attempt"] != test.quickFrom {
					t.Errorf("started %t, output %v", outcome.Started, outcome.Output)
				}
				time.Sleep(time.Minute)
				want := slices.Repeat([]string{"order-7 [pay.charge]"}, test.runs)
				if diff := cmp.Diff(want, commits.all()); diff != "" {
					t.Errorf("commits (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Scenario 46, core half: how the layers multiply, in numbers. The middleware's
// budget belongs to the call tree, which the attempts of a task share, so it is
// spent once and not once per attempt.
func TestRetryLayersMultiply(t *testing.T) {
	safe, unsafe := apcore.Annotations{Idempotent: true}, apcore.Annotations{Destructive: true}
	for name, test := range map[string]struct {
		annotations apcore.Annotations
		options     *apcore.RetryOptions
		tasks       int // retries of the task
		retryable   *bool
		runs        int
	}{
		"nobody retries":                    {annotations: safe, retryable: new(true), runs: 1},
		"the middleware alone":              {annotations: safe, options: &apcore.RetryOptions{MaxRetries: 3}, retryable: new(true), runs: 1 + 3},
		"the task alone":                    {annotations: safe, tasks: 2, retryable: new(true), runs: 1 + 2},
		"both":                              {annotations: safe, options: &apcore.RetryOptions{MaxRetries: 3}, tasks: 2, retryable: new(true), runs: (1 + 3) + 1 + 1},
		"both, the error does not know":     {annotations: safe, options: &apcore.RetryOptions{MaxRetries: 3}, tasks: 2, runs: 1 + 2},
		"both, the error forbids":           {annotations: safe, options: &apcore.RetryOptions{MaxRetries: 3}, tasks: 2, retryable: new(false), runs: 1 + 2},
		"destructive, middleware is asked":  {annotations: unsafe, options: &apcore.RetryOptions{MaxRetries: 3, RequireIdempotent: true}, retryable: new(true), runs: 1},
		"destructive, middleware is not":    {annotations: unsafe, options: &apcore.RetryOptions{MaxRetries: 3}, retryable: new(true), runs: 1 + 3},
		"destructive, and a task with none": {annotations: unsafe, options: &apcore.RetryOptions{MaxRetries: 3, RequireIdempotent: true}, tasks: 0, retryable: new(true), runs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var opts apcore.ExecutorOptions
				if test.options != nil {
					opts = with(newRetry(t, *test.options))
				}
				h := newHost(t, opts).module("work.fails", func(context.Context, obj, *apcore.Context) (obj, error) {
					return nil, apcore.NewError("WORK_BUSY", "busy").WithRetryable(test.retryable)
				}, func(m *testModule) { m.annotations = test.annotations })
				m := newTaskManager(t, h, apcore.AsyncTaskOptions{})
				config := apcore.DefaultRetryConfig()
				config.MaxRetries = test.tasks
				caller := apcore.NewContext(apcore.ContextOptions{})
				task, err := m.Submit(t.Context(), "work.fails", nil, caller, &config)
				must(t, err)
				time.Sleep(time.Hour)
				if info := wantStatus(t, m, task, apcore.TaskFailed); info.RetryCount != test.tasks {
					t.Errorf("%d retries of the task, want %d", info.RetryCount, test.tasks)
				}
				h.wants(nil, "", test.runs)
				if test.options == nil || name != "both" {
					return
				}
				// Another process starts with a full budget: the count stays behind.
				_, err = h.call("work.fails", nil, thaw(t, caller))
				h.wants(err, "WORK_BUSY", test.runs+1+3)
			})
		})
	}
}
