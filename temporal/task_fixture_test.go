package temporal_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

// taskCase is a case of the standard's fixtures about tasks.
type taskCase struct {
	ID           string             `json:"id"`
	Action       string             `json:"action"`
	TaskInfo     *apcore.TaskInfo   `json:"task_info"`
	LookupID     string             `json:"lookup_id"`
	StoredTasks  []apcore.TaskInfo  `json:"stored_tasks"`
	ExpiredTasks []apcore.TaskInfo  `json:"stored_expired_tasks"`
	StatusFilter *apcore.TaskStatus `json:"status_filter"`
	RetryConfig  apcore.RetryConfig `json:"retry_config"`
	Now          float64            `json:"now_timestamp"`
	Config       struct {
		Reaper *struct {
			TTLSeconds float64 `json:"ttl_seconds"`
		} `json:"reaper"`
	} `json:"config"`
	Expected struct {
		TaskIDs      []string `json:"task_ids"`
		RemainingIDs []string `json:"remaining_task_ids"`
		DeletedIDs   []string `json:"deleted_task_ids"`
		FinalStatus  string   `json:"final_status"`
		RetryCount   int      `json:"retry_count"`
		NextDelayMS  float64  `json:"next_retry_delay_ms"`
	} `json:"expected"`
	MaxTasks      int         `json:"max_tasks"`
	ExpectedError apcore.Code `json:"expected_error"`
}

func taskCases(t *testing.T, fixture string) []taskCase {
	t.Helper()
	root := os.Getenv("APCORE_SPEC_REPO")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "apcore")
	}
	text, err := os.ReadFile(filepath.Join(root, "conformance", "fixtures", fixture+".json"))
	if err != nil {
		t.Fatalf("the standard's fixtures are not here, see the test of package apcore: %v", err)
	}
	var read struct {
		Cases []taskCase `json:"test_cases"`
	}
	must(t, json.Unmarshal(text, &read))
	return read.Cases
}

// Target 38: the standard's fixtures about tasks, on Temporal. The cases that only
// construct something or only compute have nothing to do with a store.
func TestTaskFixtures(t *testing.T) {
	t.Parallel()
	o := newOffice(t, fileServer(t, testsuite.ServerOptions{}), temporal.TaskManagerOptions{})
	drive := map[string]func(*testing.T, *office, taskCase){
		"save_then_get": roundTripCase, "list_by_status": listCase, "wait_and_check_store": reaperCase, "trigger_reaper_sweep": reaperCase,
		"execute_and_observe": backoffCase, "execute_until_exhausted": exhaustedCase,
		"submit_over_capacity": capacityCase, "cancel_during_backoff": cancelCase,
	}
	driven := 0
	for _, fixture := range []string{"async_task_evolution", "async_task_cancellation"} {
		for _, test := range taskCases(t, fixture) {
			if drive[test.Action] == nil {
				if !slices.Contains([]string{"construct_manager", "compute_retry_delays"}, test.Action) {
					t.Errorf("%s: unknown action %s", test.ID, test.Action)
				}
				continue
			}
			driven++
			t.Run(test.ID, func(t *testing.T) { drive[test.Action](t, o, test) })
		}
	}
	if driven < 9 {
		t.Errorf("%d cases were driven", driven)
	}
}

