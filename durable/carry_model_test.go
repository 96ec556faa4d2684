package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// errContinue ends a run in favour of a successor while its call waits.
var errContinue = errors.New("continue as new")

// model is one call over any number of runs: people decide, time passes, workers
// die, runs continue as new, in any order.
type model struct {
	t       *rapid.T
	invoker *durable.Invoker
	policy  durable.Policy
	now     time.Time
	inbox   *durable.Inbox
	rejoin  bool
	carried durable.Carried
	steps   *int
	// cancelled says that the call was, while it waited.
	cancelled bool
	// said is everything that was accepted, in order.
	said []durable.Decision
}

func (m *model) Now() time.Time { return m.now }

func (m *model) Sleep(d time.Duration) error {
	m.now = m.now.Add(d)
	return nil
}

func (m *model) Do(request durable.CallRequest) (durable.CallResult, error) {
	*m.steps++
	for attempt := 1; attempt <= m.policy.For(request).Attempts; attempt++ {
		if rapid.IntRange(0, 9).Draw(m.t, "lost before") == 0 {
			continue
		}
		result, err := m.invoker.Invoke(m.t.Context(), request, attempt)
		if rapid.IntRange(0, 9).Draw(m.t, "lost after") == 0 {
			continue
		}
		if err != nil {
			return durable.CallResult{}, err
		}
		return *result, nil
	}
	return durable.CallResult{}, &durable.Failure{Err: durable.OutcomeUnknown(request, "lost")}
}

func (m *model) AwaitDecision(request durable.CallRequest, approval durable.Approval) (durable.Decision, error) {
	if m.rejoin {
		m.inbox.Rejoin(approval)
	} else {
		m.inbox.Open(approval, m.now)
	}
	m.rejoin = false
	for range rapid.IntRange(0, 6).Draw(m.t, "moves") {
		*m.steps++
		switch rapid.IntRange(0, 11).Draw(m.t, "move") {
		case 0:
			m.now = m.now.Add(time.Duration(rapid.IntRange(0, 15).Draw(m.t, "hours")) * time.Hour)
		case 1, 2, 3, 4, 5, 6:
			m.somebodyDecides(approval.ApprovalID)
		case 7, 8:
			m.restart()
		case 9:
			m.inbox.Cancel(approval.ApprovalID)
			m.cancelled = true
			m.somebodyDecides(approval.ApprovalID) // too late
			return durable.Decision{}, &durable.Failure{Err: apcore.NewError(apcore.CodeExecutionCancelled, "cancelled"), NotStarted: true}
		default:
			standing, _ := m.inbox.Get(approval.ApprovalID)
			var err error
			m.carried, err = request.Carry(standing)
			m.must(err)
			return durable.Decision{}, errContinue
		}
		if decision, ok := m.inbox.Decision(approval.ApprovalID); ok {
			return decision, nil
		}
	}
	m.inbox.Expire(approval.ApprovalID)
	return durable.Decision{}, fmt.Errorf("nobody decided: %w", apcore.CodeApprovalTimeout)
}

func (m *model) must(err error) {
	if err != nil {
		m.t.Fatal(err)
	}
}

// restart is a new worker that rebuilds the run: nothing but JSON survives.
func (m *model) restart() {
	text, err := json.Marshal(m.inbox.State())
	m.must(err)
	var state durable.InboxState
	m.must(json.Unmarshal(text, &state))
	m.inbox = durable.NewInbox(state)
}

// somebodyDecides: the requester, strangers and repeats included.
func (m *model) somebodyDecides(id string) {
	d := durable.Decision{
		ApprovalID: rapid.SampledFrom([]string{id, id, id, "apr-other"}).Draw(m.t, "about"),
		Status:     rapid.SampledFrom([]apcore.ApprovalStatus{apcore.ApprovalApproved, apcore.ApprovalApproved, apcore.ApprovalApproved, apcore.ApprovalRejected}).Draw(m.t, "says"),
		ApprovedBy: rapid.SampledFrom([]string{"ana", "user:ANA", "ben", "maria", "user:Maria"}).Draw(m.t, "who"),
	}
	if d.Status == apcore.ApprovalApproved {
		d.Changes = rapid.SampledFrom([]durable.Object{nil, nil, {"amount": 2}, {"amount": "much"}}).Draw(m.t, "changes")
	}
	if m.inbox.Decide(d, m.now) == nil {
		m.said = append(m.said, d)
	}
}

