package worker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// ManyGated asks for several large approvals at once.
func ManyGated(ctx workflow.Context, count, size int) error {
	var calls []*temporal.Future[sizeOrder]
	for range count {
		calls = append(calls, temporal.CallAsync[sizeOrder](ctx, "size.gated", sizeText{strings.Repeat("x", size)}))
	}
	for _, call := range calls {
		if _, err := call.Get(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Target 30, the query: approvals whose arguments are together too much for one
// answer can still be listed, read one by one, and decided.
func TestLargeApprovalsAreListed(t *testing.T) {
	t.Parallel()
	const count, size = 4, 600_000
	s := serve(t, testsuite.DevServer(t).Client(t, client.Options{}), newSizeExecutor(t), worker.Options{}, ManyGated)
	run := s.start(t.Context(), ManyGated, count, size)
	var list []durable.Approval
	for deadline := time.Now().Add(2 * time.Minute); len(list) < count && time.Now().Before(deadline); {
		var err error
		list, err = s.approvals.List(t.Context(), run.GetID())
		must(t, err)
	}
	whole := 0
	for i, short := range list {
		if text, ok := short.Arguments["text"].(string); ok && len(text) == size {
			whole++
		} else if short.Arguments["omitted"] == nil {
			t.Errorf("approval %d shows %d arguments", i, len(short.Arguments))
		}
		full, err := s.approvals.Get(t.Context(), run.GetID(), short.ApprovalID)
		must(t, err)
		if text, _ := full.Arguments["text"].(string); len(text) != size || full.ApprovalID != short.ApprovalID {
			t.Errorf("approval %d alone shows %d bytes", i, len(text))
		}
		must(t, s.approvals.Decide(t.Context(), run.GetID(), approve(short.ApprovalID)))
	}
	if len(list) != count || whole == 0 || whole == count {
		t.Errorf("%d approvals, %d of them whole", len(list), whole)
	}
	must(t, s.end(run, nil))
	if n := s.events(run.GetID())[enums.EVENT_TYPE_WORKFLOW_TASK_FAILED]; n > 0 {
		t.Errorf("%d workflow tasks failed", n)
	}
}

// Noted lets calls write the same and different data at once, and returns what
// is left of it.
func Noted(ctx workflow.Context) (map[string]any, error) {
	var calls []*temporal.Future[sizeOrder]
	for i := range 8 {
		calls = append(calls, temporal.CallAsync[sizeOrder](ctx, "size.note", sizeOrder{i}))
	}
	for _, call := range calls {
		if _, err := call.Get(ctx); err != nil {
			return nil, err
		}
	}
	data := temporal.ContextData(ctx)
	// What was merged last decides what comes next, so that a replay that merged in
	// another order would not fit.
	last, _ := data["note"].(string)
	var timers []workflow.Future
	for range len(last) {
		timers = append(timers, workflow.NewTimer(ctx, time.Millisecond))
	}
	for _, timer := range timers {
		if err := timer.Get(ctx, nil); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// lastNote is the note that is merged last: of the workflow task that brought the
// last results, the one of the call that was made last.
func lastNote(history *historypb.History) string {
	last, call := "", int64(0)
	for _, event := range history.Events {
		if event.EventType == enums.EVENT_TYPE_WORKFLOW_TASK_STARTED {
			call = 0
		}
		done := event.GetActivityTaskCompletedEventAttributes()
		if done == nil || done.ScheduledEventId < call {
			continue
		}
		if _, note, ok := strings.Cut(string(done.Result.Payloads[0].Data), `"data":{"note":"`); ok {
			last, _, _ = strings.Cut(note, `"`)
			call = done.ScheduledEventId
		}
	}
	return last
}

// Data that parallel calls return is merged workflow task by workflow task, and
// within one in the order in which the calls were made, both of which the history
// keeps: a replay ends with the same.
func TestMergedDataReplays(t *testing.T) {
	t.Parallel()
	s := serve(t, testsuite.DevServer(t).Client(t, client.Options{}), newSizeExecutor(t), worker.Options{}, Noted)
	seen := map[string]bool{}
	for range 3 {
		run := s.start(t.Context(), Noted)
		var data map[string]any
		must(t, s.end(run, &data))
		history := testsuite.History(t, s.client, run.GetID())
		last := lastNote(history)
		if diff := cmp.Diff(map[string]any{"note": last}, data); diff != "" {
			t.Errorf("data is not what is merged last (-want +got):\n%s", diff)
		}
		seen[fmt.Sprint(len(last))] = true
		must(t, testsuite.Replay(newSizeExecutor(t), history, Noted))
	}
	t.Logf("ended with the notes of %v", seen)
}
