package durable_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// stepEngine runs one call as the model says: each unit may be lost before or
// after it ran, delivered late, or repeated where the policy allows it.
type stepEngine struct {
	t      *rapid.T
	w      *world
	inbox  *durable.Inbox
	policy durable.Policy
	now    time.Time
	stolen []durable.CallRequest // resumed requests that somebody kept
}

func (e *stepEngine) Now() time.Time { return e.now }

func (e *stepEngine) Sleep(d time.Duration) error {
	e.now = e.now.Add(d)
	return nil
}

// Do gives the unit the attempts that its policy has. An attempt may be lost:
// then the engine knows nothing of it, as after a worker's death.
func (e *stepEngine) Do(request durable.CallRequest) (durable.CallResult, error) {
	if request.Decision != nil {
		e.stolen = append(e.stolen, request)
	}
	policy := e.policy.For(request)
	for attempt := 1; attempt <= policy.Attempts; attempt++ {
		lostBefore := rapid.Bool().Draw(e.t, "lost before it ran")
		if lostBefore {
			continue
		}
		result, err := e.w.invoker.Invoke(e.t.Context(), request, attempt)
		if rapid.Bool().Draw(e.t, "lost after it ran") {
			continue
		}
		if err != nil {
			return durable.CallResult{}, err
		}
		return *result, nil
	}
	return durable.CallResult{}, &durable.Failure{Err: durable.OutcomeUnknown(request, "lost")}
}

// AwaitDecision lets deciders come in any number and order, and time pass.
func (e *stepEngine) AwaitDecision(_ durable.CallRequest, approval durable.Approval) (durable.Decision, error) {
	e.inbox.Open(approval, e.now)
	for range rapid.IntRange(0, 4).Draw(e.t, "moves") {
		switch rapid.IntRange(0, 3).Draw(e.t, "move") {
		case 0:
			e.now = e.now.Add(time.Duration(rapid.IntRange(0, 30).Draw(e.t, "hours")) * time.Hour)
		case 1:
			_ = e.inbox.Decide(decide(approval.ApprovalID, apcore.ApprovalRejected), e.now)
		case 2:
			_ = e.inbox.Decide(decide(approval.ApprovalID, apcore.ApprovalApproved), e.now)
		case 3:
			e.inbox = durable.NewInbox(e.inbox.State())
		}
	}
	if decision, ok := e.inbox.Decision(approval.ApprovalID); ok {
		return decision, nil
	}
	e.inbox.Expire(approval.ApprovalID)
	return durable.Decision{}, fmt.Errorf("nobody decided: %w", apcore.CodeApprovalTimeout)
}

// Target 9: over random losses, repeats, deciders and clocks, a call has at most
// one effect, none without an approval, and a grant that somebody kept opens
// nothing for any other call.
func TestAtMostOneEffectPerGrant(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	call := 0
	rapid.Check(t, func(t *rapid.T) {
		call++
		before := w.effects.Load()
		engine := &stepEngine{
			t: t, w: w, inbox: durable.NewInbox(durable.InboxState{}), now: noon,
			policy: durable.PolicyFor(durable.ClassAtMostOnce, time.Minute),
		}
		id := fmt.Sprintf("w/w/%d", call)
		request := durable.CallRequest{
			ModuleID: "pay.transfer", Inputs: []byte(`{"to":"A","amount":1}`), Context: []byte(`{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","call_chain":[],"identity":null}`), CallID: id, Ask: rapid.Bool().Draw(t, "ask"),
		}
		result, err := durable.Run(engine, request, engine.policy)
		effects := w.effects.Load() - before
		approved := false
		for _, approval := range engine.inbox.List() {
			approved = approved || approval.Status == durable.ApprovalIsApproved
		}
		switch {
		case effects > 1:
			t.Fatalf("%d effects of one call", effects)
		case effects == 1 && !approved:
			t.Fatal("an effect without an approval")
		case err == nil && (effects != 1 || result.Status != durable.StatusCompleted):
			t.Fatalf("completed with %d effects, status %q", effects, result.Status)
		}
		for _, kept := range engine.stolen {
			kept.CallID = id + "0"
			if _, err := w.invoker.Invoke(t.Context(), kept, 1); err == nil || w.effects.Load() != before+effects {
				t.Fatalf("a kept grant opened another call: %v", err)
			}
			kept.CallID, kept.Inputs = id, []byte(`{"to":"B","amount":1000}`)
			if _, err := w.invoker.Invoke(t.Context(), kept, 1); err == nil || w.effects.Load() != before+effects {
				t.Fatalf("a kept grant paid something else: %v", err)
			}
		}
	})
}
