package durable

import (
	"slices"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Bounds of an inbox; what is beyond them is dropped and noted.
const (
	maxEarlyDecisions = 100
	maxIgnored        = 20
	maxReasonLength   = 4096
)

// Inbox keeps the approvals of one run and the decisions about them. It is the
// rule book: the first decision wins, an answer at the deadline is too late, and
// nothing is lost without a note. It has no clock and no lock; the run that owns
// it passes its own time and calls it from one place at a time.
type Inbox struct {
	state InboxState
}

// InboxState is an inbox as data, to carry it over into a successor run.
type InboxState struct {
	// Approvals stand in the order they were opened.
	Approvals []Approval `json:"approvals,omitempty"`
	// Early are decisions whose approval is not known yet.
	Early []Decision `json:"early,omitempty"`
	// Dropped counts early decisions beyond the bound.
	Dropped int `json:"dropped,omitempty"`
}

// NewInbox makes an inbox from a carried-over state; the zero state is empty.
func NewInbox(state InboxState) *Inbox { return &Inbox{state: copyState(state)} }

// State returns a copy of everything the inbox knows.
func (b *Inbox) State() InboxState { return copyState(b.state) }

// List returns a copy of all approvals in the order they were opened.
func (b *Inbox) List() []Approval { return copyState(b.state).Approvals }

// Pending counts the approvals that wait.
func (b *Inbox) Pending() int {
	count := 0
	for i := range b.state.Approvals {
		if b.state.Approvals[i].Status == ApprovalIsPending {
			count++
		}
	}
	return count
}

// Open adds an approval that waits from now on. An early decision about it is
// applied at once. Opening an id again asks again: a handler that still says
// pending after a decision needs another one.
func (b *Inbox) Open(approval Approval, now time.Time) {
	approval.Status, approval.Decision = ApprovalIsPending, nil
	if at := b.find(approval.ApprovalID); at >= 0 {
		if b.state.Approvals[at].Status == ApprovalIsPending {
			return
		}
		if approval.Ignored == nil {
			approval.Ignored = b.state.Approvals[at].Ignored
		}
		b.state.Approvals = slices.Delete(b.state.Approvals, at, at+1)
	}
	b.state.Approvals = append(b.state.Approvals, approval)
	for _, decision := range b.takeEarly(approval.ApprovalID) {
		_ = b.Decide(decision, now) // a refused one is noted in Ignored
	}
}

func (b *Inbox) takeEarly(id string) []Decision {
	var taken []Decision
	b.state.Early = slices.DeleteFunc(b.state.Early, func(d Decision) bool {
		if d.ApprovalID != id {
			return false
		}
		taken = append(taken, d)
		return true
	})
	return taken
}

// Check says whether a decision would be accepted, without changing anything.
// It fails with DECISION_INVALID, DECISION_UNKNOWN_APPROVAL, DECISION_DUPLICATE,
// DECISION_LATE, DECISION_CLOSED or DECISION_FORBIDDEN.
func (b *Inbox) Check(decision Decision, now time.Time) error {
	at, kind := b.find(decision.ApprovalID), KindApproval
	if at >= 0 {
		kind = b.state.Approvals[at].Kind
	}
	if err := decision.validate(kind); err != nil && (at >= 0 || decision.Verdict == "") {
		return err
	}
	if at < 0 {
		return newError(CodeDecisionUnknown, "there is no approval %q in this run", decision.ApprovalID).
			WithDetail("approval_id", decision.ApprovalID)
	}
	return b.state.Approvals[at].accepts(decision, now)
}

// Decide applies a decision, or notes why it does not and returns the error of
// [Inbox.Check]. A decision about an unknown approval is kept as early.
func (b *Inbox) Decide(decision Decision, now time.Time) error {
	decision.DecidedAt, decision.Votes = now, nil
	err := b.Check(decision, now)
	at := b.find(decision.ApprovalID)
	switch {
	case err == nil:
		b.state.Approvals[at].apply(decision)
	case at >= 0:
		b.state.Approvals[at].ignore(decision, err)
	case apcore.CodeOf(err) == CodeDecisionUnknown:
		b.keepEarly(decision)
	default:
		b.state.Dropped++
	}
	return err
}

// keepEarly keeps the first decisions up to the bound.
func (b *Inbox) keepEarly(decision Decision) {
	if len(b.state.Early) >= maxEarlyDecisions {
		b.state.Dropped++
		return
	}
	b.state.Early = append(b.state.Early, decision)
}

// Expire ends a pending approval whose deadline has come; it reports whether it
// was still pending.
func (b *Inbox) Expire(id string) bool { return b.close(id, ApprovalIsTimeout) }

// Cancel ends a pending approval because its call was cancelled.
func (b *Inbox) Cancel(id string) bool { return b.close(id, ApprovalIsCancelled) }

// Rejoin adds an approval that a predecessor of this run opened, decided or not;
// one that is here already stays as it is.
func (b *Inbox) Rejoin(approval Approval) {
	if b.find(approval.ApprovalID) < 0 {
		b.state.Approvals = append(b.state.Approvals, approval)
	}
}

// Copy keeps a copy of an approval that another run owns, as it stands there. It
// returns the early decisions about it that count.
func (b *Inbox) Copy(approval Approval, now time.Time) []Decision {
	if at := b.find(approval.ApprovalID); at >= 0 {
		b.state.Approvals[at] = approval
	} else {
		b.state.Approvals = append(b.state.Approvals, approval)
	}
	var counted []Decision
	for _, decision := range b.takeEarly(approval.ApprovalID) {
		if b.Decide(decision, now) == nil {
			counted = append(counted, decision)
		}
	}
	return counted
}

// Escalate lets the second level decide a pending approval too; it reports
// whether it still waited.
func (b *Inbox) Escalate(id string) bool {
	at := b.find(id)
	if at < 0 || b.state.Approvals[at].Status != ApprovalIsPending {
		return false
	}
	b.state.Approvals[at].Escalated = true
	return true
}

// Get returns a copy of one approval.
func (b *Inbox) Get(id string) (approval Approval, ok bool) {
	at := b.find(id)
	if at < 0 {
		return Approval{}, false
	}
	return copyState(InboxState{Approvals: b.state.Approvals[at : at+1]}).Approvals[0], true
}

// Withdraw ends a pending approval because its run ends.
func (b *Inbox) Withdraw(id string) bool { return b.close(id, ApprovalIsWithdrawn) }

func (b *Inbox) close(id string, state ApprovalState) bool {
	at := b.find(id)
	if at < 0 || b.state.Approvals[at].Status != ApprovalIsPending {
		return false
	}
	b.state.Approvals[at].Status = state
	return true
}

// Decision returns the decision about an approval; ok is false while it waits
// and when it ended without one.
func (b *Inbox) Decision(id string) (decision Decision, ok bool) {
	if at := b.find(id); at >= 0 && b.state.Approvals[at].Decision != nil {
		return *b.state.Approvals[at].Decision, true
	}
	return Decision{}, false
}

func (b *Inbox) find(id string) int {
	return slices.IndexFunc(b.state.Approvals, func(a Approval) bool { return a.ApprovalID == id })
}

// copyState copies as deep as the inbox itself changes anything.
func copyState(state InboxState) InboxState {
	copied := InboxState{Approvals: slices.Clone(state.Approvals), Early: slices.Clone(state.Early), Dropped: state.Dropped}
	for i := range copied.Approvals {
		copied.Approvals[i].Ignored = slices.Clone(copied.Approvals[i].Ignored)
		copied.Approvals[i].Votes = slices.Clone(copied.Approvals[i].Votes)
	}
	return copied
}
