package temporal_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

func (o *office) cancel(t *testing.T, m *temporal.TaskManager, id string, want bool) {
	t.Helper()
	if got, err := m.Cancel(t.Context(), id); err != nil || got != want {
		t.Errorf("cancel: %t, %v, want %t", got, err, want)
	}
}

// Scenario 78: cancel reaches the module from any process, ends a pause and the
// wait for an approval, and says whether it was this call that cancelled.
func TestCancelTask(t *testing.T) {
	t.Parallel()
	o := newOffice(t, testsuite.DevServer(t), temporal.TaskManagerOptions{})
	other := o.manager(t, temporal.TaskManagerOptions{})
	running := o.submit(t, temporal.TaskSubmission{ModuleID: "task.again", Inputs: map[string]any{"how": "wait"}})
	o.until(t, running, has(apcore.TaskRunning))
	for o.book.count() == 0 {
		time.Sleep(5 * time.Millisecond) // until the module is at it
	}
	o.cancel(t, other, running, true)
	o.cancel(t, other, running, false)
	if record := o.wait(t, running); record.Task.Status != apcore.TaskCancelled || record.Task.CompletedAt == nil || record.LateOutcome != "" || o.book.count() != 1 {
		t.Errorf("record %+v after %d executions", record, o.book.count())
	}

	pausing := o.submit(t, temporal.TaskSubmission{ModuleID: "task.again", Inputs: map[string]any{"how": "fail"}, Retry: &apcore.RetryConfig{MaxRetries: 3, RetryDelayMS: 3600_000, BackoffMultiplier: 2, MaxRetryDelayMS: 3600_000}})
	o.until(t, pausing, func(r *durable.TaskRecord) bool { return r.Task.RetryCount == 1 })
	o.cancel(t, other, pausing, true)
	if record := o.wait(t, pausing); record.Task.Status != apcore.TaskCancelled || record.NextAttemptAt != nil || o.book.count() != 2 {
		t.Errorf("record %+v after %d executions", record, o.book.count())
	}

	gated := o.submit(t, temporal.TaskSubmission{ModuleID: "task.gated"})
	record := o.until(t, gated, func(r *durable.TaskRecord) bool { return r.InputRequired })
	o.cancel(t, other, gated, true)
	if record := o.wait(t, gated); record.Task.Status != apcore.TaskCancelled || record.InputRequired || o.book.count() != 2 {
		t.Errorf("record %+v after %d executions", record, o.book.count())
	}
	late := durable.Decision{ApprovalID: record.Approval.ApprovalID, Status: apcore.ApprovalApproved, ApprovedBy: "ana"}
	if err := o.approvals.Decide(t.Context(), record.Approval.WorkflowID, late); !errors.Is(err, durable.CodeRunClosed) {
		t.Errorf("a decision after the end: %v", err)
	}
	o.cancel(t, other, "nobody", false)
}

// An effect that did happen is not taken for none: the record of a task that was
// cancelled while a deaf module went on says how the module ended.
func TestCancelledAndYetDone(t *testing.T) {
	t.Parallel()
	o := newOffice(t, testsuite.DevServer(t), temporal.TaskManagerOptions{})
	id := o.submit(t, temporal.TaskSubmission{ModuleID: "task.once", Inputs: map[string]any{"how": "deaf"}})
	for o.book.count() == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	o.cancel(t, o.TaskManager, id, true)
	close(o.release)
	record := o.wait(t, id)
	if record.Task.Status != apcore.TaskCancelled || record.Task.Result != nil || record.LateOutcome != "completed" || o.book.count() != 1 {
		t.Errorf("record %+v", record)
	}
}

// Scenario 78: cancel races with completion. The first terminal state stays, and
// the answer of cancel fits it.
func TestCancelRaces(t *testing.T) {
	t.Parallel()
	o := newOffice(t, testsuite.DevServer(t), temporal.TaskManagerOptions{})
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			how := []string{"", "fail"}[i%2]
			id, err := o.Start(t.Context(), temporal.TaskSubmission{ModuleID: "task.once", Inputs: map[string]any{"how": how}})
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(time.Duration(i) * time.Millisecond)
			cancelled, err := o.Cancel(t.Context(), id)
			first, errGet := o.Store().Record(t.Context(), id)
			last, errWait := o.Wait(t.Context(), id)
			if err := errors.Join(err, errGet, errWait); err != nil {
				t.Error(err)
				return
			}
			if cancelled != (last.Task.Status == apcore.TaskCancelled) || first.Task.Status != last.Task.Status {
				t.Errorf("cancelled %t, then %s, in the end %s", cancelled, first.Task.Status, last.Task.Status)
			}
		})
	}
	group.Wait()
}

