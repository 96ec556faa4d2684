package apcore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// failingHandler cannot answer.
type failingHandler struct {
	asked ledger
	fail  func(ctx context.Context) error
}

func (h *failingHandler) RequestApproval(ctx context.Context, _ *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
	h.asked.add("request")
	return nil, h.fail(ctx)
}

func (h *failingHandler) CheckApproval(ctx context.Context, _ string) (*apcore.ApprovalResult, error) {
	h.asked.add("check")
	return nil, h.fail(ctx)
}

// Scenario 45, core half: a handler that is unavailable is neither a refusal nor
// a wait. Its error goes out as it is, nothing runs, no hook is told, and the same
// call succeeds once the handler is back.
func TestUnavailableHandler(t *testing.T) {
	for name, test := range map[string]struct {
		fail      func(ctx context.Context) error
		code      apcore.Code
		retryable *bool
	}{
		"foreign error": {func(context.Context) error { return errors.New("connection refused") }, apcore.CodeModuleExecuteError, nil},
		"own error":     {func(context.Context) error { return apcore.NewTaskStoreError("get", errors.New("down")) }, apcore.CodeTaskStoreUnavailable, new(true)},
		"its own timeout": {func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Nanosecond)
			defer cancel()
			<-ctx.Done()
			return ctx.Err()
		}, apcore.CodeModuleTimeout, new(true)},
		"a wait as an error": {func(context.Context) error { return apcore.NewError(apcore.CodeApprovalPending, "later") }, apcore.CodeApprovalPending, new(false)},
	} {
		for entry, inputs := range map[string]obj{"request": {"n": 1}, "check": {"n": 1, apcore.ApprovalTokenKey: "id-1"}} {
			t.Run(name+"/"+entry, func(t *testing.T) {
				told, events := 0, 0
				handler := &failingHandler{fail: test.fail}
				h := newHost(t, apcore.ExecutorOptions{
					ApprovalHandler: handler,
					OnEvent:         func(apcore.Event) { events++ },
					Middleware: []apcore.Middleware{&hook{
						before: func(*apcore.MiddlewareCall) (obj, error) { told++; return nil, nil },
						onError: func(*apcore.MiddlewareCall, *apcore.Error) (*apcore.Recovery, error) {
							told++
							return &apcore.Recovery{Retry: &apcore.RetrySignal{}}, nil
						},
					}},
				}).module("m", nil, gated)
				outcome, err := h.call("m", inputs, nil)
				h.wants(err, test.code, 0)
				if outcome.Output != nil || outcome.Started || told != 0 || events != 0 {
					t.Errorf("output %v, started %t, %d hooks, %d events", outcome.Output, outcome.Started, told, events)
				}
				if got := apcore.AsError(err).Retryable; (got == nil) != (test.retryable == nil) || got != nil && *got != *test.retryable {
					t.Errorf("retryable %v", got)
				}
				if id, pending := apcore.PendingApproval(err); pending {
					t.Errorf("a failure waits for %q", id)
				}
				h.SetApprovalHandler(approves())
				_, err = h.call("m", inputs, nil)
				h.wants(err, "", 1)
			})
		}
	}
}

// Scenario 45: a module that puts an error into its output has not failed, and
// gets no further than its output schema.
func TestErrorInOutput(t *testing.T) {
	closed := obj{"type": "object", "properties": obj{"ok": obj{"type": "boolean"}}, "required": []any{"ok"}, "additionalProperties": false}
	for name, output := range map[string]obj{
		"text": {"error": "service unavailable"}, "wire form": {"error": apcore.NewError("DOWN", "down").Map()},
		"error value": {"error": errors.New("down")}, "pending": {"error": &apcore.ApprovalError{Err: apcore.NewError(apcore.CodeApprovalPending, "later")}},
	} {
		h := newHost(t, apcore.ExecutorOptions{}).module("m", func(context.Context, obj, *apcore.Context) (obj, error) { return output, nil }, outputSchema(closed))
		outcome, err := h.call("m", nil, nil)
		if err == nil || outcome.Output != nil || apcore.CodeOf(err) == apcore.CodeApprovalPending {
			t.Errorf("%s: output %v, %v", name, outcome.Output, err)
		}
	}
}
