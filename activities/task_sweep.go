package activities

import (
	"context"

	"go.temporal.io/sdk/activity"

	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// sweep deletes one page of expired tasks.
func (a *Activities) sweep(ctx context.Context, in durable.TaskSweep) (durable.TaskSwept, error) {
	stop := heartbeat(ctx)
	defer stop()
	store, err := temporal.NewTaskStore(activity.GetClient(ctx), temporal.TaskStoreOptions{
		TaskQueue: in.TaskQueue, Name: in.Store, Namespace: activity.GetInfo(ctx).Namespace,
		DataConverter: a.opts.DataConverter, Namer: a.namer,
	})
	if err != nil {
		return durable.TaskSwept{}, temporal.WorkflowError(err)
	}
	return store.Sweep(ctx, in.Before)
}
