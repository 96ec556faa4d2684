package apcore_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

func unfinished(id string, status apcore.TaskStatus) apcore.TaskInfo {
	return apcore.TaskInfo{TaskID: id, ModuleID: "worker.fails", Status: status, SubmittedAt: 1}
}

// Pattern B, step 3: what an earlier process left is ignored, failed or submitted
// again, as the plan says; what ended is not asked about.
func TestRecover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := apcore.NewInMemoryTaskStore()
		done := unfinished("done", apcore.TaskCompleted)
		for _, info := range []apcore.TaskInfo{unfinished("leave", apcore.TaskRunning), done, unfinished("fail", apcore.TaskRunning), unfinished("again", apcore.TaskPending)} {
			if err := store.Save(t.Context(), info); err != nil {
				t.Fatal(err)
			}
		}
		h, err := newTaskHost(apcore.AsyncTaskOptions{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		var asked []string
		recovered, err := h.Recover(t.Context(), func(_ context.Context, info apcore.TaskInfo) (apcore.TaskRecovery, apcore.Resubmission, error) {
			asked = append(asked, info.TaskID)
			policy := map[string]apcore.TaskRecovery{"leave": apcore.RecoverIgnore, "fail": apcore.RecoverFail, "again": apcore.RecoverResubmit}[info.TaskID]
			return policy, apcore.Resubmission{}, nil
		})
		synctest.Wait()
		if err != nil || !slices.Equal(asked, []string{"leave", "fail", "again"}) || !slices.Equal(recovered.Ignored, []string{"leave"}) || !slices.Equal(recovered.Failed, []string{"fail"}) || len(recovered.Resubmitted) != 1 {
			t.Fatalf("asked %v, recovered %+v, %v", asked, recovered, err)
		}
		for id, want := range map[string]apcore.TaskStatus{"leave": apcore.TaskRunning, "done": apcore.TaskCompleted, "fail": apcore.TaskFailed, "again": apcore.TaskFailed, recovered.Resubmitted["again"]: apcore.TaskFailed} {
			info, err := h.GetStatus(t.Context(), id)
			if err != nil || info == nil || info.Status != want || (want == apcore.TaskFailed) != (info.Error != nil && info.CompletedAt != nil) {
				t.Errorf("%s: %+v, %v, want %s", id, info, err, want)
			}
		}
		if h.attempts.count() != 1 {
			t.Errorf("%d attempts", h.attempts.count())
		}
		if err := h.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestRecoverStopsAtAnError(t *testing.T) {
	store := apcore.NewInMemoryTaskStore()
	for _, id := range []string{"first", "second"} {
		if err := store.Save(t.Context(), unfinished(id, apcore.TaskRunning)); err != nil {
			t.Fatal(err)
		}
	}
	h, err := newTaskHost(apcore.AsyncTaskOptions{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	plan := func(_ context.Context, info apcore.TaskInfo) (apcore.TaskRecovery, apcore.Resubmission, error) {
		if info.TaskID == "second" {
			return "", apcore.Resubmission{}, boom
		}
		return apcore.RecoverFail, apcore.Resubmission{}, nil
	}
	if recovered, err := h.Recover(t.Context(), plan); !errors.Is(err, boom) || !slices.Equal(recovered.Failed, []string{"first"}) {
		t.Errorf("recovered %+v, %v", recovered, err)
	}
	odd := func(context.Context, apcore.TaskInfo) (apcore.TaskRecovery, apcore.Resubmission, error) {
		return "perhaps", apcore.Resubmission{}, nil
	}
	if _, err := h.Recover(t.Context(), odd); !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("an unknown policy: %v", err)
	}
}
