package worker_test

import (
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// Leaf makes the gated call at the end of a branch.
func Leaf(ctx workflow.Context, timeout time.Duration) error {
	ctx = temporal.WithCallOptions(ctx, temporal.CallOptions{ApproveAtRoot: true, ApprovalTimeout: timeout})
	_, err := temporal.Call[map[string]any](ctx, "test.gated", nil)
	return err
}

// Branch puts one more level between.
func Branch(ctx workflow.Context, id string, timeout time.Duration) error {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: id})
	return workflow.ExecuteChildWorkflow(ctx, Leaf, timeout).Get(ctx, nil)
}

// Tree has two branches of depth 3. When they are done it waits for a signal, so
// that its approvals can be looked at.
func Tree(ctx workflow.Context, timeout time.Duration) error {
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	a := workflow.ExecuteChildWorkflow(ctx, Branch, id+"-a", timeout)
	b := workflow.ExecuteChildWorkflow(ctx, Branch, id+"-b", timeout)
	err := errors.Join(a.Get(ctx, nil), b.Get(ctx, nil))
	workflow.GetSignalChannel(ctx, "end").Receive(ctx, nil)
	return err
}

// byLeaf waits until the root shows every leaf's approval in the given state.
func (s *site) byLeaf(rootID string, count int, state durable.ApprovalState) map[string]durable.Approval {
	s.t.Helper()
	found := map[string]durable.Approval{}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		list, err := s.approvals.List(s.t.Context(), rootID)
		if err != nil {
			continue // the run has not begun
		}
		clear(found)
		for _, approval := range list {
			if approval.Status == state {
				found[approval.WorkflowID] = approval
			}
		}
		if len(found) == count {
			return found
		}
	}
	s.t.Fatalf("the root shows %v in state %s, want %d", found, state, count)
	return nil
}

// Target 20: a request two levels below is visible at the root, and can be
// decided there or at the leaf that owns it.
func TestApprovalsOfATree(t *testing.T) {
	t.Parallel()
	s := newSite(t, Tree, Branch, Leaf)
	run := s.start(t.Context(), Tree, time.Hour)
	shown := s.byLeaf(run.GetID(), 2, durable.ApprovalIsPending)
	a, b := shown[run.GetID()+"-a"], shown[run.GetID()+"-b"]
	must(t, s.approvals.Decide(t.Context(), run.GetID(), approve(a.ApprovalID)))
	must(t, s.approvals.Decide(t.Context(), run.GetID()+"-b", approve(b.ApprovalID)))
	s.byLeaf(run.GetID(), 2, durable.ApprovalIsApproved)
	if err := s.approvals.Decide(t.Context(), run.GetID(), approve(b.ApprovalID)); !errors.Is(err, durable.CodeDecisionDuplicate) {
		t.Errorf("a second decision at the root: %v", err)
	}
	must(t, s.client.SignalWorkflow(t.Context(), run.GetID(), "", "end", nil))
	must(t, s.end(run, nil))
	if s.ran.Load() != 2 {
		t.Errorf("%d effects of 2 leaves", s.ran.Load())
	}
}

// What ends at a leaf without a decision ends at the root as well.
func TestExpiryOfATree(t *testing.T) {
	t.Parallel()
	s := newSite(t, Tree, Branch, Leaf)
	run := s.start(t.Context(), Tree, time.Second)
	expired := s.byLeaf(run.GetID(), 2, durable.ApprovalIsTimeout)
	for _, approval := range expired {
		if err := s.approvals.Decide(t.Context(), run.GetID(), approve(approval.ApprovalID)); !errors.Is(err, durable.CodeDecisionLate) {
			t.Errorf("late at the root: %v", err)
		}
	}
	must(t, s.client.SignalWorkflow(t.Context(), run.GetID(), "", "end", nil))
	if err := s.end(run, nil); err == nil || s.ran.Load() != 0 {
		t.Errorf("error %v, %d effects", err, s.ran.Load())
	}
}
