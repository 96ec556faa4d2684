package temporal

import (
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// desk is the approvals inbox of one run with its doors: the signal and the
// update that bring decisions, the query that lists, and the deadlines.
type desk struct {
	state   *state
	inbox   *durable.Inbox
	waits   []*wait
	changed workflow.Channel
	signals workflow.ReceiveChannel
	copies  workflow.ReceiveChannel // approvals of children
	shown   string                  // what was published last
}

// wait is one call that waits for one approval.
type wait struct {
	id       string
	deadline time.Time
	expiry   workflow.Future // nil without a deadline
	stop     workflow.CancelFunc
	done     workflow.Channel
}

func newDesk(ctx workflow.Context, s *state, inherited durable.InboxState) *desk {
	names := s.opts.Namer
	inbox := durable.NewInbox(inherited)
	for _, c := range s.inherited {
		if c.Approval != nil {
			inbox.Rejoin(*c.Approval)
		}
	}
	return &desk{
		state:   s,
		inbox:   inbox,
		changed: workflow.NewBufferedChannel(ctx, 1),
		signals: workflow.GetSignalChannel(ctx, names.Approval()),
		copies:  workflow.GetSignalChannel(ctx, names.Forward()),
	}
}

// open installs the doors before the workflow's first step.
func (d *desk) open(ctx workflow.Context, names durable.Namer) error {
	err := workflow.SetQueryHandlerWithOptions(ctx, names.Approvals(), func(approvalID string) ([]durable.Approval, error) {
		return d.answer(approvalID), nil
	}, workflow.QueryHandlerOptions{Description: "every approval of this run in the order they were asked, or the one whose id is given"})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, names.Approval(), d.onUpdate, workflow.UpdateHandlerOptions{
		Validator:   d.validateUpdate,
		Description: "decide a pending approval",
	})
	if err != nil {
		return err
	}
	detached, _ := workflow.NewDisconnectedContext(ctx)
	workflow.GoNamed(detached, "apcore-approvals", d.listen)
	return nil
}

// listen handles signals and deadlines in the order of the history. It is one
// coroutine for both, because only a selector that was waiting when something
// happened knows what came first: an approval signalled before the deadline
// counts even if no worker was there to see it.
func (d *desk) listen(ctx workflow.Context) {
	for {
		selector := workflow.NewSelector(ctx)
		waited := false
		selector.AddReceive(d.signals, func(c workflow.ReceiveChannel, _ bool) {
			var raw converter.RawValue
			if c.ReceiveAsync(&raw) {
				d.onSignal(ctx, raw, waited)
			}
		})
		selector.AddReceive(d.copies, func(c workflow.ReceiveChannel, _ bool) {
			var raw converter.RawValue
			if c.ReceiveAsync(&raw) {
				d.onForward(ctx, raw)
			}
		})
		selector.AddReceive(d.changed, func(c workflow.ReceiveChannel, _ bool) { c.ReceiveAsync(nil) })
		for _, w := range d.waits {
			if w.expiry != nil {
				selector.AddFuture(w.expiry, func(f workflow.Future) { d.onExpiry(ctx, w, f) })
			}
		}
		d.publish(ctx)
		waited = !selector.HasPending()
		selector.Select(ctx)
	}
}

// onSignal never loses a decision silently: what is not accepted is noted in
// the inbox. first says that nothing came before it in this task, so that a
// deadline that has passed meanwhile came after it.
func (d *desk) onSignal(ctx workflow.Context, raw converter.RawValue, first bool) {
	var decision durable.Decision
	if err := decodeJSON(raw, &decision); err != nil {
		workflow.GetLogger(ctx).Warn("apcore: a signal carries no decision and is ignored", "error", err)
		return
	}
	if err := d.decide(ctx, decision, d.arrival(ctx, decision.ApprovalID, first)); err != nil {
		workflow.GetLogger(ctx).Info("apcore: a decision changes nothing", "approval_id", decision.ApprovalID, "error", err)
	}
}

