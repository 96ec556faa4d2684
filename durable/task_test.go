package durable_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// Scenario 78: what may be saved over what, for every pair of states.
func TestMayBecome(t *testing.T) {
	own := durable.TaskSaved{Place: 7, Seq: 3}
	states := []apcore.TaskStatus{apcore.TaskPending, apcore.TaskRunning, apcore.TaskCompleted, apcore.TaskFailed, apcore.TaskCancelled}
	for _, stored := range states {
		record := durable.TaskRecord{Place: 7, Seq: 3, Task: apcore.TaskInfo{Status: stored}}
		for _, next := range states {
			info := apcore.TaskInfo{Status: next}
			want := !stored.Terminal() || next == stored || next == apcore.TaskPending
			if got := record.MayBecome(&info, durable.TaskSaved{}); got != want {
				t.Errorf("%s over %s: %t, want %t", next, stored, got, want)
			}
			if !record.MayBecome(&info, own) {
				t.Errorf("%s over %s of the same writer is refused", next, stored)
			}
		}
		for name, late := range map[string]apcore.TaskInfo{
			"retry": {Status: apcore.TaskPending, RetryCount: 1}, "started": {Status: apcore.TaskPending, StartedAt: new(1.0)},
		} {
			if got := record.MayBecome(&late, durable.TaskSaved{}); got == stored.Terminal() && stored != apcore.TaskPending {
				t.Errorf("pending (%s) over %s: %t", name, stored, got)
			}
		}
		tombstone := record.Tombstone()
		if !tombstone.MayBecome(&apcore.TaskInfo{Status: apcore.TaskRunning}, durable.TaskSaved{}) || !tombstone.Newer(&record) || !tombstone.Closed() {
			t.Errorf("tombstone %+v", tombstone)
		}
	}
}

// Heads stay below their bound whatever a record holds, and say that they are cut.
func TestTaskHead(t *testing.T) {
	small := durable.TaskRecord{Task: apcore.TaskInfo{TaskID: "t", ModuleID: "m", Status: apcore.TaskCompleted, Result: map[string]any{"a": "b"}}}
	if head, err := small.Head(); err != nil || cmp.Diff(small, head) != "" {
		t.Errorf("a small record changed: %+v, %v", head, err)
	}
	large := small
	large.Task.TaskID = strings.Repeat("t", 200)
	large.Task.ModuleID = strings.Repeat("m", 1000)
	large.Task.Result = map[string]any{"text": strings.Repeat("x", 100_000)}
	large.Task.Error = new(strings.Repeat("ä", 3000))
	head, err := large.Head()
	if err != nil {
		t.Fatal(err)
	}
	text, err := apcore.EncodeJSON(head)
	if err != nil || len(text) > durable.MaxTaskHeadBytes || !head.Cut || head.Task.Result[durable.TaskResultRef] == nil || !strings.HasSuffix(*head.Task.Error, "…") {
		t.Errorf("a head of %d bytes: %+v, %v", len(text), head, err)
	}
	if large.Cut || len(*large.Task.Error) != 6000 || large.Task.Result["text"] == nil {
		t.Error("the record changed with its head")
	}
}

// Which failures of a task are tried again: by class and by what is known of the
// effect, never where somebody has to act first.
func TestTaskRetry(t *testing.T) {
	retry := &apcore.RetryConfig{MaxRetries: 2, RetryDelayMS: 1000, BackoffMultiplier: 2, MaxRetryDelayMS: 30000}
	for _, test := range []struct {
		name    string
		request durable.TaskRequest
		failure durable.Failure
		class   durable.Class
		done    int
		want    time.Duration
		again   bool
	}{
		{"idempotent", durable.TaskRequest{Retry: retry}, durable.Failure{Err: fault(apcore.CodeModuleExecuteError)}, durable.ClassIdempotent, 0, time.Second, true},
		{"second pause", durable.TaskRequest{Retry: retry}, durable.Failure{Err: fault(apcore.CodeModuleExecuteError)}, durable.ClassSafe, 1, 2 * time.Second, true},
		{"exhausted", durable.TaskRequest{Retry: retry}, durable.Failure{Err: fault(apcore.CodeModuleExecuteError)}, durable.ClassSafe, 2, 0, false},
		{"no config", durable.TaskRequest{}, durable.Failure{Err: fault(apcore.CodeModuleExecuteError)}, durable.ClassSafe, 0, 0, false},
		{"at most once", durable.TaskRequest{Retry: retry}, durable.Failure{Err: fault(apcore.CodeModuleExecuteError)}, durable.ClassAtMostOnce, 0, 0, false},
		{"at most once, not started", durable.TaskRequest{Retry: retry}, durable.Failure{Err: fault(apcore.CodeModuleNotFound), NotStarted: true}, durable.ClassAtMostOnce, 0, time.Second, true},
		{"at most once, accepted", durable.TaskRequest{Retry: retry, AcceptRepeatedEffects: true}, durable.Failure{Err: fault(apcore.CodeModuleExecuteError)}, durable.ClassAtMostOnce, 0, time.Second, true},
		{"unknown outcome", durable.TaskRequest{Retry: retry}, durable.Failure{Err: fault(durable.CodeOutcomeUnknown)}, durable.ClassAtMostOnce, 0, 0, false},
		{"unknown outcome, accepted", durable.TaskRequest{Retry: retry, AcceptRepeatedEffects: true}, durable.Failure{Err: fault(durable.CodeOutcomeUnknown)}, durable.ClassAtMostOnce, 0, time.Second, true},
		{"denied", durable.TaskRequest{Retry: retry, AcceptRepeatedEffects: true}, durable.Failure{Err: fault(apcore.CodeApprovalDenied), NotStarted: true}, durable.ClassSafe, 0, 0, false},
		{"cancelled", durable.TaskRequest{Retry: retry}, durable.Failure{Err: fault(apcore.CodeExecutionCancelled)}, durable.ClassSafe, 0, 0, false},
	} {
		pause, again := test.request.TaskRetry(&test.failure, test.class, test.done)
		if pause != test.want || again != test.again {
			t.Errorf("%s: %v, %t, want %v, %t", test.name, pause, again, test.want, test.again)
		}
	}
}

func fault(code apcore.Code) *apcore.Error { return apcore.NewError(code, "it failed") }

func TestTaskEndedWrapsTheCore(t *testing.T) {
	err := durable.TaskEnded(&apcore.TaskInfo{TaskID: "t", Status: apcore.TaskCancelled}, apcore.TaskCompleted)
	if !errors.Is(err, apcore.ErrTaskEnded) || err.Details["status"] != "cancelled" || !strings.Contains(err.Error(), "completed") {
		t.Errorf("%+v", err)
	}
}
