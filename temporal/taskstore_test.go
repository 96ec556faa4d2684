package temporal_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

func pendingTask(id string) apcore.TaskInfo {
	return apcore.TaskInfo{TaskID: id, ModuleID: "test.module", Status: apcore.TaskPending, SubmittedAt: 1700000000.25}
}

func runningTask(id string) apcore.TaskInfo {
	info := pendingTask(id)
	info.Status, info.StartedAt = apcore.TaskRunning, new(1700000001.5)
	return info
}

func endedTask(id string, status apcore.TaskStatus) apcore.TaskInfo {
	info := runningTask(id)
	info.Status, info.CompletedAt = status, new(1700000002.75)
	switch status {
	case apcore.TaskCompleted:
		info.Result = map[string]any{"text": "done"}
	case apcore.TaskFailed:
		info.Error = new("it failed")
	case apcore.TaskPending, apcore.TaskRunning, apcore.TaskCancelled:
	}
	return info
}

func idsOf(infos []apcore.TaskInfo) []string {
	ids := []string{}
	for i := range infos {
		ids = append(ids, infos[i].TaskID)
	}
	return ids
}

// Scenario 74: absent, no worker, unreachable and beyond retention are four
// answers, and what ended is read without a worker.
func TestTaskStoreAnswers(t *testing.T) {
	t.Parallel()
	c := newClerk(t, testsuite.DevServer(t))
	store := c.storeWith(t, temporal.TaskStoreOptions{Name: uuid.NewString(), Timeout: 5 * time.Second})
	big := endedTask("big", apcore.TaskCompleted)
	big.Result = map[string]any{"text": strings.Repeat("x", 5000)}
	for _, info := range []apcore.TaskInfo{runningTask("open"), endedTask("ended", apcore.TaskFailed), big} {
		must(t, store.Save(t.Context(), info))
	}
	c.stop()
	for _, want := range []apcore.TaskInfo{runningTask("open"), endedTask("ended", apcore.TaskFailed), big} {
		got, err := store.Get(t.Context(), want.TaskID)
		if diff := cmp.Diff(&want, got); err != nil || diff != "" {
			t.Errorf("%s without a worker: %v\n%s", want.TaskID, err, diff)
		}
	}
	if got, err := store.Get(t.Context(), "nobody"); got != nil || err != nil {
		t.Errorf("absent: %v, %v", got, err)
	}
	err := store.Save(t.Context(), endedTask("open", apcore.TaskCompleted))
	if !errors.Is(err, apcore.CodeTaskStoreUnavailable) || !errors.Is(err, durable.CodeNoWorker) || !strings.Contains(err.Error(), c.queue) {
		t.Errorf("save without a worker: %v", err)
	}
	_, err = unreachableStore(t).Get(t.Context(), "open")
	if !errors.Is(err, apcore.CodeTaskStoreUnavailable) || errors.Is(err, durable.CodeNoWorker) {
		t.Errorf("unreachable: %v", err)
	}
	store.SawEnd("nobody", time.Now().Add(-30*24*time.Hour))
	if got, err := store.Get(t.Context(), "nobody"); got != nil || !errors.Is(err, durable.CodeTaskExpired) {
		t.Errorf("beyond retention: %v, %v", got, err)
	}
	store.SawEnd("nobody", time.Now())
	if got, err := store.Get(t.Context(), "nobody"); got != nil || err != nil {
		t.Errorf("ended lately and gone: %v, %v", got, err)
	}
}