func (d *desk) arrival(ctx workflow.Context, id string, first bool) time.Time {
	now := workflow.Now(ctx)
	w := d.find(id)
	if first && w != nil && w.expiry != nil && !now.Before(w.deadline) {
		return w.deadline.Add(-1)
	}
	return now
}

func decodeJSON(raw converter.RawValue, target any) error {
	payload := raw.Payload()
	if payload == nil {
		return fmt.Errorf("it is empty")
	}
	return json.Unmarshal(payload.GetData(), target)
}

func (d *desk) validateUpdate(ctx workflow.Context, decision durable.Decision) error {
	return workflowError(d.inbox.Check(decision, workflow.Now(ctx)))
}

func (d *desk) onUpdate(ctx workflow.Context, decision durable.Decision) error {
	return workflowError(d.decide(ctx, decision, workflow.Now(ctx)))
}

// decide wakes the call unless the decision was one vote of several.
func (d *desk) decide(ctx workflow.Context, decision durable.Decision, now time.Time) error {
	if err := d.inbox.Decide(decision, now); err != nil {
		return err
	}
	d.passOn(ctx, decision)
	if _, decided := d.inbox.Decision(decision.ApprovalID); decided {
		d.state.audit.ended(ctx, decision.ApprovalID)
		d.wake(decision.ApprovalID)
	}
	return nil
}

func (d *desk) onExpiry(ctx workflow.Context, w *wait, expiry workflow.Future) {
	if !expiry.IsReady() || d.find(w.id) != w {
		return
	}
	if expiry.Get(ctx, nil) != nil { // the call was cancelled, and its timer with it
		w.expiry = nil
		return
	}
	d.inbox.Expire(w.id)
	d.state.audit.ended(ctx, w.id)
	d.wake(w.id)
}

func (d *desk) withdrawAll(ctx workflow.Context) {
	for _, approval := range d.inbox.List() {
		if approval.Status == durable.ApprovalIsPending {
			d.inbox.Withdraw(approval.ApprovalID)
			d.state.audit.ended(ctx, approval.ApprovalID)
		}
	}
}

// wake ends a wait: its timer is stopped and its call goes on.
func (d *desk) wake(id string) {
	if w := d.find(id); w != nil {
		d.remove(w)
		w.done.SendAsync(true)
	}
}

// awaitOptions says that an approval was opened by a predecessor, and that it
// shows at the root of the tree too.
type awaitOptions struct{ rejoin, atRoot bool }

// await opens an approval, or rejoins one that a predecessor opened, and blocks
// until it is decided, expires, or the call is cancelled.
func (d *desk) await(ctx workflow.Context, approval durable.Approval, opts awaitOptions) (durable.Decision, error) {
	w := d.enter(ctx, approval, opts.rejoin)
	if w == nil { // a decision was waiting
		return d.outcome(ctx, approval)
	}
	if opts.atRoot {
		d.state.forward(ctx, w.id)
		defer d.state.forward(ctx, w.id)
	}
	workflow.SetCurrentDetails(ctx, d.summary())
	reminders := d.reminders(ctx, approval, opts.rejoin)
	for open := true; open; {
		selector := workflow.NewSelector(ctx)
		selector.AddReceive(w.done, func(c workflow.ReceiveChannel, _ bool) {
			c.ReceiveAsync(nil)
			open = false
		})
		selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {
			if d.inbox.Cancel(w.id) {
				d.state.audit.ended(ctx, w.id)
			}
			d.remove(w)
			open = false
		})
		reminders.addTo(selector)
		selector.Select(ctx)
	}
	reminders.stop()
	workflow.SetCurrentDetails(ctx, d.summary())
	return d.outcome(ctx, approval)
}

