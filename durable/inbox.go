package durable

import (
	"slices"
	"strings"
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
		approval.Ignored = b.state.Approvals[at].Ignored
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
// DECISION_LATE or DECISION_CLOSED.
func (b *Inbox) Check(decision Decision, now time.Time) error {
	if err := decision.validate(); err != nil {
		return err
	}
	at := b.find(decision.ApprovalID)
	if at < 0 {
		return newError(CodeDecisionUnknown, "there is no approval %q in this run", decision.ApprovalID).
			WithDetail("approval_id", decision.ApprovalID)
	}
	return b.state.Approvals[at].accepts(now)
}

// Decide applies a decision, or notes why it does not and returns the error of
// [Inbox.Check]. A decision about an unknown approval is kept as early.
func (b *Inbox) Decide(decision Decision, now time.Time) error {
	decision.DecidedAt = now
	err := b.Check(decision, now)
	at := b.find(decision.ApprovalID)
	switch {
	case err == nil:
		approval := &b.state.Approvals[at]
		approval.Status, approval.Decision = ApprovalState(decision.Status), &decision
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

// WithdrawAll ends everything that still waits, because the run ends.
func (b *Inbox) WithdrawAll() {
	for i := range b.state.Approvals {
		b.close(b.state.Approvals[i].ApprovalID, ApprovalIsWithdrawn)
	}
}

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

func (d Decision) validate() error {
	var missing []string
	if d.ApprovalID == "" {
		missing = append(missing, "approval_id is empty")
	}
	if d.Status != apcore.ApprovalApproved && d.Status != apcore.ApprovalRejected {
		missing = append(missing, "status must be approved or rejected")
	}
	if strings.TrimSpace(d.ApprovedBy) == "" {
		missing = append(missing, "approved_by must name who decides")
	}
	if len(d.Reason) > maxReasonLength {
		missing = append(missing, "reason is longer than 4096 bytes")
	}
	if len(missing) > 0 {
		return newError(CodeDecisionInvalid, "the decision is not valid: %s", strings.Join(missing, "; ")).
			WithDetail("approval_id", d.ApprovalID)
	}
	return nil
}

// accepts says whether the approval can still be decided at this moment.
func (a *Approval) accepts(now time.Time) error {
	switch {
	case a.Decision != nil:
		return newError(CodeDecisionDuplicate, "approval %s was %s by %s before", a.ApprovalID, a.Decision.Status, a.Decision.ApprovedBy).
			WithDetail("approval_id", a.ApprovalID).WithDetail("status", string(a.Status))
	case a.Status == ApprovalIsTimeout, a.Status == ApprovalIsPending && a.expired(now):
		return newError(CodeDecisionLate, "approval %s expired at %s", a.ApprovalID, a.Deadline.Format(time.RFC3339)).
			WithDetail("approval_id", a.ApprovalID)
	case a.Status != ApprovalIsPending:
		return newError(CodeDecisionClosed, "approval %s no longer waits: it was %s", a.ApprovalID, a.Status).
			WithDetail("approval_id", a.ApprovalID).WithDetail("status", string(a.Status))
	default:
		return nil
	}
}

// expired: at the deadline itself it is too late.
func (a *Approval) expired(now time.Time) bool {
	return !a.Deadline.IsZero() && !now.Before(a.Deadline)
}

func (a *Approval) ignore(decision Decision, err error) {
	if len(a.Ignored) >= maxIgnored {
		return
	}
	a.Ignored = append(a.Ignored, IgnoredDecision{Decision: decision, Code: string(apcore.CodeOf(err)), Reason: apcore.AsError(err).Message})
}

// copyState copies as deep as the inbox itself changes anything.
func copyState(state InboxState) InboxState {
	copied := InboxState{Approvals: slices.Clone(state.Approvals), Early: slices.Clone(state.Early), Dropped: state.Dropped}
	for i := range copied.Approvals {
		copied.Approvals[i].Ignored = slices.Clone(copied.Approvals[i].Ignored)
	}
	return copied
}
