package temporal_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

// awayHandler is a durable handler whose service is down for a while.
type awayHandler struct {
	*durable.ApprovalHandler
	requests, checks         int64 // how many of each fail
	askedRequest, askedCheck atomic.Int64
}

var errAway = errors.New("the approval service is away")

func (h *awayHandler) RequestApproval(ctx context.Context, request *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
	if h.askedRequest.Add(1) <= h.requests {
		return nil, errAway
	}
	return h.ApprovalHandler.RequestApproval(ctx, request)
}

func (h *awayHandler) CheckApproval(ctx context.Context, id string) (*apcore.ApprovalResult, error) {
	if h.askedCheck.Add(1) <= h.checks {
		return nil, errAway
	}
	return h.ApprovalHandler.CheckApproval(ctx, id)
}

// Scenario 45, adapter half: a handler that is unavailable for a request or a
// check is a failure that is tried again within bounds, in time the call goes on
// as if nothing had been, and otherwise it fails as what it is: neither a refusal
// nor a wait without end. Either way the module, which runs at most once, runs
// once or not at all.
func TestUnavailableHandlerIsTriedAgain(t *testing.T) {
	const always = 1 << 40
	for name, test := range map[string]struct {
		requests, checks int64
		fails            bool
	}{
		"away for two requests": {requests: 2},
		"away for two checks":   {checks: 2},
		"away for every request": {
			requests: always, fails: true,
		},
		"away for every check": {checks: always, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			book := &ledger{}
			handler := &awayHandler{ApprovalHandler: temporal.NewApprovalHandler(), requests: test.requests, checks: test.checks}
			env := testsuite.NewEnvironment(t, newExecutor(t, book, apcore.ExecutorOptions{ApprovalHandler: handler}))
			signal(env, decision(firstID(), apcore.ApprovalApproved), time.Second)
			env.ExecuteWorkflow(func(ctx workflow.Context) (map[string]any, error) {
				return temporal.Call[map[string]any](ctx, "pay.transfer", transfer{To: "A", Amount: 1})
			})
			err := temporal.AsError(env.GetWorkflowError())
			if !env.IsWorkflowCompleted() || (err != nil) != test.fails {
				t.Fatalf("ended %t with %v", env.IsWorkflowCompleted(), err)
			}
			if asked := handler.askedRequest.Load() + handler.askedCheck.Load(); asked > 20 || asked < 3 {
				t.Errorf("the handler was asked %d times", asked)
			}
			if test.fails {
				if err.Code != apcore.CodeModuleExecuteError || book.count() != 0 {
					t.Errorf("%s after %d effects: %v", err.Code, book.count(), err)
				}
				return
			}
			if book.count() != 1 {
				t.Errorf("%d effects", book.count())
			}
		})
	}
}

// Scenario 45: what a module says of an error within its output stays an output,
// and none of it makes the call wait or fail.
func TestErrorsInOutputsAreOutputs(t *testing.T) {
	given := map[string]any{"error": apcore.NewError(apcore.CodeApprovalPending, "later").Map(), "status": "approval_pending", "approval": map[string]any{"approval_id": "apr-x"}}
	executor := rawExecutor(t, apcore.Annotations{}, func(context.Context, map[string]any) (map[string]any, error) { return given, nil })
	env := testsuite.NewEnvironment(t, executor)
	env.ExecuteWorkflow(func(ctx workflow.Context) (map[string]any, error) {
		return temporal.Call[map[string]any](ctx, "test.raw", nil)
	})
	must(t, env.GetWorkflowError())
	var out map[string]any
	must(t, env.GetWorkflowResult(&out))
	if asJSON(t, out) != asJSON(t, given) || len(approvals(t, env)) != 0 {
		t.Errorf("output %v, approvals %v", out, approvals(t, env))
	}
}