// enter registers a wait with its deadline timer; nil means it is decided
// already.
func (d *desk) enter(ctx workflow.Context, approval durable.Approval, rejoin bool) *wait {
	now := workflow.Now(ctx)
	if rejoin {
		d.inbox.Rejoin(approval)
	} else {
		d.inbox.Open(approval, now)
		d.state.audit.event(ctx, durable.AuditRequested, approval.ApprovalID)
	}
	if _, decided := d.inbox.Decision(approval.ApprovalID); decided {
		if !rejoin {
			d.state.audit.ended(ctx, approval.ApprovalID)
		}
		return nil
	}
	w := &wait{id: approval.ApprovalID, deadline: approval.Deadline, stop: func() {}, done: workflow.NewBufferedChannel(ctx, 1)}
	if !approval.Deadline.IsZero() {
		var timerCtx workflow.Context
		timerCtx, w.stop = workflow.WithCancel(ctx)
		w.expiry = workflow.NewTimerWithOptions(timerCtx, approval.Deadline.Sub(now), workflow.TimerOptions{
			Summary: "deadline of approval " + approval.ApprovalID,
		})
	}
	d.waits = append(d.waits, w)
	d.changed.SendAsync(true)
	return w
}

func (d *desk) find(id string) *wait {
	for _, w := range d.waits {
		if w.id == id {
			return w
		}
	}
	return nil
}

func (d *desk) remove(gone *wait) {
	gone.stop()
	for i, w := range d.waits {
		if w == gone {
			d.waits = append(d.waits[:i:i], d.waits[i+1:]...)
			d.changed.SendAsync(true)
			return
		}
	}
}

// outcome reads how an approval ended.
func (d *desk) outcome(ctx workflow.Context, approval durable.Approval) (durable.Decision, error) {
	if decision, ok := d.inbox.Decision(approval.ApprovalID); ok {
		return decision, nil
	}
	if err := ctx.Err(); err != nil {
		e := apcore.NewError(apcore.CodeExecutionCancelled, "call of module %q was cancelled while it waited for approval %s", approval.Module.ID, approval.ApprovalID)
		return durable.Decision{}, &callError{&durable.Failure{Err: stamped(ctx, e, approval), NotStarted: true}, err}
	}
	e := apcore.NewError(apcore.CodeApprovalTimeout, "Approval timed out for module '%s': nobody decided %s in time", approval.Module.ID, approval.ApprovalID)
	return durable.Decision{}, &apcore.ApprovalError{Err: stamped(ctx, e, approval), Result: apcore.ApprovalResult{Status: apcore.ApprovalTimeout, ApprovalID: approval.ApprovalID}}
}

// stamped gives an error the run's time and says what it is about.
func stamped(ctx workflow.Context, e *apcore.Error, approval durable.Approval) *apcore.Error {
	e = e.WithDetail("module_id", approval.Module.ID).WithDetail("approval_id", approval.ApprovalID)
	e.Timestamp = workflow.Now(ctx)
	return e
}

// summary is the text that Temporal's web interface shows for the run.
func (d *desk) summary() string {
	text := ""
	for _, approval := range d.inbox.List() {
		if approval.Status == durable.ApprovalIsPending {
			text += fmt.Sprintf("- waits for %s `%s` of **%s**%s\n", question(approval.Kind), approval.ApprovalID, approval.Module.ID, until(approval.Deadline))
		}
	}
	return text
}

func question(kind durable.ApprovalKind) string {
	if kind == durable.KindOutcome {
		return "a verdict on"
	}
	return "approval"
}

func until(deadline time.Time) string {
	if deadline.IsZero() {
		return ""
	}
	return " until " + deadline.Format(time.RFC3339)
}

// drain takes signals that nobody has read yet, before the run ends.
func (d *desk) drain(ctx workflow.Context) {
	var raw converter.RawValue
	for d.signals.ReceiveAsync(&raw) {
		d.onSignal(ctx, raw, false)
	}
	for d.copies.ReceiveAsync(&raw) {
		d.onForward(ctx, raw)
	}
}
