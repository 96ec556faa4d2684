package temporal

import (
	"time"

	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/durable"
)

// auditor delivers audit records through a unit of their own, one batch after
// the other, so that a record is delivered as often as it happened: replay
// writes none, and a lost worker loses none.
type auditor struct {
	state   *state
	records []durable.AuditRecord
	running bool
}

const (
	maxAuditBatch   = 50
	auditTimeout    = time.Minute
	auditRetryLimit = 24 * time.Hour
)

// record takes a record of an approval that wants it.
func (a *auditor) record(ctx workflow.Context, record durable.AuditRecord) {
	if !record.Approval.Audit {
		return
	}
	info := a.state.info.WorkflowExecution
	record.WorkflowID, record.RunID = info.ID, info.RunID
	a.records = append(a.records, record)
	if a.running {
		return
	}
	a.running = true
	detached, _ := workflow.NewDisconnectedContext(ctx)
	workflow.GoNamed(detached, "apcore-audit", a.deliver)
}

// event records what has become of an approval.
func (a *auditor) event(ctx workflow.Context, event durable.AuditEvent, id string) {
	if approval, ok := a.state.desk.inbox.Get(id); ok {
		a.record(ctx, durable.NewAuditRecord(event, approval, workflow.Now(ctx)))
	}
}

// ended records the end of an approval; its status is the event.
func (a *auditor) ended(ctx workflow.Context, id string) {
	if approval, ok := a.state.desk.inbox.Get(id); ok && approval.Status != durable.ApprovalIsPending {
		a.record(ctx, durable.NewAuditRecord(durable.AuditEvent(approval.Status), approval, workflow.Now(ctx)))
	}
}

func (a *auditor) deliver(ctx workflow.Context) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: auditTimeout, ScheduleToCloseTimeout: auditRetryLimit,
		RetryPolicy: &sdktemporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
		Summary:     "audit of approvals",
	})
	for len(a.records) > 0 {
		count := min(len(a.records), maxAuditBatch)
		batch := durable.AuditBatch{V: durable.WireVersion, Records: a.records[:count:count]}
		a.records = a.records[count:]
		if err := workflow.ExecuteActivity(ctx, a.state.opts.Namer.Audit(), batch).Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Error("apcore: audit records could not be delivered; they are in the history of this run", "records", count, "error", err)
		}
	}
	a.running = false
}

// flush waits until everything is delivered.
func (a *auditor) flush(ctx workflow.Context) {
	_ = workflow.Await(ctx, func() bool { return !a.running }) // ctx is detached, it cannot be cancelled
}
