package durable

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// ApprovalState is where an [Approval] stands.
type ApprovalState string

// Only pending can change.
const (
	ApprovalIsPending   ApprovalState = "pending"
	ApprovalIsApproved  ApprovalState = "approved"
	ApprovalIsRejected  ApprovalState = "rejected"
	ApprovalIsTimeout   ApprovalState = "timeout"
	ApprovalIsCancelled ApprovalState = "cancelled"
	ApprovalIsWithdrawn ApprovalState = "withdrawn"
)

// ApprovalKind says what a person is asked.
type ApprovalKind string

// The kinds; the empty one is the usual question.
const (
	// KindApproval asks whether a call may run.
	KindApproval ApprovalKind = ""
	// KindOutcome asks what became of a call whose outcome is unknown; a decision
	// about it carries an [OutcomeVerdict].
	KindOutcome ApprovalKind = "outcome"
)

// Approval is what an approver sees. Arguments are redacted.
type Approval struct {
	Grant
	Kind        ApprovalKind       `json:"kind,omitempty"`
	Description string             `json:"description"`
	Arguments   Object             `json:"arguments"`
	Annotations apcore.Annotations `json:"annotations"`
	CallerID    string             `json:"caller_id,omitempty"`
	Identity    *apcore.Identity   `json:"identity,omitempty"`
	// Within names the module whose in-process call waits; empty for a call of
	// the run itself.
	Within string `json:"within,omitempty"`
	// WorkflowID names the run that waits, when it is not the one that lists the
	// approval.
	WorkflowID string `json:"workflow_id,omitempty"`
	// Rules say who may decide; nil means one person other than the requester.
	Rules *ApprovalRules `json:"rules,omitempty"`
	// Audit asks the run to report every step of this approval, see [AuditRecord].
	Audit bool `json:"audit,omitempty"`
	// Listed asks the run to show this approval in what the server can search.
	Listed bool `json:"listed,omitempty"`
	// AskedIn is the span of the unit that asked, as a W3C traceparent; only when
	// traced.
	AskedIn string `json:"asked_in,omitempty"`
	// Escalated is set once the approvers of the second level may decide too.
	Escalated bool          `json:"escalated,omitempty"`
	Status    ApprovalState `json:"status"`
	// Votes are approvals that count but are not enough yet.
	Votes    []Decision `json:"votes,omitempty"`
	Decision *Decision  `json:"decision,omitempty"`
	// Ignored lists decisions that came too late or made no sense.
	Ignored []IgnoredDecision `json:"ignored,omitempty"`
}

// OutcomeVerdict is an operator's word on a call whose outcome is unknown.
type OutcomeVerdict string

// The verdicts. A rejected decision needs none: the call fails.
const (
	// OutcomeRetry runs the call again under the same idempotency key.
	OutcomeRetry OutcomeVerdict = "retry"
	// OutcomeDone takes the call as done, with the decision's output.
	OutcomeDone OutcomeVerdict = "done"
)

