package workflows

import (
	"time"

	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// Bounds of one sweep.
const (
	maxSweepPages = 500
	sweepTimeout  = 10 * time.Minute
	sweepBeat     = time.Minute
	sweepAttempts = 5
)

// TaskReaper is the workflow apcore/task-reaper: one sweep over a store, page by
// page. It deletes terminal records whose end is longer ago than the TTL, never
// pending or running ones, and returns how many. A schedule starts it, see
// temporal.TaskManager.StartReaper.
func TaskReaper(ctx workflow.Context, in durable.TaskSweep) (durable.TaskSwept, error) {
	in.Before = float64(temporal.TaskPlace(workflow.Now(ctx)))/1e6 - in.TTLSeconds
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: sweepTimeout, HeartbeatTimeout: sweepBeat, Summary: "delete expired tasks of " + in.Store,
		RetryPolicy: &sdktemporal.RetryPolicy{MaximumAttempts: sweepAttempts},
	})
	var total durable.TaskSwept
	for total.Pages < maxSweepPages {
		var page durable.TaskSwept
		if err := workflow.ExecuteActivity(ctx, temporal.Names(ctx).TaskSweep(), in).Get(ctx, &page); err != nil {
			return total, err
		}
		total.Add(page)
		if page.Deleted == 0 || !page.More {
			break
		}
	}
	return total, nil
}