// Without a worker a cancellation is noted by the server and nobody is told that
// it has happened; it takes effect when a worker is back.
func TestCancelWithoutWorker(t *testing.T) {
	t.Parallel()
	o := newOffice(t, testsuite.DevServer(t), temporal.TaskManagerOptions{})
	o.clerk.stop()
	m := o.manager(t, temporal.TaskManagerOptions{TaskStoreOptions: temporal.TaskStoreOptions{Timeout: 3 * time.Second}})
	id, err := m.Start(t.Context(), temporal.TaskSubmission{ModuleID: "task.once"})
	must(t, err)
	if info, err := m.GetStatus(t.Context(), id); err != nil || info == nil || info.Status != apcore.TaskPending {
		t.Errorf("not started yet: %+v, %v", info, err)
	}
	if cancelled, err := m.Cancel(t.Context(), id); cancelled || !errors.Is(err, apcore.CodeTaskStoreUnavailable) || !errors.Is(err, durable.CodeNoWorker) {
		t.Errorf("cancel: %t, %v", cancelled, err)
	}
	o.clerk.work(t, o.executor)
	if record := o.wait(t, id); record.Task.Status != apcore.TaskCancelled || o.book.count() != 0 {
		t.Errorf("record %+v after %d executions", record, o.book.count())
	}
}

// Scenario 76: only pending and running tasks count, and parallel submissions
// never exceed the bound.
func TestTaskLimit(t *testing.T) {
	t.Parallel()
	o := newOffice(t, fileServer(t, testsuite.ServerOptions{}), temporal.TaskManagerOptions{MaxTasks: 3})
	for round := range 2 {
		var group sync.WaitGroup
		ids := make(chan string, 30)
		for range cap(ids) {
			group.Go(func() {
				id, err := o.Start(t.Context(), temporal.TaskSubmission{ModuleID: "task.again", Inputs: map[string]any{"how": "wait"}})
				if err == nil {
					ids <- id
				} else if e := apcore.AsError(err); e == nil || e.Code != apcore.CodeTaskLimitExceeded || e.Retryable == nil || !*e.Retryable || e.Message != "Task limit reached (3)" {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if close(ids); len(ids) != 3 {
			t.Errorf("round %d: %d tasks were admitted", round, len(ids))
		}
		for id := range ids {
			o.cancel(t, o.TaskManager, id, true)
		}
	}
}

// Shutdown cancels the manager's own tasks, waits for them and takes no more.
func TestShutdownTasks(t *testing.T) {
	t.Parallel()
	o := newOffice(t, testsuite.DevServer(t), temporal.TaskManagerOptions{})
	other := o.manager(t, temporal.TaskManagerOptions{})
	waits := temporal.TaskSubmission{ModuleID: "task.again", Inputs: map[string]any{"how": "wait"}}
	theirs, err := other.Start(t.Context(), waits)
	must(t, err)
	ours := []string{o.submit(t, waits), o.submit(t, waits)}
	must(t, o.Shutdown(t.Context()))
	for _, id := range ours {
		if info, err := o.GetStatus(t.Context(), id); err != nil || info.Status != apcore.TaskCancelled {
			t.Errorf("own task: %+v, %v", info, err)
		}
	}
	if info, err := o.GetStatus(t.Context(), theirs); err != nil || info.Status.Terminal() {
		t.Errorf("task of another manager: %+v, %v", info, err)
	}
	if _, err := o.Start(t.Context(), waits); !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("a submission after shutdown: %v", err)
	}
	close(o.release)
	o.wait(t, theirs)
}

// Cleanup removes what has ended and nothing else.
func TestCleanupTasks(t *testing.T) {
	t.Parallel()
	o := newOffice(t, testsuite.DevServer(t), temporal.TaskManagerOptions{})
	done := []string{o.submit(t, temporal.TaskSubmission{ModuleID: "task.once"}), o.submit(t, temporal.TaskSubmission{ModuleID: "task.once", Inputs: map[string]any{"how": "fail"}})}
	for _, id := range done {
		o.wait(t, id)
	}
	waiting := o.submit(t, temporal.TaskSubmission{ModuleID: "task.again", Inputs: map[string]any{"how": "wait"}})
	if n, err := o.Cleanup(t.Context(), time.Hour); n != 0 || err != nil {
		t.Errorf("removed %d, %v", n, err)
	}
	removed := 0
	for deadline := time.Now().Add(time.Minute); removed < 2 && time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		n, err := o.Cleanup(t.Context(), 0) // the server lists what ended a little later
		must(t, err)
		removed += n
	}
	infos, err := o.ListTasks(t.Context(), nil)
	if err != nil || removed != 2 || len(infos) != 1 || infos[0].TaskID != waiting {
		t.Errorf("removed %d, left %v, %v", removed, idsOf(infos), err)
	}
	if _, err := o.Cleanup(t.Context(), -1); !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("a negative age: %v", err)
	}
	close(o.release)
}

// Scenario 76 and the contract's reaper: opt-in, one for each store, deletes what
// expired and never a pending or running task.
func TestReaper(t *testing.T) {
	t.Parallel()
	o := newOffice(t, testsuite.DevServer(t), temporal.TaskManagerOptions{})
	other := o.manager(t, temporal.TaskManagerOptions{})
	recent := endedTask("recent", apcore.TaskFailed)
	recent.CompletedAt = new(float64(time.Now().Unix()))
	for _, info := range []apcore.TaskInfo{endedTask("old", apcore.TaskCompleted), recent, runningTask("open")} {
		must(t, o.Store().Save(t.Context(), info))
	}
	must(t, o.StartReaper(t.Context(), apcore.ReaperOptions{TTL: time.Hour, SweepInterval: time.Second}))
	t.Cleanup(func() { must(t, o.StopReaper(context.Background())) }) //nolint:usetesting // the test's has ended
	if err := other.StartReaper(t.Context(), apcore.ReaperOptions{}); !errors.Is(err, apcore.CodeReaperAlreadyRunning) {
		t.Errorf("a second reaper: %v", err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if info, err := other.GetStatus(t.Context(), "old"); err == nil && info == nil {
			break
		}
	}
	infos, err := o.ListTasks(t.Context(), nil)
	for deadline := time.Now().Add(time.Minute); len(infos) != 2 && time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		infos, err = o.ListTasks(t.Context(), nil)
	}
	if ids := idsOf(infos); err != nil || len(ids) != 2 || ids[0] != "recent" || ids[1] != "open" {
		t.Errorf("left %v, %v", ids, err)
	}
	must(t, o.StopReaper(t.Context()))
	must(t, o.StopReaper(t.Context()))
	must(t, other.StartReaper(t.Context(), apcore.ReaperOptions{}))
	if err := o.StartReaper(t.Context(), apcore.ReaperOptions{TTL: -1}); !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("a negative TTL: %v", err)
	}
}