// Decision is an approver's word on one [Approval]. The zero value is never an
// approval.
type Decision struct {
	ApprovalID string                `json:"approval_id"`
	Status     apcore.ApprovalStatus `json:"status"`
	// ApprovedBy names who decided; required. "maria" and "user:maria" are the
	// same person.
	ApprovedBy string `json:"approved_by"`
	// Roles are what the approver claims to be; a signature proves them.
	Roles    []string `json:"roles,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Metadata Object   `json:"metadata,omitempty"`
	// Changes replaces arguments of the call by name; the others stay as they
	// are. The result must fit the module's schema, or the decision is refused.
	Changes Object `json:"changes,omitempty"`
	// Verdict is required to approve an approval of kind outcome, and only there.
	Verdict OutcomeVerdict `json:"verdict,omitempty"`
	// Output is the JSON object that OutcomeDone gives to the caller.
	Output json.RawMessage `json:"output,omitempty"`
	// Signature proves who decided what, see [SignDecision].
	Signature *Signature `json:"signature,omitempty"`
	// DecidedAt is set by the run that accepts the decision, in its own time.
	DecidedAt time.Time `json:"decided_at,omitzero"`
	// Votes are the earlier approvals that count together with this one; set by
	// the run.
	Votes []Decision `json:"votes,omitempty"`
}

// Grant is what a decision is bound to. It serves one logical call: its own
// retries and nothing else.
type Grant struct {
	ApprovalID      string           `json:"approval_id"`
	CallID          string           `json:"call_id"`
	Module          apcore.ModuleRef `json:"module"`
	ArgumentsDigest string           `json:"arguments_digest"`
	// Requester is "<identity type>:<identity id>", empty for nobody known.
	Requester   string    `json:"requester"`
	RequestedAt time.Time `json:"requested_at"`
	// Deadline is the last moment a decision counts, exclusive.
	Deadline time.Time `json:"deadline,omitzero"`
	// Seal is an HMAC over the rest, empty when the worker has no key.
	Seal string `json:"seal,omitempty"`
}

// NestedGrant is a decided approval of a call made in process.
type NestedGrant struct {
	Grant    Grant    `json:"grant"`
	Decision Decision `json:"decision"`
}

// IgnoredDecision is a decision that changed nothing, and why.
type IgnoredDecision struct {
	Decision Decision `json:"decision"`
	Code     string   `json:"code"`
	Reason   string   `json:"reason"`
}

// validate checks what a decision about an approval of this kind must have.
func (d Decision) validate(kind ApprovalKind) error {
	var wrong []string
	note := func(bad bool, text string) {
		if bad {
			wrong = append(wrong, text)
		}
	}
	note(d.ApprovalID == "", "approval_id is empty")
	note(d.Status != apcore.ApprovalApproved && d.Status != apcore.ApprovalRejected, "status must be approved or rejected")
	note(strings.TrimSpace(d.ApprovedBy) == "", "approved_by must name who decides")
	note(len(d.Reason) > maxReasonLength, "reason is longer than 4096 bytes")
	_, token := d.Changes[apcore.ApprovalTokenKey]
	note(token, "changes must not bring an "+apcore.ApprovalTokenKey)
	note(len(d.Changes) > 0 && (d.Status == apcore.ApprovalRejected || kind == KindOutcome), "changes belong to the approval of a call")
	if kind == KindOutcome && d.Status == apcore.ApprovalApproved {
		note(d.Verdict != OutcomeRetry && d.Verdict != OutcomeDone, "verdict must be retry or done")
		_, err := apcore.DecodeObject(d.Output)
		note(d.Verdict == OutcomeDone && err != nil, "output must be a JSON object, verdict done gives it to the caller")
	} else {
		note(d.Verdict != "" || d.Output != nil, "verdict and output belong to an unknown outcome that is approved")
	}
	if len(wrong) == 0 {
		return nil
	}
	return newError(CodeDecisionInvalid, "the decision is not valid: %s", strings.Join(wrong, "; ")).
		WithDetail("approval_id", d.ApprovalID)
}

// accepts says whether a decision counts at this moment.
func (a *Approval) accepts(d Decision, now time.Time) error {
	switch {
	case a.Decision != nil:
		return a.refuse(CodeDecisionDuplicate, "was %s by %s before", a.Decision.Status, a.Decision.ApprovedBy)
	case a.Status == ApprovalIsTimeout, a.Status == ApprovalIsPending && a.expired(now):
		return a.refuse(CodeDecisionLate, "expired at %s", a.Deadline.Format(time.RFC3339))
	case a.Status != ApprovalIsPending:
		return a.refuse(CodeDecisionClosed, "no longer waits: it was %s", a.Status)
	case a.Kind == KindOutcome:
		return nil
	case a.voted(d.ApprovedBy) && d.Status == apcore.ApprovalApproved:
		return a.refuse(CodeDecisionDuplicate, "was approved by %s before and needs somebody else", d.ApprovedBy)
	}
	if why := a.Rules.forbids(d, a.Requester, a.Escalated); why != "" {
		return a.refuse(CodeDecisionForbidden, "cannot be decided by %s: %s", d.ApprovedBy, why)
	}
	return nil
}

// apply takes over a decision that counts; one approval of several needed stays
// a vote.
func (a *Approval) apply(d Decision) {
	if d.Status == apcore.ApprovalApproved && a.Kind == KindApproval && len(a.Votes)+1 < a.Rules.quorum() {
		a.Votes = append(a.Votes[:len(a.Votes):len(a.Votes)], d)
		return
	}
	if d.Status == apcore.ApprovalApproved {
		d.Votes = a.Votes
	}
	a.Votes, a.Status, a.Decision = nil, ApprovalState(d.Status), &d
}

func (a *Approval) voted(approver string) bool {
	for _, vote := range a.Votes {
		if samePerson(vote.ApprovedBy, approver) {
			return true
		}
	}
	return false
}

func (a *Approval) refuse(code apcore.Code, format string, args ...any) error {
	return newError(code, "approval %s "+format, append([]any{a.ApprovalID}, args...)...).
		WithDetail("approval_id", a.ApprovalID).WithDetail("status", string(a.Status))
}

// reopen makes an approval wait again after a worker refused decisions about
// it; the votes that were not refused still count.
func (a *Approval) reopen(decision Decision, refused []IgnoredDecision) {
	votes := slices.Concat(decision.Votes, []Decision{decision})
	a.Status, a.Decision, a.Votes = ApprovalIsPending, nil, nil
	for _, vote := range votes {
		vote.Votes = nil
		if vote.Status == apcore.ApprovalApproved && !contains(refused, vote) {
			a.Votes = append(a.Votes, vote)
		}
	}
	a.Ignored = bounded(a.Ignored, refused...)
}

func contains(refused []IgnoredDecision, vote Decision) bool {
	for _, r := range refused {
		if samePerson(r.Decision.ApprovedBy, vote.ApprovedBy) {
			return true
		}
	}
	return false
}

// expired: at the deadline itself it is too late.
func (a *Approval) expired(now time.Time) bool {
	return !a.Deadline.IsZero() && !now.Before(a.Deadline)
}

func (a *Approval) ignore(decision Decision, err error) {
	a.Ignored = bounded(a.Ignored, IgnoredDecision{Decision: decision, Code: string(apcore.CodeOf(err)), Reason: apcore.AsError(err).Message})
}

// bounded appends up to the bound and never into memory that a copy shares.
func bounded(ignored []IgnoredDecision, more ...IgnoredDecision) []IgnoredDecision {
	room := max(0, min(len(more), maxIgnored-len(ignored)))
	return append(ignored[:len(ignored):len(ignored)], more[:room]...)
}
