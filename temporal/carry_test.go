package temporal_test

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

// ownIDs is an application's handler with ids of its own; it asks until told.
type ownIDs struct{}

func (ownIDs) RequestApproval(context.Context, *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
	return &apcore.ApprovalResult{Status: apcore.ApprovalPending, ApprovalID: "ticket-7"}, nil
}

func (ownIDs) CheckApproval(_ context.Context, id string) (*apcore.ApprovalResult, error) {
	return &apcore.ApprovalResult{Status: apcore.ApprovalApproved, ApprovalID: id, ApprovedBy: "desk"}, nil
}

// Target 12: an application's own handler works too, and a decision about its
// ticket may come before the call that asks for it.
func TestOwnHandler(t *testing.T) {
	book := &ledger{}
	env := testsuite.NewEnvironment(t, newExecutor(t, book, apcore.ExecutorOptions{ApprovalHandler: ownIDs{}}))
	signal(env, decision("ticket-7", apcore.ApprovalApproved), 0)
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		must(t, workflow.Sleep(ctx, time.Minute))
		_, err := temporal.Call[map[string]any](ctx, "pay.transfer", transfer{To: "A", Amount: 1})
		return err
	})
	must(t, env.GetWorkflowError())
	if book.count() != 1 {
		t.Errorf("%d effects", book.count())
	}
}
