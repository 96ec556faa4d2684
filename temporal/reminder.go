package temporal

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/durable"
)

// reminders are what happens while an approval waits: a module is called that
// tells somebody, and the second level of approvers may decide.
type reminders struct {
	desk   *desk
	call   workflow.Context // outlives the wait
	ctx    workflow.Context
	stop   workflow.CancelFunc
	timers []*reminder
}

type reminder struct {
	timer workflow.Future // nil once it has rung
	ring  func()
}

// reminders starts the timers that the approval's rules ask for; without rules
// there are none.
func (d *desk) reminders(ctx workflow.Context, approval durable.Approval, rejoin bool) *reminders {
	r := &reminders{desk: d, call: ctx, stop: func() {}}
	remind, escalate := approval.Rules.RemindAfter(), approval.Rules.EscalateAfter()
	if remind == 0 && escalate == 0 {
		return r
	}
	r.ctx, r.stop = workflow.WithCancel(ctx)
	id := approval.ApprovalID
	rang := rejoin && !workflow.Now(ctx).Before(approval.RequestedAt.Add(remind))
	if remind > 0 && !rang {
		r.add(approval, remind, "reminder of approval "+id, func() {
			r.tell(approval.Rules.RemindModule, id)
		})
	}
	if escalate > 0 && !approval.Escalated {
		r.add(approval, escalate, "escalation of approval "+id, func() {
			if d.inbox.Escalate(id) {
				d.state.audit.event(ctx, durable.AuditEscalated, id)
				d.changed.SendAsync(true)
				r.tell(approval.Rules.EscalateModule, id)
			}
		})
	}
	return r
}

// add starts a timer that counts from the request, so that it rings once, however
// often the run was continued since.
func (r *reminders) add(approval durable.Approval, after time.Duration, summary string, ring func()) {
	left := approval.RequestedAt.Add(after).Sub(workflow.Now(r.ctx))
	r.timers = append(r.timers, &reminder{
		timer: workflow.NewTimerWithOptions(r.ctx, max(left, 0), workflow.TimerOptions{Summary: summary}), ring: ring,
	})
}

func (r *reminders) addTo(selector workflow.Selector) {
	for _, one := range r.timers {
		if one.timer == nil {
			continue
		}
		selector.AddFuture(one.timer, func(f workflow.Future) {
			one.timer = nil
			if f.Get(r.ctx, nil) == nil {
				one.ring()
			}
		})
	}
}

// tell calls a module about an approval and does not wait for it; a failure
// changes nothing about the approval.
func (r *reminders) tell(moduleID, approvalID string) {
	approval, ok := r.desk.inbox.Get(approvalID)
	if moduleID == "" || !ok {
		return
	}
	workflowID := r.desk.state.info.WorkflowExecution.ID
	workflow.Go(r.call, func(ctx workflow.Context) {
		_, err := CallRaw(WithCallOptions(ctx, CallOptions{}), moduleID, map[string]any{"approval": approval.Head(), "workflow_id": workflowID})
		if err != nil {
			workflow.GetLogger(ctx).Warn("apcore: nobody could be told that an approval waits", "approval_id", approvalID, "module_id", moduleID, "error", err)
		}
	})
}
