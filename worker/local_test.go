package worker_test

import (
	"fmt"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// TwoCalls calls one module before and after a deploy.
func TwoCalls(ctx workflow.Context) error {
	if _, err := temporal.Call[map[string]any](ctx, "test.read", nil); err != nil {
		return err
	}
	workflow.GetSignalChannel(ctx, "deployed").Receive(ctx, nil)
	_, err := temporal.Call[map[string]any](ctx, "test.read", nil)
	return err
}

// readBy hosts test.read with an execution of its own; empty says nothing.
func readBy(t *testing.T, execution string) *apcore.Executor {
	t.Helper()
	annotations := apcore.Annotations{Readonly: true}
	if execution != "" {
		annotations.Extra = map[string]any{"x-temporal": map[string]any{"execution": execution}}
	}
	return executorOf(t, apcore.ExecutorOptions{}, module{id: "test.read", annotations: annotations, run: actor(&ledger{})})
}

// waysOf lists how the calls of a history ran.
func waysOf(history *historypb.History) string {
	var ways []string
	for _, event := range history.Events {
		switch event.EventType { //nolint:exhaustive // only these are calls
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			ways = append(ways, "activity")
		case enumspb.EVENT_TYPE_MARKER_RECORDED:
			if event.GetMarkerRecordedEventAttributes().MarkerName == "LocalActivity" {
				ways = append(ways, "local")
			}
		}
	}
	return strings.Join(ways, ", ")
}

// A module may ask for local execution with one deploy and stop doing so with
// another: runs in flight go on as they began, new runs follow the module, and
// what either leaves behind replays under both.
func TestLocalExecutionChangesUnderRuns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ before, after, want string }{
		{"", "local", "activity, activity"},
		{"activity", "local", "activity, activity"},
		{"local", "activity", "local, local"},
		{"local", "local", "local, local"},
		{"", "", "activity, activity"},
	} {
		t.Run(fmt.Sprintf("from %q to %q", test.before, test.after), func(t *testing.T) {
			t.Parallel()
			s := newQueue(t)
			stop := s.work(readBy(t, test.before), worker.Options{}, TwoCalls)
			run := s.start(t.Context(), TwoCalls)
			s.until("the first call is done", func() bool {
				return s.events(run.GetID())[enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED] > 0 && waysOf(testsuite.History(t, s.client, run.GetID())) != ""
			})
			s.until("its result is taken", func() bool {
				counts := s.events(run.GetID())
				return counts[enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED] == counts[enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED] && counts[enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED] == counts[enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED]
			})
			stop()
			s.work(readBy(t, test.after), worker.Options{}, TwoCalls)
			must(t, s.client.SignalWorkflow(t.Context(), run.GetID(), "", "deployed", nil))
			must(t, s.end(run, nil))
			s.noTaskFailed(run.GetID())
			history := testsuite.History(t, s.client, run.GetID())
			if got := waysOf(history); got != test.want {
				t.Errorf("calls ran as %q, want %q", got, test.want)
			}
			for _, execution := range []string{"activity", "local"} {
				if err := testsuite.Replay(readBy(t, execution), history, TwoCalls); err != nil {
					t.Errorf("replay with %q: %v", execution, err)
				}
			}
		})
	}
}

// Of the events of a run, a call leaves three without a word of local execution,
// one with it.
func TestLocalCallsLeaveLess(t *testing.T) {
	t.Parallel()
	lengths := map[string]int{}
	for _, execution := range []string{"", "local"} {
		s := newQueue(t)
		s.work(readBy(t, execution), worker.Options{}, ManyCalls)
		run := s.start(t.Context(), ManyCalls, 20)
		must(t, s.end(run, nil))
		lengths[execution] = len(testsuite.History(t, s.client, run.GetID()).Events)
	}
	if lengths["local"] > 40 || lengths[""] < 6*20 {
		t.Errorf("events %v", lengths)
	}
}

// ManyCalls makes n calls in turn.
func ManyCalls(ctx workflow.Context, n int) error {
	for range n {
		if _, err := temporal.Call[map[string]any](ctx, "test.read", nil); err != nil {
			return err
		}
	}
	return nil
}
