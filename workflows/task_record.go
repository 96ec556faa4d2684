package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// confirmTimeout is how long a record that was terminal from its first save on
// waits for the update that came with its start. Without that update the client
// has gone; the record is complete all the same.
const confirmTimeout = 10 * time.Second

// TaskRecord is the workflow apcore/task-record: it keeps one record of a
// temporal.TaskStore. The update apcore/task-save writes the record, the query
// apcore/task answers it. It stays open while the record is pending or running,
// and returns the record once it is terminal, so that a terminal one can be read
// without a worker. A history that has grown long continues as a new run.
//
// A save that comes after the end of the task is refused with TASK_ENDED, see
// durable.TaskRecord.MayBecome.
func TaskRecord(ctx workflow.Context, in durable.TaskRecordInput) (*durable.TaskRecord, error) {
	k := &recordKeeper{record: in.Record, first: in.SaveID, confirmed: in.SaveID == ""}
	k.record.V = durable.WireVersion
	if k.record.Place == 0 {
		k.record.Place = temporal.TaskPlace(workflow.GetInfo(ctx).WorkflowStartTime)
	}
	if err := k.open(ctx); err != nil {
		return nil, err
	}
	if k.record.Closed() {
		_, err := workflow.AwaitWithTimeout(ctx, confirmTimeout, func() bool { return k.confirmed })
		if err != nil {
			return nil, err
		}
	}
	err := workflow.Await(ctx, func() bool {
		return workflow.AllHandlersFinished(ctx) &&
			(k.record.Closed() || workflow.GetInfo(ctx).GetContinueAsNewSuggested())
	})
	if err != nil {
		return nil, err
	}
	if !k.record.Closed() {
		return nil, workflow.NewContinueAsNewError(ctx, temporal.Names(ctx).TaskRecord(), durable.TaskRecordInput{V: durable.WireVersion, Record: k.record})
	}
	return &k.record, nil
}

type recordKeeper struct {
	record durable.TaskRecord
	// first is the save that the record came with, confirmed whether its update
	// has arrived.
	first     string
	confirmed bool
}

func (k *recordKeeper) open(ctx workflow.Context) error {
	names := temporal.Names(ctx)
	err := workflow.SetQueryHandlerWithOptions(ctx, names.Task(), func() (durable.TaskRecord, error) { return k.record, nil },
		workflow.QueryHandlerOptions{Description: "the record of the task"})
	if err != nil {
		return err
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, names.TaskSave(), k.save, workflow.UpdateHandlerOptions{
		Validator: k.check, Description: "write the record of the task",
	})
}

func (k *recordKeeper) check(_ workflow.Context, save durable.TaskSave) error {
	if save.SaveID == k.first || k.record.MayBecome(&save.Task, save.Own) {
		return nil
	}
	return temporal.WorkflowError(durable.TaskEnded(&k.record.Task, save.Task.Status))
}

func (k *recordKeeper) save(ctx workflow.Context, save durable.TaskSave) (durable.TaskSaved, error) {
	if save.SaveID == k.first { // the start has brought it
		k.confirmed = true
		return k.saved(), nil
	}
	next := k.record
	next.Task, next.Seq = save.Task, k.record.Seq+1
	if next.Deleted { // saved anew, so its place is a new one
		next.Deleted, next.Place = false, temporal.TaskPlace(workflow.GetInfo(ctx).WorkflowStartTime)
	}
	if err := temporal.PublishTask(ctx, next); err != nil {
		return durable.TaskSaved{}, temporal.WorkflowError(err)
	}
	k.record = next
	return k.saved(), nil
}

func (k *recordKeeper) saved() durable.TaskSaved {
	return durable.TaskSaved{Place: k.record.Place, Seq: k.record.Seq}
}
