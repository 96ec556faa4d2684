package testsuite

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// Replay runs a recorded history against today's code and returns what does not
// fit, nil if all does. The workflows are registered under their function names,
// the modules and ready-made workflows come from the executor. Nothing is called.
func Replay(executor *apcore.Executor, history *historypb.History, workflows ...any) error {
	plugin, err := worker.NewPlugin(executor, worker.PluginOptions{})
	if err != nil {
		return err
	}
	replayer, err := sdkworker.NewWorkflowReplayerWithOptions(sdkworker.WorkflowReplayerOptions{
		Plugins: []sdkworker.Plugin{plugin}, DisableDeadlockDetection: true, // a slow machine says nothing about the code
	})
	if err != nil {
		return err
	}
	for _, fn := range workflows {
		replayer.RegisterWorkflow(fn)
	}
	return replayer.ReplayWorkflowHistoryWithOptions(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), history, sdkworker.ReplayWorkflowHistoryOptions{
		OriginalExecution: originalExecution(history),
	})
}

// originalExecution makes ids that code derives from the run the same as then.
func originalExecution(history *historypb.History) workflow.Execution {
	if len(history.GetEvents()) == 0 {
		return workflow.Execution{}
	}
	started := history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	return workflow.Execution{ID: started.GetWorkflowId(), RunID: started.GetOriginalExecutionRunId()}
}

// History reads the whole history of a workflow's latest run from a server.
func History(tb testing.TB, c client.Client, workflowID string) *historypb.History {
	tb.Helper()
	history := &historypb.History{}
	events := c.GetWorkflowHistory(tb.Context(), workflowID, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			tb.Fatalf("history of workflow %q: %v", workflowID, err)
		}
		history.Events = append(history.Events, event)
	}
	return history
}

// WriteHistory keeps a history in a file, as JSON.
func WriteHistory(tb testing.TB, path string, history *historypb.History) {
	tb.Helper()
	text, err := protojson.MarshalOptions{Indent: " "}.Marshal(history)
	if err != nil {
		tb.Fatalf("history: %v", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// ReadHistory reads what [WriteHistory] wrote.
func ReadHistory(tb testing.TB, path string) *historypb.History {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	history := &historypb.History{}
	if err := protojson.Unmarshal(text, history); err != nil {
		tb.Fatalf("%s is no history: %v", path, err)
	}
	return history
}
