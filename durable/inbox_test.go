package durable_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func pendingApproval(id string) durable.Approval {
	return durable.Approval{Grant: durable.Grant{ApprovalID: id, RequestedAt: noon, Deadline: noon.Add(time.Hour)}}
}

func decide(id string, status apcore.ApprovalStatus) durable.Decision {
	return durable.Decision{ApprovalID: id, Status: status, ApprovedBy: "ana"}
}

// Scenarios 3 and 24, targets 11 and 13: each refusal has its code, and leaves
// the request as it was.
func TestInboxRefusals(t *testing.T) {
	long := make([]byte, 5000)
	for _, test := range []struct {
		name     string
		before   func(*durable.Inbox)
		decision durable.Decision
		at       time.Time
		want     apcore.Code
		status   durable.ApprovalState
	}{
		{name: "unknown id", decision: decide("other", apcore.ApprovalApproved), at: noon, want: durable.CodeDecisionUnknown, status: durable.ApprovalIsPending},
		{name: "no id", decision: decide("", apcore.ApprovalApproved), at: noon, want: durable.CodeDecisionInvalid, status: durable.ApprovalIsPending},
		{name: "no status", decision: decide("a", ""), at: noon, want: durable.CodeDecisionInvalid, status: durable.ApprovalIsPending},
		{name: "status in capitals", decision: decide("a", "Approved"), at: noon, want: durable.CodeDecisionInvalid, status: durable.ApprovalIsPending},
		{name: "status approve", decision: decide("a", "approve"), at: noon, want: durable.CodeDecisionInvalid, status: durable.ApprovalIsPending},
		{name: "status pending", decision: decide("a", apcore.ApprovalPending), at: noon, want: durable.CodeDecisionInvalid, status: durable.ApprovalIsPending},
		{name: "nobody decides", decision: durable.Decision{ApprovalID: "a", Status: apcore.ApprovalApproved, ApprovedBy: " "}, at: noon, want: durable.CodeDecisionInvalid, status: durable.ApprovalIsPending},
		{name: "endless reason", decision: durable.Decision{ApprovalID: "a", Status: apcore.ApprovalApproved, ApprovedBy: "ana", Reason: string(long)}, at: noon, want: durable.CodeDecisionInvalid, status: durable.ApprovalIsPending},
		{name: "at the deadline", decision: decide("a", apcore.ApprovalApproved), at: noon.Add(time.Hour), want: durable.CodeDecisionLate, status: durable.ApprovalIsPending},
		{name: "after the deadline", decision: decide("a", apcore.ApprovalApproved), at: noon.Add(time.Hour + 1), want: durable.CodeDecisionLate, status: durable.ApprovalIsPending},
		{name: "expired", before: func(b *durable.Inbox) { b.Expire("a") }, decision: decide("a", apcore.ApprovalApproved), at: noon, want: durable.CodeDecisionLate, status: durable.ApprovalIsTimeout},
		{name: "cancelled", before: func(b *durable.Inbox) { b.Cancel("a") }, decision: decide("a", apcore.ApprovalApproved), at: noon, want: durable.CodeDecisionClosed, status: durable.ApprovalIsCancelled},
		{name: "withdrawn", before: func(b *durable.Inbox) { b.Withdraw("a") }, decision: decide("a", apcore.ApprovalApproved), at: noon, want: durable.CodeDecisionClosed, status: durable.ApprovalIsWithdrawn},
		{name: "decided before", before: func(b *durable.Inbox) { _ = b.Decide(decide("a", apcore.ApprovalRejected), noon) }, decision: decide("a", apcore.ApprovalApproved), at: noon, want: durable.CodeDecisionDuplicate, status: durable.ApprovalIsRejected},
		{name: "in time", decision: decide("a", apcore.ApprovalApproved), at: noon.Add(time.Hour - 1), want: "", status: durable.ApprovalIsApproved},
	} {
		t.Run(test.name, func(t *testing.T) {
			inbox := durable.NewInbox(durable.InboxState{})
			inbox.Open(pendingApproval("a"), noon)
			if test.before != nil {
				test.before(inbox)
			}
			before := inbox.State()
			if got := apcore.CodeOf(inbox.Check(test.decision, test.at)); got != test.want {
				t.Errorf("Check: code %q, want %q", got, test.want)
			}
			if diff := cmp.Diff(before, inbox.State(), cmpIdentity); diff != "" {
				t.Errorf("Check changed the inbox (-before +after):\n%s", diff)
			}
			if got := apcore.CodeOf(inbox.Decide(test.decision, test.at)); got != test.want {
				t.Errorf("Decide: code %q, want %q", got, test.want)
			}
			if got := inbox.List()[0].Status; got != test.status {
				t.Errorf("status %q, want %q", got, test.status)
			}
		})
	}
}

var cmpIdentity = cmp.Comparer(func(a, b *apcore.Identity) bool {
	return (a == nil) == (b == nil) && (a == nil || cmp.Equal(a.Map(), b.Map()))
})

