package oteltemporal_test

import (
	"log/slog"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/temporal/oteltemporal"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// replay runs a history with everything that traces.
func replay(p *traced, history *historypb.History) error {
	tracing, err := oteltemporal.NewInterceptor(p.provider)
	if err != nil {
		return err
	}
	plugin, err := worker.NewPlugin(p.executor, worker.PluginOptions{})
	if err != nil {
		return err
	}
	replayer, err := sdkworker.NewWorkflowReplayerWithOptions(sdkworker.WorkflowReplayerOptions{
		Interceptors: []interceptor.WorkerInterceptor{tracing}, Plugins: []sdkworker.Plugin{plugin},
	})
	if err != nil {
		return err
	}
	replayer.RegisterWorkflowWithOptions(refund, workflow.RegisterOptions{Name: "Refund"})
	return replayer.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), history)
}