// over makes the call, through as many runs as it takes.
func (m *model) over(request durable.CallRequest) error {
	_, err := durable.Run(m, request, m.policy)
	for errors.Is(err, errContinue) {
		// What crosses is JSON, and nothing else.
		text, failed := json.Marshal(m.carried)
		m.must(failed)
		var carried durable.Carried
		m.must(json.Unmarshal(text, &carried))
		digest, failed := request.InputsDigest()
		m.must(failed)
		if !carried.Matches(request, digest) {
			m.t.Fatal("the successor does not know its call")
		}
		m.inbox, m.rejoin = durable.NewInbox(durable.InboxState{}), true
		_, err = durable.Resume(m, request, carried, m.policy)
	}
	return err
}

// Targets 9, 17, 18 and 21 together, with cancellation and restarts: over a hundred thousand random steps a call
// has at most one effect, never without enough approvers of whom none asked,
// never after a rejection, and never with arguments that nobody approved.
func TestDecisionsOverManyRuns(t *testing.T) {
	var ran []transferInput
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	must(t, apcore.Register(registry, "pay.transfer", func(_ context.Context, in transferInput) (map[string]any, error) {
		ran = append(ran, in)
		return map[string]any{}, nil
	}, apcore.Spec{Description: "Moves money", Annotations: apcore.Annotations{Destructive: true, RequiresApproval: true}}))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{ApprovalHandler: durable.NewApprovalHandler(), Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	var invokers []*durable.Invoker
	for quorum := 1; quorum <= 2; quorum++ {
		invoker, err := durable.NewInvoker(executor, durable.InvokerOptions{SealKey: []byte("key"), Rules: &durable.ApprovalRules{Quorum: quorum}})
		must(t, err)
		invokers = append(invokers, invoker)
	}
	steps, calls, effects := 0, 0, 0
	want := 100_000
	if testing.Short() {
		want = 5_000
	}
	for steps < want {
		rapid.Check(t, func(t *rapid.T) {
			calls++
			quorum := rapid.IntRange(1, 2).Draw(t, "quorum")
			m := &model{t: t, invoker: invokers[quorum-1], policy: durable.PolicyFor(durable.ClassAtMostOnce, time.Minute), now: noon, inbox: durable.NewInbox(durable.InboxState{}), steps: &steps}
			ran = nil
			err := m.over(durable.CallRequest{
				ModuleID: "pay.transfer", Inputs: []byte(`{"to":"A","amount":1}`), CallID: fmt.Sprintf("w/w/%d", calls), Ask: rapid.Bool().Draw(t, "ask"),
				Context: []byte(`{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","call_chain":[],"identity":{"id":"maria","type":"user"}}`),
			})
			effects += len(ran)
			m.check(quorum, ran, err)
		})
	}
	if effects < calls/20 {
		t.Errorf("only %d effects in %d calls: the model hardly tests anything", effects, calls)
	}
}

func (m *model) check(quorum int, ran []transferInput, err error) {
	if len(ran) > 1 || (err == nil && len(ran) != 1) {
		m.t.Fatalf("%d effects, error %v", len(ran), err)
	}
	if len(ran) == 0 {
		return
	}
	if m.cancelled {
		m.t.Fatal("a cancelled call ran")
	}
	approvers, amounts := map[string]bool{}, map[int64]bool{}
	for _, d := range m.said {
		if d.Status == apcore.ApprovalRejected {
			m.t.Fatalf("it ran although %s rejected it", d.ApprovedBy)
		}
		name := strings.TrimPrefix(strings.ToLower(d.ApprovedBy), "user:")
		if name == "maria" {
			m.t.Fatal("the requester's own approval counted")
		}
		approvers[name] = true
		switch d.Changes["amount"] {
		case nil:
			amounts[1] = true
		case 2:
			amounts[2] = true
		}
	}
	if len(approvers) < quorum || !amounts[ran[0].Amount] || ran[0].To != "A" {
		m.t.Fatalf("ran with %+v after %+v", ran[0], m.said)
	}
}