// Scenario 3: what comes too late changes nothing and is noted with its reason.
func TestInboxNotesIgnoredDecisions(t *testing.T) {
	inbox := durable.NewInbox(durable.InboxState{})
	inbox.Open(pendingApproval("a"), noon)
	if err := inbox.Decide(decide("a", apcore.ApprovalApproved), noon); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_ = inbox.Decide(decide("a", apcore.ApprovalRejected), noon.Add(time.Minute))
	}
	approval := inbox.List()[0]
	if approval.Status != durable.ApprovalIsApproved || len(approval.Ignored) != 3 {
		t.Fatalf("status %q with %d ignored, want approved with 3", approval.Status, len(approval.Ignored))
	}
	if got := approval.Ignored[0]; got.Code != string(durable.CodeDecisionDuplicate) || got.Reason == "" {
		t.Errorf("ignored as %q because %q", got.Code, got.Reason)
	}
}

// Scenario 1, target 12: a decision may come before the request, is kept in
// bounds and survives being carried over.
func TestInboxKeepsEarlyDecisions(t *testing.T) {
	inbox := durable.NewInbox(durable.InboxState{})
	if err := inbox.Decide(decide("a", apcore.ApprovalApproved), noon); apcore.CodeOf(err) != durable.CodeDecisionUnknown {
		t.Fatalf("early decision: %v", err)
	}
	for i := range 200 {
		_ = inbox.Decide(decide("x"+string(rune('0'+i%10)), apcore.ApprovalRejected), noon)
	}
	carried := durable.NewInbox(inbox.State())
	if got := carried.State(); len(got.Early) != 100 || got.Dropped != 101 {
		t.Fatalf("%d early and %d dropped, want 100 and 101", len(got.Early), got.Dropped)
	}
	carried.Open(pendingApproval("a"), noon)
	if decision, ok := carried.Decision("a"); !ok || decision.Status != apcore.ApprovalApproved {
		t.Errorf("early decision: %v, %t", decision, ok)
	}
}

// A handler that says pending again after a decision needs another decision.
func TestInboxReopens(t *testing.T) {
	inbox := durable.NewInbox(durable.InboxState{})
	inbox.Open(pendingApproval("a"), noon)
	_ = inbox.Decide(decide("a", apcore.ApprovalApproved), noon)
	inbox.Open(pendingApproval("a"), noon)
	if _, decided := inbox.Decision("a"); decided || inbox.Pending() != 1 || len(inbox.List()) != 1 {
		t.Errorf("reopened approval: decided %t, %d pending of %d", decided, inbox.Pending(), len(inbox.List()))
	}
}

// Model: whatever happens in whatever order, the first accepted decision is the
// last word, nothing is accepted at or after the deadline or an end, and what
// List returns is a copy.
func TestInboxModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inbox := durable.NewInbox(durable.InboxState{})
		ids := []string{"a", "b", "c"}
		final := map[string]durable.ApprovalState{}
		opened := map[string]bool{}
		now := noon
		t.Repeat(map[string]func(*rapid.T){
			"open": func(t *rapid.T) {
				id := rapid.SampledFrom(ids).Draw(t, "id")
				if opened[id] {
					t.Skip("opened before")
				}
				opened[id] = true
				inbox.Open(pendingApproval(id), now)
				if decision, ok := inbox.Decision(id); ok {
					final[id] = durable.ApprovalState(decision.Status)
				}
			},
			"decide": func(t *rapid.T) {
				id := rapid.SampledFrom(ids).Draw(t, "id")
				status := rapid.SampledFrom([]apcore.ApprovalStatus{apcore.ApprovalApproved, apcore.ApprovalRejected, "maybe"}).Draw(t, "status")
				err := inbox.Decide(decide(id, status), now)
				if err == nil {
					if final[id] != "" || !now.Before(noon.Add(time.Hour)) || !opened[id] {
						t.Fatalf("decision about %q accepted at %v after %q", id, now, final[id])
					}
					final[id] = durable.ApprovalState(status)
				}
			},
			"expire": func(t *rapid.T) {
				id := rapid.SampledFrom(ids).Draw(t, "id")
				if inbox.Expire(id) {
					final[id] = durable.ApprovalIsTimeout
				}
			},
			"cancel": func(t *rapid.T) {
				id := rapid.SampledFrom(ids).Draw(t, "id")
				if inbox.Cancel(id) {
					final[id] = durable.ApprovalIsCancelled
				}
			},
			"wait":  func(t *rapid.T) { now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "minutes")) * time.Minute) },
			"carry": func(*rapid.T) { inbox = durable.NewInbox(inbox.State()) },
			"": func(t *rapid.T) {
				for i, approval := range inbox.List() {
					if want := final[approval.ApprovalID]; want != "" && approval.Status != want {
						t.Fatalf("approval %q is %q, was %q", approval.ApprovalID, approval.Status, want)
					}
					inbox.List()[i].Status = "spoilt"
				}
			},
		})
	})
}
