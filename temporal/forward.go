package temporal

import (
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/durable"
)

// A child workflow can show its approvals at the root of its tree as well, for a
// call with CallOptions.ApproveAtRoot. The child owns the approval, with its
// deadline; the root keeps a copy and passes on what is decided there. Both
// directions are signals, and what crosses on the way is settled by the child:
// its first decision wins.

// forward tells the root about an approval as it stands in this run.
func (s *state) forward(ctx workflow.Context, id string) {
	root := s.info.RootWorkflowExecution
	approval, ok := s.desk.inbox.Get(id)
	if !ok || root == nil || root.ID == s.info.WorkflowExecution.ID {
		return
	}
	approval.WorkflowID = s.info.WorkflowExecution.ID
	s.signal(ctx, root.ID, s.opts.Namer.Forward(), approval)
}

// signal does not wait, but the run does before it ends: the server drops what a
// closed run has not sent yet. A run that is gone needs to know nothing.
func (s *state) signal(ctx workflow.Context, workflowID, name string, arg any) {
	detached, _ := workflow.NewDisconnectedContext(ctx)
	sent := workflow.SignalExternalWorkflow(detached, workflowID, "", name, arg)
	s.sending++
	workflow.GoNamed(detached, "apcore-forward", func(ctx workflow.Context) {
		defer func() { s.sending-- }()
		if err := sent.Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Info("apcore: a workflow of the tree could not be told about an approval", "workflow_id", workflowID, "error", err)
		}
	})
}

// sent waits until every signal has reached its run.
func (s *state) sent(ctx workflow.Context) {
	_ = workflow.Await(ctx, func() bool { return s.sending == 0 }) // ctx is detached, it cannot be cancelled
}

// onForward keeps the copy of a child's approval up to date.
func (d *desk) onForward(ctx workflow.Context, raw converter.RawValue) {
	var approval durable.Approval
	if err := decodeJSON(raw, &approval); err != nil || approval.ApprovalID == "" || approval.WorkflowID == "" {
		workflow.GetLogger(ctx).Warn("apcore: a signal carries no approval of a child and is ignored", "error", err)
		return
	}
	approval.Audit, approval.Listed = false, false // the child reports and is listed
	for _, early := range d.inbox.Copy(approval, workflow.Now(ctx)) {
		d.passOn(ctx, early)
	}
}

// passOn sends a decision about a child's approval to the child.
func (d *desk) passOn(ctx workflow.Context, decision durable.Decision) {
	approval, ok := d.inbox.Get(decision.ApprovalID)
	if ok && approval.WorkflowID != "" {
		d.state.signal(ctx, approval.WorkflowID, d.state.opts.Namer.Approval(), decision)
	}
}