// Pitfall 37: every end that a workflow can come to has its status, told from the
// server's own list of ends.
func TestEveryEndHasAStatus(t *testing.T) {
	closed := time.Unix(1700000100, 0)
	want := map[enums.WorkflowExecutionStatus]apcore.TaskStatus{
		enums.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED: apcore.TaskRunning, enums.WORKFLOW_EXECUTION_STATUS_RUNNING: apcore.TaskRunning,
		enums.WORKFLOW_EXECUTION_STATUS_PAUSED: apcore.TaskRunning, enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW: apcore.TaskRunning,
		enums.WORKFLOW_EXECUTION_STATUS_COMPLETED: apcore.TaskFailed, enums.WORKFLOW_EXECUTION_STATUS_FAILED: apcore.TaskFailed,
		enums.WORKFLOW_EXECUTION_STATUS_CANCELED: apcore.TaskCancelled, enums.WORKFLOW_EXECUTION_STATUS_TERMINATED: apcore.TaskFailed,
		enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT: apcore.TaskFailed,
	}
	for number, name := range enums.WorkflowExecutionStatus_name {
		status, known := want[enums.WorkflowExecutionStatus(number)]
		if !known {
			t.Errorf("%s has no status here: say which in settle and in this test", name)
			continue
		}
		record := durable.TaskRecord{Task: runningTask("task")}
		temporal.Settle(&record, enums.WorkflowExecutionStatus(number), closed)
		ended := status.Terminal()
		if record.Task.Status != status || (record.Task.CompletedAt != nil) != ended || (record.Task.Error != nil) != (status == apcore.TaskFailed) {
			t.Errorf("%s: %+v, want %s", name, record.Task, status)
		}
		for _, own := range []apcore.TaskStatus{apcore.TaskCompleted, apcore.TaskCancelled, apcore.TaskFailed} {
			record := durable.TaskRecord{Task: endedTask("task", own)}
			if temporal.Settle(&record, enums.WorkflowExecutionStatus(number), closed); record.Task.Status != own {
				t.Errorf("%s: the task's own %s became %s", name, own, record.Task.Status)
			}
		}
	}
}

