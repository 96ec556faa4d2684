package worker_test

import (
	"errors"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// Waiting makes a gated call.
func Waiting(ctx workflow.Context) error {
	_, err := temporal.Call[map[string]any](ctx, "test.gated", nil)
	return err
}

// Parent has a child that waits for an approval, under an id of its own choice.
func Parent(ctx workflow.Context, policy enums.ParentClosePolicy) error {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID: workflow.GetInfo(ctx).WorkflowExecution.ID + "-child", ParentClosePolicy: policy, WaitForCancellation: true,
	})
	return workflow.ExecuteChildWorkflow(ctx, Waiting).Get(ctx, nil)
}

// Launcher starts a child that outlives it as its last step, and ends when the
// child has begun.
func Launcher(ctx workflow.Context) error {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID: workflow.GetInfo(ctx).WorkflowExecution.ID + "-child", ParentClosePolicy: enums.PARENT_CLOSE_POLICY_ABANDON,
	})
	return workflow.ExecuteChildWorkflow(ctx, Waiting).GetChildWorkflowExecution().Get(ctx, nil)
}

// Scenario 79: whatever ends a parent while its child waits for an approval, no
// decision makes a dead child's module run, each decider is told that the run is
// closed, and no search finds the approval any more. A child that was started to
// outlive its parent is there, and its approval can still be decided.
func TestApprovalsOfADeadTree(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		policy enums.ParentClosePolicy
		end    func(s *site, run client.WorkflowRun) error
		status enums.WorkflowExecutionStatus
	}{
		"parent cancelled": {enums.PARENT_CLOSE_POLICY_TERMINATE, func(s *site, run client.WorkflowRun) error {
			return s.client.CancelWorkflow(s.t.Context(), run.GetID(), "")
		}, enums.WORKFLOW_EXECUTION_STATUS_CANCELED},
		"parent terminated": {enums.PARENT_CLOSE_POLICY_TERMINATE, func(s *site, run client.WorkflowRun) error {
			return s.client.TerminateWorkflow(s.t.Context(), run.GetID(), "", "test")
		}, enums.WORKFLOW_EXECUTION_STATUS_TERMINATED},
		"parent terminated, child asked to cancel": {enums.PARENT_CLOSE_POLICY_REQUEST_CANCEL, func(s *site, run client.WorkflowRun) error {
			return s.client.TerminateWorkflow(s.t.Context(), run.GetID(), "", "test")
		}, enums.WORKFLOW_EXECUTION_STATUS_CANCELED},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, Parent, Waiting)
			run := s.start(t.Context(), Parent, test.policy)
			child := run.GetID() + "-child"
			s.until("the child waits", func() bool { list, err := s.approvals.List(t.Context(), child); return err == nil && len(list) == 1 })
			approval := s.pending(child)
			must(t, test.end(s, run))
			if err := s.end(run, nil); err == nil {
				t.Error("the parent completed")
			}
			s.until("the child is closed", func() bool {
				description, err := s.client.DescribeWorkflow(t.Context(), child, "")
				return err == nil && description.Status == test.status
			})
			if err := s.approvals.Decide(t.Context(), child, approve(approval.ApprovalID)); !errors.Is(err, durable.CodeRunClosed) {
				t.Errorf("a decision about a dead run: %v", err)
			}
			list, err := s.approvals.List(t.Context(), child)
			must(t, err)
			if test.status == enums.WORKFLOW_EXECUTION_STATUS_CANCELED && list[0].Status != durable.ApprovalIsCancelled {
				t.Errorf("the approval of a cancelled child is %s", list[0].Status)
			}
			if s.ran.Load() != 0 {
				t.Errorf("%d effects", s.ran.Load())
			}
			s.until("no search finds it", func() bool {
				for pending, err := range s.approvals.Pending(t.Context(), temporal.PendingOptions{}) {
					if err != nil || strings.HasPrefix(pending.WorkflowID, run.GetID()) {
						return false
					}
				}
				return true
			})
		})
	}
}

// Scenario 79: a child that nobody waits for is born before its parent ends.
func TestAbandonedChildIsBorn(t *testing.T) {
	t.Parallel()
	s := newSite(t, Launcher, Waiting)
	run := s.start(t.Context(), Launcher)
	must(t, s.end(run, nil))
	child := run.GetID() + "-child"
	if _, err := s.client.DescribeWorkflow(t.Context(), child, ""); err != nil {
		t.Fatalf("there is no child after its parent's end: %v", err)
	}
	must(t, s.approvals.Decide(t.Context(), child, approve(s.pending(child).ApprovalID)))
	must(t, s.client.GetWorkflow(t.Context(), child, "").Get(t.Context(), nil))
	if s.ran.Load() != 1 {
		t.Errorf("%d effects", s.ran.Load())
	}
}
