package worker_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// race lets both sides do the same in turns, so that what the machine does besides
// meets both alike, and reports the median of the ratios of neighbours. calls is
// how many calls one turn makes. Another side leads in each turn.
func race(b *testing.B, calls int, turn func(side string)) {
	b.Helper()
	times := map[string][]float64{}
	sides := []string{byHand, byModule}
	for _, side := range sides { // once without a watch, to fill caches
		turn(side)
	}
	for b.Loop() {
		for _, side := range sides {
			begun := time.Now()
			turn(side)
			times[side] = append(times[side], float64(time.Since(begun).Microseconds())/float64(calls))
		}
		slices.Reverse(sides)
	}
	ratios := make([]float64, len(times[byHand]))
	for i := range ratios {
		ratios[i] = times[byModule][i] / times[byHand][i]
	}
	b.ReportMetric(0, "ns/op") // of both sides together, which says nothing
	b.ReportMetric(median(times[byHand]), "µs/call-by-hand")
	b.ReportMetric(median(times[byModule]), "µs/call-by-module")
	b.ReportMetric(median(ratios), "ratio")
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// BenchmarkTemporalLatency makes twenty calls one after the other.
func BenchmarkTemporalLatency(b *testing.B) {
	c := newContest(b, testsuite.DevServer(b))
	race(b, 20, func(side string) {
		must(b, c.start(side, c.workflow(side), Steps{20, 1}, order).Get(b.Context(), nil))
	})
}

// BenchmarkTemporalThroughput has four runs make fifty calls each, ten at a time.
func BenchmarkTemporalThroughput(b *testing.B) {
	c := newContest(b, testsuite.DevServer(b))
	race(b, 200, func(side string) {
		var runs []client.WorkflowRun
		for range 4 {
			runs = append(runs, c.start(side, c.workflow(side), Steps{5, 10}, order))
		}
		for _, run := range runs {
			must(b, run.Get(b.Context(), nil))
		}
	})
}

func (c *contest) workflow(side string) any {
	if side == byHand {
		return ByHand
	}
	return ByModule
}

// BenchmarkTemporalReplay replays a recorded run of a thousand calls: one after
// the other, and ten at a time.
func BenchmarkTemporalReplay(b *testing.B) {
	for name, steps := range map[string]Steps{"in_a_row": {1000, 1}, "ten_at_a_time": {100, 10}} {
		b.Run(name, func(b *testing.B) { replay(b, steps) })
	}
}

func replay(b *testing.B, steps Steps) {
	b.Helper()
	c := newContest(b, testsuite.DevServer(b))
	plugin, err := worker.NewPlugin(c.executor, worker.PluginOptions{})
	must(b, err)
	ours, err := sdkworker.NewWorkflowReplayerWithOptions(sdkworker.WorkflowReplayerOptions{Plugins: []sdkworker.Plugin{plugin}})
	must(b, err)
	ours.RegisterWorkflow(ByModule)
	plain := sdkworker.NewWorkflowReplayer()
	plain.RegisterWorkflow(ByHand)
	replayers := map[string]sdkworker.WorkflowReplayer{byHand: plain, byModule: ours}
	histories := map[string]*historypb.History{}
	for side := range replayers {
		histories[side] = c.run(side, c.workflow(side), steps, order)
	}
	logger := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	race(b, 1000, func(side string) {
		history := histories[side]
		started := history.Events[0].GetWorkflowExecutionStartedEventAttributes()
		must(b, replayers[side].ReplayWorkflowHistoryWithOptions(logger, history, sdkworker.ReplayWorkflowHistoryOptions{
			OriginalExecution: workflow.Execution{ID: started.WorkflowId, RunID: started.OriginalExecutionRunId},
		}))
	})
}