// Without search attributes the store says which are missing, no workflow starts
// and none fails; registering them is all it takes.
func TestTaskStoreWithoutSearchAttributes(t *testing.T) {
	t.Parallel()
	server := testsuite.StartServer(t, testsuite.ServerOptions{})
	c := newClerk(t, server)
	store := c.store(t, "bare")
	_, listing := store.List(t.Context(), nil)
	for name, err := range map[string]error{"save": store.Save(t.Context(), pendingTask("task")), "list": listing} {
		e := apcore.AsError(err)
		if e == nil || e.Code != apcore.CodeConfigInvalid {
			t.Fatalf("%s: %v", name, err)
		}
		if missing, _ := e.Details["missing"].([]string); len(missing) != len(temporal.SearchAttributes()) || missing[0] != durable.SearchApproverGroup {
			t.Errorf("%s: missing %v", name, e.Details["missing"])
		}
	}
	added, err := temporal.SetUpSearchAttributes(t.Context(), c.client, server.Namespace())
	if err != nil || len(added) != len(temporal.SearchAttributes()) {
		t.Fatalf("added %v, %v", added, err)
	}
	if added, err := temporal.SetUpSearchAttributes(t.Context(), c.client, server.Namespace()); err != nil || len(added) > 0 {
		t.Errorf("added again: %v, %v", added, err)
	}
}

