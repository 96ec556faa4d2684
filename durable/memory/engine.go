// Package memory is a durable engine that lives in one process and forgets when
// it ends. It runs the same calls by the same rules as a real one, for tests and
// for trying modules out; it is also the shortest example of a binding.
package memory

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// Run is one container of calls, as a workflow run is. All methods may be called
// concurrently.
type Run struct {
	id      string
	invoker *durable.Invoker
	policy  func(moduleID string) durable.Policy

	mu      sync.Mutex
	calls   int
	inbox   *durable.Inbox
	changed chan struct{} // closed and replaced at every change of the inbox
}

// NewRun makes a run. policy says how a module is called; nil calls each at most
// once, with one redo after a millisecond.
func NewRun(id string, invoker *durable.Invoker, policy func(moduleID string) durable.Policy) *Run {
	if policy == nil {
		policy = func(string) durable.Policy {
			return durable.Policy{Class: durable.ClassAtMostOnce, Attempts: 1, Redos: 1, Backoff: time.Millisecond, MaxBackoff: time.Millisecond}
		}
	}
	return &Run{id: id, invoker: invoker, policy: policy, inbox: durable.NewInbox(durable.InboxState{}), changed: make(chan struct{})}
}

// Call makes one call and waits for its approval, if it needs one. c is the
// caller's context, nil for a fresh one. Its errors are those of [durable.Run].
func (r *Run) Call(ctx context.Context, moduleID string, inputs any, c *apcore.Context) (durable.CallResult, error) {
	text, err := apcore.EncodeJSON(inputs)
	if err != nil {
		return durable.CallResult{}, err
	}
	if string(text) == "null" {
		text = []byte("{}")
	}
	if c == nil {
		c = apcore.NewContext(apcore.ContextOptions{})
	}
	wire, err := apcore.EncodeJSON(c.Serialize())
	if err != nil {
		return durable.CallResult{}, err
	}
	return r.Do(ctx, durable.CallRequest{ModuleID: moduleID, Inputs: text, Context: wire})
}

// Do is [Run.Call] with a request of the caller's making; CallID is set here
// unless the request brings one.
func (r *Run) Do(ctx context.Context, request durable.CallRequest) (durable.CallResult, error) {
	if request.CallID == "" {
		request.CallID = r.nextCallID()
	}
	policy := r.policy(request.ModuleID)
	return durable.Run(&engine{ctx: ctx, run: r, policy: policy}, request, policy)
}

func (r *Run) nextCallID() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	return r.id + "/" + r.id + "/" + strconv.Itoa(r.calls)
}

// Decide gives a decision; its errors are those of [durable.Inbox.Check].
func (r *Run) Decide(decision durable.Decision) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.inbox.Decide(decision, time.Now())
	r.touch()
	return err
}

// Approvals lists every approval of the run.
func (r *Run) Approvals() []durable.Approval {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inbox.List()
}

// Changed is closed at the next change of the approvals.
func (r *Run) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

func (r *Run) touch() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// engine is the binding for one call.
type engine struct {
	ctx    context.Context
	run    *Run
	policy durable.Policy
}

func (e *engine) Now() time.Time { return time.Now() }

func (e *engine) Do(request durable.CallRequest) (durable.CallResult, error) {
	policy := e.policy.For(request)
	wait := policy.Backoff
	for attempt := 1; ; attempt++ {
		result, err := e.run.invoker.Invoke(e.ctx, request, attempt)
		if err == nil {
			return *result, nil
		}
		var failure *durable.Failure
		if attempt >= policy.Attempts || !errors.As(err, &failure) || !policy.Allows(failure) {
			return durable.CallResult{}, err
		}
		if err := e.Sleep(cmp.Or(failure.RetryAfter, wait)); err != nil {
			return durable.CallResult{}, err
		}
		wait = policy.NextWait(wait)
	}
}

func (e *engine) Sleep(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-e.ctx.Done():
		return cancelled(e.ctx)
	}
}

func (e *engine) AwaitDecision(_ durable.CallRequest, approval durable.Approval) (durable.Decision, error) {
	e.open(approval)
	var expired <-chan time.Time
	if !approval.Deadline.IsZero() {
		timer := time.NewTimer(time.Until(approval.Deadline))
		defer timer.Stop()
		expired = timer.C
	}
	for {
		decision, ok, changed := e.look(approval.ApprovalID)
		if ok {
			return decision, nil
		}
		select {
		case <-changed:
		case <-expired:
			e.end(func(b *durable.Inbox) { b.Expire(approval.ApprovalID) })
			if decision, ok, _ := e.look(approval.ApprovalID); ok {
				return decision, nil
			}
			return durable.Decision{}, timedOut(approval)
		case <-e.ctx.Done():
			e.end(func(b *durable.Inbox) { b.Cancel(approval.ApprovalID) })
			return durable.Decision{}, cancelled(e.ctx)
		}
	}
}

func (e *engine) open(approval durable.Approval) {
	e.end(func(b *durable.Inbox) { b.Open(approval, time.Now()) })
}

func (e *engine) end(change func(*durable.Inbox)) {
	e.run.mu.Lock()
	defer e.run.mu.Unlock()
	change(e.run.inbox)
	e.run.touch()
}

func (e *engine) look(id string) (durable.Decision, bool, <-chan struct{}) {
	e.run.mu.Lock()
	defer e.run.mu.Unlock()
	decision, ok := e.run.inbox.Decision(id)
	return decision, ok, e.run.changed
}

func cancelled(ctx context.Context) error {
	return apcore.NewError(apcore.CodeExecutionCancelled, "the run was cancelled: %w", context.Cause(ctx))
}

func timedOut(approval durable.Approval) error {
	e := apcore.NewError(apcore.CodeApprovalTimeout, "Approval timed out for module '%s'", approval.Module.ID).
		WithDetail("module_id", approval.Module.ID).WithDetail("approval_id", approval.ApprovalID)
	return &apcore.ApprovalError{Err: e, Result: apcore.ApprovalResult{Status: apcore.ApprovalTimeout, ApprovalID: approval.ApprovalID}}
}

var _ durable.Engine = (*engine)(nil)
