package durable

import (
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// ApprovalHead is what a list over many runs shows of a pending approval: small
// enough for the server's own records. Arguments are redacted, and left out when
// they are long; ask the run for them.
type ApprovalHead struct {
	ApprovalID  string       `json:"approval_id"`
	Kind        ApprovalKind `json:"kind,omitempty"`
	ModuleID    string       `json:"module_id"`
	Description string       `json:"description,omitempty"`
	Arguments   Object       `json:"arguments,omitempty"`
	Requester   string       `json:"requester,omitempty"`
	CallerID    string       `json:"caller_id,omitempty"`
	RequestedAt time.Time    `json:"requested_at"`
	Deadline    time.Time    `json:"deadline,omitzero"`
	Approvers   []string     `json:"approvers,omitempty"`
	Escalated   bool         `json:"escalated,omitempty"`
	// Votes and Quorum count approvals when more than one is needed.
	Votes  int `json:"votes,omitempty"`
	Quorum int `json:"quorum,omitempty"`
}

// Bounds of a head: a memo has to stay small.
const (
	maxHeadArguments   = 2048
	maxHeadDescription = 200
	maxHeads           = 20
)

// Head shortens an approval for a list.
func (a Approval) Head() ApprovalHead {
	head := ApprovalHead{
		ApprovalID: a.ApprovalID, Kind: a.Kind, ModuleID: a.Module.ID, Description: cut(a.Description, maxHeadDescription),
		Requester: a.Requester, CallerID: a.CallerID, RequestedAt: a.RequestedAt, Deadline: a.Deadline,
		Escalated: a.Escalated, Votes: len(a.Votes),
	}
	if quorum := a.Rules.quorum(); quorum > 1 {
		head.Quorum = quorum
	}
	if a.Rules != nil {
		head.Approvers = append(append(head.Approvers, a.Rules.Approvers...), a.Rules.Roles...)
	}
	if text, err := apcore.EncodeJSON(a.Arguments); err == nil && len(text) <= maxHeadArguments {
		head.Arguments = a.Arguments
	}
	return head
}

// Heads are the pending approvals that may be listed, the oldest twenty at most.
func (b *Inbox) Heads() []ApprovalHead {
	heads := []ApprovalHead{}
	for i := range b.state.Approvals {
		a := &b.state.Approvals[i]
		if a.Listed && a.Status == ApprovalIsPending && len(heads) < maxHeads {
			heads = append(heads, a.Head())
		}
	}
	return heads
}

func cut(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:limit-1]) + "…"
}