// Scenario 78: whatever comes after the end of a task and was not written by
// whoever ended it changes nothing, but a new submission.
func TestLateWritesAreRefused(t *testing.T) {
	t.Parallel()
	c := newClerk(t, testsuite.DevServer(t))
	name := uuid.NewString()
	ours, theirs := c.store(t, name), c.store(t, name)
	retrying := pendingTask("task")
	retrying.RetryCount, retrying.StartedAt = 1, new(1700000001.5)
	must(t, ours.Save(t.Context(), runningTask("task")))
	must(t, theirs.Save(t.Context(), endedTask("task", apcore.TaskCancelled)))
	for _, late := range []apcore.TaskInfo{
		endedTask("task", apcore.TaskCompleted), endedTask("task", apcore.TaskFailed), runningTask("task"), retrying,
	} {
		err := ours.Save(t.Context(), late)
		if !errors.Is(err, durable.CodeTaskEnded) || !errors.Is(err, apcore.ErrTaskEnded) {
			t.Errorf("%s over cancelled: %v", late.Status, err)
		}
	}
	must(t, ours.Save(t.Context(), endedTask("task", apcore.TaskCancelled)))
	want := endedTask("task", apcore.TaskCancelled)
	got, err := theirs.Get(t.Context(), "task")
	if diff := cmp.Diff(&want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	must(t, theirs.Save(t.Context(), endedTask("task", apcore.TaskFailed))) // its own word
	must(t, ours.Save(t.Context(), pendingTask("task")))
	if got, err := theirs.Get(t.Context(), "task"); err != nil || got.Status != apcore.TaskPending {
		t.Errorf("after a new submission: %+v, %v", got, err)
	}
}

// A record larger than a head is listed with a reference and read whole; one over
// the limit is refused before the server sees it.
func TestTaskStoreSizes(t *testing.T) {
	t.Parallel()
	c := newClerk(t, testsuite.DevServer(t))
	store := c.store(t, uuid.NewString())
	sized := func(id string, bytes int) apcore.TaskInfo {
		info := endedTask(id, apcore.TaskCompleted)
		info.Result = map[string]any{"text": ""}
		empty, err := apcore.EncodeJSON(info)
		must(t, err)
		info.Result["text"] = strings.Repeat("x", bytes-len(empty))
		return info
	}
	for _, bytes := range []int{1000, 100_000, temporal.DefaultMaxRecordBytes - 1, temporal.DefaultMaxRecordBytes} {
		want := sized("task", bytes)
		must(t, store.Save(t.Context(), want))
		got, err := store.Get(t.Context(), "task")
		if diff := cmp.Diff(&want, got); err != nil || diff != "" {
			t.Fatalf("%d bytes: %v\n%.500s", bytes, err, diff)
		}
	}
	infos, err := store.List(t.Context(), nil)
	if err != nil || len(infos) != 1 {
		t.Fatalf("%d records, %v", len(infos), err)
	}
	if reference, ok := infos[0].Result[durable.TaskResultRef].(map[string]any); !ok || reference["task_id"] != "task" || len(infos[0].Result) != 1 {
		t.Errorf("listed result %.300v", infos[0].Result)
	}
	e := apcore.AsError(store.Save(t.Context(), sized("task", temporal.DefaultMaxRecordBytes+1)))
	if e == nil || e.Code != durable.CodePayloadTooLarge || e.Details["size"] != temporal.DefaultMaxRecordBytes+1 || e.Details["limit"] != temporal.DefaultMaxRecordBytes {
		t.Errorf("over the limit: %+v", e)
	}
	if err := store.Save(t.Context(), pendingTask(strings.Repeat("i", 300))); !errors.Is(err, durable.CodePayloadTooLarge) {
		t.Errorf("a long id: %v", err)
	}
}

// Ids are data: nothing in them becomes a part of a query or a path.
func TestTaskStoreIDs(t *testing.T) {
	t.Parallel()
	c := newClerk(t, testsuite.DevServer(t))
	name := uuid.NewString()
	store := c.store(t, name)
	ids := []string{"a'b", `a\`, "a/b", "Ä ö", "x' OR 'y'='y", "{}"}
	for _, id := range ids {
		must(t, store.Save(t.Context(), pendingTask(id)))
		if got, err := store.Get(t.Context(), id); err != nil || got == nil || got.TaskID != id {
			t.Errorf("%q: %+v, %v", id, got, err)
		}
	}
	infos, err := store.List(t.Context(), nil)
	if diff := cmp.Diff(ids, idsOf(infos)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, id := range ids {
		must(t, store.Delete(t.Context(), id))
	}
	if err := store.Save(t.Context(), pendingTask("")); !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("an empty id: %v", err)
	}
}

// A deleted record is gone for every process at once, however it stood, and an id
// may come back at the end of the list.
func TestTaskStoreDelete(t *testing.T) {
	t.Parallel()
	c := newClerk(t, testsuite.DevServer(t))
	name := uuid.NewString()
	store, other := c.store(t, name), c.store(t, name)
	for _, info := range []apcore.TaskInfo{runningTask("open"), endedTask("ended", apcore.TaskCompleted), pendingTask("last")} {
		must(t, store.Save(t.Context(), info))
	}
	for _, id := range []string{"open", "ended", "ended"} {
		must(t, store.Delete(t.Context(), id))
		if got, err := other.Get(t.Context(), id); got != nil || err != nil {
			t.Errorf("%s after its deletion: %+v, %v", id, got, err)
		}
	}
	must(t, store.Save(t.Context(), endedTask("ended", apcore.TaskFailed)))
	must(t, store.Save(t.Context(), pendingTask("open")))
	infos, err := store.List(t.Context(), nil)
	if diff := cmp.Diff([]string{"last", "ended", "open"}, idsOf(infos)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if got, err := other.Get(t.Context(), "ended"); err != nil || got == nil || got.Status != apcore.TaskFailed {
		t.Errorf("saved again: %+v, %v", got, err)
	}
}

// A store remembers what it wrote only until the server lists it.
func TestOverlayEmpties(t *testing.T) {
	t.Parallel()
	c := newClerk(t, testsuite.DevServer(t))
	store := c.store(t, uuid.NewString())
	for _, id := range []string{"a", "b", "c"} {
		must(t, store.Save(t.Context(), endedTask(id, apcore.TaskCompleted)))
	}
	for deadline := time.Now().Add(time.Minute); store.Unlisted() > 0; time.Sleep(200 * time.Millisecond) {
		infos, err := store.List(t.Context(), nil)
		if err != nil || len(infos) != 3 || time.Now().After(deadline) {
			t.Fatalf("%d records, %d unlisted, %v", len(infos), store.Unlisted(), err)
		}
	}
}

func TestTaskStoreOptions(t *testing.T) {
	t.Parallel()
	lazy, err := client.NewLazyClient(client.Options{})
	must(t, err)
	t.Cleanup(lazy.Close)
	for field, opts := range map[string]temporal.TaskStoreOptions{
		"TaskQueue": {}, "Timeout": {TaskQueue: "q", Timeout: -1}, "MaxRecordBytes": {TaskQueue: "q", MaxRecordBytes: 2 << 20}, "Name": {TaskQueue: "q", Name: "a/b"},
	} {
		if _, err := temporal.NewTaskStore(lazy, opts); !errors.Is(err, apcore.CodeInvalidInput) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := temporal.NewTaskStore(nil, temporal.TaskStoreOptions{TaskQueue: "q"}); !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("no client: %v", err)
	}
}
