package durable

import (
	"context"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// AuditEvent is a step in the life of an [Approval].
type AuditEvent string

// The events. Each approval has one requested and one of the five that end it;
// an approved one that ran has executed as well, an escalated one escalated.
const (
	AuditRequested AuditEvent = "requested"
	AuditEscalated AuditEvent = "escalated"
	AuditApproved  AuditEvent = "approved"
	AuditRejected  AuditEvent = "rejected"
	AuditExpired   AuditEvent = "timeout"
	AuditCancelled AuditEvent = "cancelled"
	AuditWithdrawn AuditEvent = "withdrawn"
	AuditExecuted  AuditEvent = "executed"
)

// AuditRecord is one step of one approval. Arguments in it are redacted, but an
// approver's changes stand as they were given.
type AuditRecord struct {
	// ID is the same however often the record is delivered.
	ID         string     `json:"id"`
	Event      AuditEvent `json:"event"`
	At         time.Time  `json:"at"`
	WorkflowID string     `json:"workflow_id"`
	RunID      string     `json:"run_id"`
	Approval   Approval   `json:"approval"`
	// ExecutedDigest is the digest of the arguments that ran, if the approver
	// changed them and the call completed; Approval.ArgumentsDigest is the one of
	// what was asked. Outcome is completed or the code of the error. Both only
	// when executed.
	ExecutedDigest string `json:"executed_digest,omitempty"`
	Outcome        string `json:"outcome,omitempty"`
}

// AuditBatch is what travels to the unit that hands records on.
type AuditBatch struct {
	V       int           `json:"v"`
	Records []AuditRecord `json:"records"`
}

// AuditSink takes the records of approvals. Delivery is repeated until it
// succeeds, so a sink drops records whose ID it has.
type AuditSink interface {
	RecordApprovals(ctx context.Context, records []AuditRecord) error
}

// NewAuditRecord describes an approval as it stands; the event that ends it is
// its status.
func NewAuditRecord(event AuditEvent, approval Approval, now time.Time) AuditRecord {
	return AuditRecord{ID: approval.ApprovalID + "/" + string(event), Event: event, At: stamp(now), Approval: approval}
}

// AuditExecution is the record of a resumed call that came back with an error or
// without.
func AuditExecution(approval Approval, result CallResult, err error, now time.Time) AuditRecord {
	record := NewAuditRecord(AuditExecuted, approval, now)
	record.Outcome, record.ExecutedDigest = string(StatusCompleted), result.ArgumentsDigest
	if err != nil {
		record.Outcome = string(apcore.CodeOf(err))
	}
	return record
}
