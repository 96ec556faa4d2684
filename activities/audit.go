package activities

import (
	"context"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// audit hands the records of approvals to the sink. Without one on this worker
// it fails so that another worker gets them.
func (a *Activities) audit(ctx context.Context, batch durable.AuditBatch) error {
	if a.sink == nil {
		e := apcore.NewError(apcore.CodeConfigInvalid, "this worker has no audit sink, but runs on its queue make records: give all workers of the queue one")
		return temporal.ActivityError(&durable.Failure{Err: e, Retry: true, NotStarted: true, RetryAfter: time.Second})
	}
	if err := a.record(ctx, batch.Records); err != nil {
		return temporal.ActivityError(&durable.Failure{Err: apcore.NewError(apcore.CodeInternal, "the audit sink failed: %w", err), Retry: true})
	}
	return nil
}

// record keeps a sink's panic from ending the worker's goodwill: it is a failure
// like any other and is tried again.
func (a *Activities) record(ctx context.Context, records []durable.AuditRecord) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = apcore.NewError(apcore.CodeInternal, "it panicked")
		}
	}()
	return a.sink.RecordApprovals(ctx, records)
}