func roundTripCase(t *testing.T, o *office, test taskCase) {
	t.Helper()
	store := o.clerk.store(t, uuid.NewString())
	must(t, store.Save(t.Context(), *test.TaskInfo))
	got, err := store.Get(t.Context(), test.LookupID)
	if err != nil || got == nil || wireOf(*got) != wireOf(*test.TaskInfo) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func listCase(t *testing.T, o *office, test taskCase) {
	t.Helper()
	store := o.clerk.store(t, uuid.NewString())
	for _, info := range test.StoredTasks {
		must(t, store.Save(t.Context(), info))
	}
	infos, err := store.List(t.Context(), test.StatusFilter)
	if err != nil || !slices.Equal(idsOf(infos), test.Expected.TaskIDs) {
		t.Errorf("listed %v, %v", idsOf(infos), err)
	}
}

func reaperCase(t *testing.T, o *office, test taskCase) {
	t.Helper()
	store := o.clerk.store(t, uuid.NewString())
	stored := slices.Concat(test.StoredTasks, test.ExpiredTasks)
	for _, info := range stored {
		must(t, store.Save(t.Context(), info))
	}
	remaining := idsOf(stored)
	if test.Config.Reaper != nil {
		remaining = test.Expected.RemainingIDs
		deleted := 0
		eventually(t, func() string { // the server lists what was saved a little later
			swept, err := store.Sweep(t.Context(), test.Now-test.Config.Reaper.TTLSeconds)
			must(t, err)
			if deleted += swept.Deleted; deleted != len(test.Expected.DeletedIDs) {
				return "not everything that expired was deleted"
			}
			return ""
		})
	}
	infos, err := store.List(t.Context(), nil)
	if err != nil || !slices.Equal(idsOf(infos), remaining) {
		t.Errorf("remaining %v, %v, want %v", idsOf(infos), err, remaining)
	}
}

func backoffCase(t *testing.T, o *office, test taskCase) {
	t.Helper()
	id := o.submit(t, temporal.TaskSubmission{ModuleID: "task.again", Inputs: map[string]any{"how": "fail"}, Retry: &test.RetryConfig})
	record := o.until(t, id, func(r *durable.TaskRecord) bool { return r.NextAttemptAt != nil })
	if record.Task.Status != apcore.TaskPending || record.Task.RetryCount != 1 {
		t.Errorf("record %+v", record)
	}
	if pauses := o.timers(t, id); len(pauses) == 0 || pauses[0] != time.Duration(test.Expected.NextDelayMS)*time.Millisecond {
		t.Errorf("pauses %v", pauses)
	}
	o.cancel(t, o.TaskManager, id, true)
}

func exhaustedCase(t *testing.T, o *office, test taskCase) {
	t.Helper()
	before := o.book.count()
	id := o.submit(t, temporal.TaskSubmission{ModuleID: "task.again", Inputs: map[string]any{"how": "fail"}, Retry: &test.RetryConfig})
	record := o.wait(t, id)
	if string(record.Task.Status) != test.Expected.FinalStatus || record.Task.RetryCount != test.Expected.RetryCount || record.Task.Error == nil || o.book.count()-before != test.RetryConfig.MaxRetries+1 {
		t.Errorf("record %+v", record)
	}
}

func capacityCase(t *testing.T, o *office, test taskCase) {
	t.Helper()
	limited, err := temporal.NewTaskManager(o.clerk.client, temporal.TaskManagerOptions{MaxTasks: test.MaxTasks, TaskStoreOptions: temporal.TaskStoreOptions{
		TaskQueue: o.clerk.queue, Name: uuid.NewString(), Timeout: time.Minute,
	}})
	must(t, err)
	waits := temporal.TaskSubmission{ModuleID: "task.again", Inputs: map[string]any{"how": "wait"}}
	id, err := limited.Start(t.Context(), waits)
	must(t, err)
	if _, err := limited.Start(t.Context(), waits); !errors.Is(err, test.ExpectedError) {
		t.Errorf("over the limit: %v", err)
	}
	o.cancel(t, limited, id, true)
}

func cancelCase(t *testing.T, o *office, _ taskCase) {
	t.Helper()
	id := o.submit(t, temporal.TaskSubmission{ModuleID: "task.again", Inputs: map[string]any{"how": "fail"}, Retry: &apcore.RetryConfig{MaxRetries: 3, RetryDelayMS: 60_000, BackoffMultiplier: 2, MaxRetryDelayMS: 60_000}})
	o.until(t, id, func(r *durable.TaskRecord) bool { return r.Task.RetryCount == 1 })
	attempts := o.book.count()
	o.cancel(t, o.TaskManager, id, true)
	if record := o.wait(t, id); record.Task.Status != apcore.TaskCancelled || o.book.count() != attempts {
		t.Errorf("record %+v, %d attempts after the cancellation", record, o.book.count()-attempts)
	}
}
