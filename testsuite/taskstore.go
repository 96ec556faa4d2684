package testsuite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// TaskStoreOption adds to what [TaskStoreSuite] checks.
type TaskStoreOption func(*taskStoreSuite)

type taskStoreSuite struct {
	broken func(t *testing.T) apcore.TaskStore
}

// WithBrokenStore makes the suite check that every method of a store whose
// backend cannot be reached fails with TASK_STORE_UNAVAILABLE. newStore makes
// such a store.
func WithBrokenStore(newStore func(t *testing.T) apcore.TaskStore) TaskStoreOption {
	return func(s *taskStoreSuite) { s.broken = newStore }
}

// TaskStoreSuite checks that a store of async tasks keeps the contract of
// [apcore.TaskStore]. newStore makes an empty store for each subtest and leaves
// it to t.Cleanup to remove it.
func TaskStoreSuite(t *testing.T, newStore func(t *testing.T) apcore.TaskStore, opts ...TaskStoreOption) {
	t.Helper()
	suite := &taskStoreSuite{}
	for _, opt := range opts {
		opt(suite)
	}
	for _, c := range taskStoreChecks {
		t.Run(c.name, func(t *testing.T) {
			if err := c.check(t.Context(), newStore(t)); err != nil {
				t.Error(err)
			}
		})
	}
	if suite.broken != nil {
		t.Run("broken store", func(t *testing.T) {
			if err := checkBroken(t.Context(), suite.broken(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// taskStoreChecks return what is wrong, so that the suite itself can be tested.
var taskStoreChecks = []struct {
	name  string
	check func(ctx context.Context, store apcore.TaskStore) error
}{
	{"round trip", checkRoundTrip},
	{"unknown id", checkUnknown},
	{"order of first saves", checkOrder},
	{"status filter", checkFilter},
	{"upsert", checkUpsert},
	{"copies in", checkCopiesIn},
	{"copies out", checkCopiesOut},
	{"delete", checkDelete},
	{"expiry", checkExpiry},
	{"concurrency", checkConcurrency},
}

func record(id string, status apcore.TaskStatus) apcore.TaskInfo {
	info := apcore.TaskInfo{TaskID: id, ModuleID: "suite.module", Status: status, SubmittedAt: 1700000000.25, MaxRetries: 2}
	if status != apcore.TaskPending {
		info.StartedAt = new(1700000001.5)
	}
	if status.Terminal() {
		info.CompletedAt = new(1700000002.75)
	}
	switch status {
	case apcore.TaskCompleted:
		info.Result = map[string]any{"text": "done", "nested": map[string]any{"list": []any{"a", true, nil}}}
	case apcore.TaskFailed:
		info.Error = new("it failed")
		info.RetryCount = 2
	}
	return info
}

func saveAll(ctx context.Context, store apcore.TaskStore, infos ...apcore.TaskInfo) error {
	for i := range infos {
		if err := store.Save(ctx, infos[i]); err != nil {
			return fmt.Errorf("save %s: %w", infos[i].TaskID, err)
		}
	}
	return nil
}

// holds compares a stored record with the wanted one.
func holds(ctx context.Context, store apcore.TaskStore, want apcore.TaskInfo) error {
	got, err := store.Get(ctx, want.TaskID)
	if err != nil {
		return fmt.Errorf("get %s: %w", want.TaskID, err)
	}
	if got == nil {
		return fmt.Errorf("get %s: the record is not there", want.TaskID)
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		return fmt.Errorf("get %s (-want +got):\n%s", want.TaskID, diff)
	}
	return nil
}

// lists compares the ids that a list returned.
func lists(infos []apcore.TaskInfo, err error, want ...string) error {
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	got := []string{}
	for i := range infos {
		got = append(got, infos[i].TaskID)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("listed %v, want %v", got, want)
	}
	return nil
}

func checkRoundTrip(ctx context.Context, store apcore.TaskStore) error {
	for _, status := range []apcore.TaskStatus{apcore.TaskPending, apcore.TaskRunning, apcore.TaskCompleted, apcore.TaskFailed, apcore.TaskCancelled} {
		info := record("task-"+string(status), status)
		if err := errors.Join(saveAll(ctx, store, info), holds(ctx, store, info)); err != nil {
			return err
		}
	}
	return nil
}

func checkUnknown(ctx context.Context, store apcore.TaskStore) error {
	info, err := store.Get(ctx, "nobody")
	if info != nil || err != nil {
		return fmt.Errorf("get of an unknown id returned %v and %w, want nil and no error", info, orNone(err))
	}
	infos, err := store.List(ctx, nil)
	return lists(infos, err)
}

func checkOrder(ctx context.Context, store apcore.TaskStore) error {
	c, a, b := record("task-c", apcore.TaskPending), record("task-a", apcore.TaskPending), record("task-b", apcore.TaskPending)
	a.SubmittedAt += 10 // so that neither id nor time gives the order
	if err := saveAll(ctx, store, c, a, b); err != nil {
		return err
	}
	infos, err := store.List(ctx, nil)
	if err := lists(infos, err, "task-c", "task-a", "task-b"); err != nil {
		return err
	}
	c.Status = apcore.TaskRunning
	if err := saveAll(ctx, store, c); err != nil {
		return err
	}
	infos, err = store.List(ctx, nil)
	if err := lists(infos, err, "task-c", "task-a", "task-b"); err != nil {
		return fmt.Errorf("after task-c was saved again: %w", err)
	}
	return nil
}

func checkFilter(ctx context.Context, store apcore.TaskStore) error {
	if err := saveAll(ctx, store, record("z", apcore.TaskCompleted), record("y", apcore.TaskRunning), record("x", apcore.TaskCompleted)); err != nil {
		return err
	}
	for status, want := range map[apcore.TaskStatus][]string{
		apcore.TaskCompleted: {"z", "x"}, apcore.TaskRunning: {"y"}, apcore.TaskPending: {},
	} {
		infos, err := store.List(ctx, &status)
		if err := lists(infos, err, want...); err != nil {
			return fmt.Errorf("status %s: %w", status, err)
		}
	}
	return nil
}

func checkUpsert(ctx context.Context, store apcore.TaskStore) error {
	before, after := record("task", apcore.TaskCompleted), record("task", apcore.TaskPending)
	if err := saveAll(ctx, store, before, before, after, after); err != nil {
		return err
	}
	infos, err := store.List(ctx, nil)
	return errors.Join(lists(infos, err, "task"), holds(ctx, store, after))
}

func checkDelete(ctx context.Context, store apcore.TaskStore) error {
	if err := saveAll(ctx, store, record("a", apcore.TaskPending), record("b", apcore.TaskPending)); err != nil {
		return err
	}
	for _, id := range []string{"nobody", "a", "a"} {
		if err := store.Delete(ctx, id); err != nil {
			return fmt.Errorf("delete %s: %w", id, err)
		}
	}
	infos, err := store.List(ctx, nil)
	return lists(infos, err, "b")
}

func checkExpiry(ctx context.Context, store apcore.TaskStore) error {
	const before = 1700000100.5
	ended := func(id string, status apcore.TaskStatus, at *float64) apcore.TaskInfo {
		info := record(id, status)
		info.CompletedAt = at
		return info
	}
	if err := saveAll(ctx, store,
		ended("cancelled", apcore.TaskCancelled, new(before-0.25)),
		ended("completed", apcore.TaskCompleted, new(before-100)),
		ended("failed", apcore.TaskFailed, new(before-1)),
		ended("just now", apcore.TaskCompleted, new(before)),
		ended("later", apcore.TaskCompleted, new(before+1)),
		ended("unknown end", apcore.TaskFailed, nil),
		ended("pending", apcore.TaskPending, nil),
		ended("running", apcore.TaskRunning, new(before-100)),
	); err != nil {
		return err
	}
	infos, err := store.ListExpired(ctx, before)
	slices.SortFunc(infos, func(a, b apcore.TaskInfo) int { return strings.Compare(a.TaskID, b.TaskID) })
	return lists(infos, err, "cancelled", "completed", "failed")
}

func checkBroken(ctx context.Context, store apcore.TaskStore) error {
	_, get := store.Get(ctx, "task")
	_, list := store.List(ctx, nil)
	_, expired := store.ListExpired(ctx, 0)
	var errs []error
	for operation, err := range map[string]error{
		"save": store.Save(ctx, record("task", apcore.TaskPending)), "get": get, "list": list,
		"delete": store.Delete(ctx, "task"), "list_expired": expired,
	} {
		found := apcore.AsError(err)
		if found == nil || found.Code != apcore.CodeTaskStoreUnavailable {
			errs = append(errs, fmt.Errorf("%s of a broken store returned %w, want %w", operation, orNone(err), apcore.CodeTaskStoreUnavailable))
			continue
		}
		if found.Details["operation"] != operation || found.Details["reason"] == nil || found.Retryable == nil || !*found.Retryable {
			errs = append(errs, fmt.Errorf("%s of a broken store: details %v, retryable %v; make the error with apcore.NewTaskStoreError", operation, found.Details, found.Retryable))
		}
	}
	return errors.Join(errs...)
}

func orNone(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}

func checkConcurrency(ctx context.Context, store apcore.TaskStore) error {
	const writers, rounds = 8, 25
	errs := make([]error, writers)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for r := range rounds {
				info := record(fmt.Sprintf("task-%d-%d", w, r), apcore.TaskPending)
				done := record(info.TaskID, apcore.TaskCompleted)
				_, list := store.List(ctx, nil)
				_, expired := store.ListExpired(ctx, 1800000000)
				errs[w] = errors.Join(errs[w], saveAll(ctx, store, info, done), holds(ctx, store, done), list, expired)
			}
		})
	}
	group.Wait()
	infos, err := store.List(ctx, nil)
	if err == nil && len(infos) != writers*rounds {
		err = fmt.Errorf("%d records after %d saves in parallel", len(infos), writers*rounds)
	}
	return errors.Join(errors.Join(errs...), err)
}