// Pitfall 37 on a server: terminated, timed out, cancelled from outside, reset.
func TestTasksEndedFromOutside(t *testing.T) {
	t.Parallel()
	o := newOffice(t, testsuite.DevServer(t), temporal.TaskManagerOptions{})
	waits := temporal.TaskSubmission{ModuleID: "task.again", Inputs: map[string]any{"how": "wait"}}
	terminated, cancelled := o.submit(t, waits), o.submit(t, waits)
	waits.Timeout = time.Second
	timedOut := o.submit(t, waits)
	for _, id := range []string{terminated, cancelled} {
		o.until(t, id, has(apcore.TaskRunning))
	}
	must(t, o.clerk.client.TerminateWorkflow(t.Context(), o.workflow(terminated), "", "by the test"))
	must(t, o.clerk.client.CancelWorkflow(t.Context(), o.workflow(cancelled), ""))
	for id, want := range map[string]apcore.TaskStatus{terminated: apcore.TaskFailed, cancelled: apcore.TaskCancelled, timedOut: apcore.TaskFailed} {
		record := o.wait(t, id)
		if record.Task.Status != want || record.Task.CompletedAt == nil {
			t.Errorf("record %+v, want %s", record, want)
		}
		infos := []string{}
		for deadline := time.Now().Add(time.Minute); !contains(infos, id) && time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
			found, err := o.ListTasks(t.Context(), &want)
			must(t, err)
			infos = idsOf(found)
		}
		if !contains(infos, id) {
			t.Errorf("%s is not listed as %s", id, want)
		}
	}

	close(o.release)
	done := o.submit(t, temporal.TaskSubmission{ModuleID: "task.once"})
	o.wait(t, done)
	before := o.book.count()
	_, err := o.clerk.client.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: o.clerk.server.Namespace(), WorkflowExecution: &common.WorkflowExecution{WorkflowId: o.workflow(done)},
		WorkflowTaskFinishEventId: 4, RequestId: uuid.NewString(), Reason: "by the test",
	})
	must(t, err)
	if record := o.wait(t, done); record.Task.Status != apcore.TaskCompleted || o.book.count() != before+1 {
		t.Errorf("record %+v after a reset and %d executions", record, o.book.count()-before)
	}
	if lines := o.book.all(); lines[len(lines)-1] != lines[len(lines)-2] {
		t.Errorf("the reset run has another idempotency key: %v", lines)
	}
	if infos, err := o.ListTasks(t.Context(), nil); err != nil || len(infos) != 4 {
		t.Errorf("listed %v, %v", idsOf(infos), err)
	}
}

func (o *office) workflow(id string) string { return "apcore/tasks/" + o.name + "/" + id }

func contains(list []string, wanted string) bool {
	for _, item := range list {
		if item == wanted {
			return true
		}
	}
	return false
}

// A long chain of attempts continues as new without losing count, place or key.
func TestTaskContinuesAsNew(t *testing.T) {
	t.Parallel()
	server := fileServer(t, testsuite.ServerOptions{DynamicConfig: map[string]string{"limit.historyCount.suggestContinueAsNew": "40"}})
	o := newOffice(t, server, temporal.TaskManagerOptions{})
	id := o.submit(t, temporal.TaskSubmission{ModuleID: "task.again", Inputs: map[string]any{"fail": 12}, Retry: &apcore.RetryConfig{MaxRetries: 20}})
	last := o.submit(t, temporal.TaskSubmission{ModuleID: "task.again", Inputs: map[string]any{"fail": 12}, Retry: &apcore.RetryConfig{MaxRetries: 20}})
	record := o.wait(t, id)
	o.wait(t, last)
	if record.Task.Status != apcore.TaskCompleted || record.Task.RetryCount == 0 {
		t.Errorf("record %+v", record)
	}
	description, err := o.clerk.client.DescribeWorkflow(t.Context(), o.workflow(id), "")
	must(t, err)
	if first := description.RawResponse.GetWorkflowExecutionInfo().GetFirstRunId(); first == description.WorkflowExecution.RunID {
		t.Error("the task did not continue as new")
	}
	infos, err := o.ListTasks(t.Context(), nil)
	if err != nil || len(infos) != 2 || infos[0].TaskID != id || infos[1].TaskID != last {
		t.Errorf("listed %v, %v", idsOf(infos), err)
	}
}
