package temporal

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// budget counts what one run sends in one workflow task. It decides by the
// history alone, so a replay makes the same commands in the same tasks.
type budget struct {
	limits Limits
	// run is the context of the run itself: a timer of its own is not cancelled
	// with the call that happened to start it.
	run  workflow.Context
	task taskMark
	used int
	turn workflow.Future
}

// taskMark tells workflow tasks apart: each begins at another length of the
// history. The test environment has no history; there the clock moves on.
type taskMark struct {
	length int
	begun  time.Time
}

func newBudget(ctx workflow.Context, limits Limits) *budget {
	run, _ := workflow.NewDisconnectedContext(ctx)
	return &budget{limits: limits, run: run}
}

// admit waits until this many bytes fit into the workflow task. One value alone
// in its task always fits. It fails only when ctx is cancelled.
func (b *budget) admit(ctx workflow.Context, size int) error {
	weight := b.limits.weight(size)
	for {
		b.renew(ctx)
		if b.used == 0 || b.used+weight <= b.limits.MaxTaskBytes {
			b.used += weight
			return nil
		}
		if b.turn == nil {
			b.turn = workflow.NewTimerWithOptions(b.run, time.Millisecond, workflow.TimerOptions{Summary: "this workflow task is full"})
		}
		selector := workflow.NewSelector(ctx)
		selector.AddFuture(b.turn, func(workflow.Future) {})
		selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
		selector.Select(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func (b *budget) renew(ctx workflow.Context) {
	mark := taskMark{workflow.GetInfo(ctx).GetCurrentHistoryLength(), workflow.Now(ctx)}
	if mark != b.task {
		b.task, b.used, b.turn = mark, 0, nil
	}
}
