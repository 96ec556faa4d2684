package temporal_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

// staleClient answers lists with what the server said when it was last asked to
// look, as a slow visibility does.
type staleClient struct {
	client.Client

	answers map[string]*workflowservice.ListWorkflowExecutionsResponse
}

func (c *staleClient) ListWorkflow(_ context.Context, request *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	if answer := c.answers[request.Query]; answer != nil {
		return answer, nil
	}
	return &workflowservice.ListWorkflowExecutionsResponse{}, nil
}

// staleSite is an office that sees the server's lists through a staleClient.
func staleSite(t *testing.T) (*office, *staleClient, *temporal.TaskManager) {
	t.Helper()
	o := newOffice(t, testsuite.DevServer(t), temporal.TaskManagerOptions{})
	stale := &staleClient{Client: o.clerk.client, answers: map[string]*workflowservice.ListWorkflowExecutionsResponse{}}
	m, err := temporal.NewTaskManager(stale, temporal.TaskManagerOptions{TaskStoreOptions: temporal.TaskStoreOptions{
		TaskQueue: o.clerk.queue, Name: o.name, Namespace: o.clerk.server.Namespace(), Timeout: time.Minute,
	}})
	must(t, err)
	return o, stale, m
}

// An instance lists what it wrote while the server's lists show nothing of it, or
// what was before.
func TestListsAheadOfVisibility(t *testing.T) {
	t.Parallel()
	_, _, m := staleSite(t)
	store := m.Store()
	listed := func(status *apcore.TaskStatus, want ...string) {
		t.Helper()
		infos, err := store.List(t.Context(), status)
		if ids := idsOf(infos); err != nil || !slices.Equal(ids, want) {
			t.Errorf("listed %v, %v, want %v", ids, err, want)
		}
	}
	running := apcore.TaskRunning
	must(t, store.Save(t.Context(), runningTask("z")))
	must(t, store.Save(t.Context(), runningTask("a")))
	listed(nil, "z", "a")
	must(t, store.Save(t.Context(), endedTask("z", apcore.TaskCompleted)))
	listed(nil, "z", "a")
	listed(&running, "a")
	submitted, err := m.Submit(t.Context(), "task.once", nil, nil, nil)
	must(t, err)
	listed(nil, "z", "a", submitted)
	must(t, store.Delete(t.Context(), "z"))
	must(t, store.Delete(t.Context(), "a"))
	listed(nil, submitted)
	must(t, store.Save(t.Context(), endedTask("a", apcore.TaskFailed)))
	listed(nil, submitted, "a")
}

// look makes the client remember what the server lists of a store by now.
func (c *staleClient) look(t *testing.T, query string, rows int) {
	t.Helper()
	eventually(t, func() string {
		answer, err := c.Client.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		if must(t, err); len(answer.GetExecutions()) != rows {
			return "the server does not list them yet"
		}
		c.answers[query] = answer
		return ""
	})
}

// A row that says completed hides neither that the record is running by now nor
// that it is gone, and no reaper deletes what the server's lists are wrong about.
func TestStaleRows(t *testing.T) {
	t.Parallel()
	o, stale, m := staleSite(t)
	store := m.Store()
	for _, id := range []string{"again", "gone", "stays"} {
		must(t, store.Save(t.Context(), endedTask(id, apcore.TaskCompleted)))
	}
	const before = 1800000000
	scope := "ApcoreTaskStore = '" + o.name + "' AND ExecutionStatus != 'ContinuedAsNew'"
	expired := scope + " AND (ApcoreTaskCompletedAt < 1800000001 OR ApcoreTaskCompletedAt IS NULL AND CloseTime IS NOT NULL)"
	stale.look(t, scope, 3)
	stale.look(t, expired, 3)
	must(t, store.Save(t.Context(), pendingTask("again")))
	must(t, store.Delete(t.Context(), "gone"))
	infos, err := store.List(t.Context(), nil)
	if ids := idsOf(infos); err != nil || !slices.Equal(ids, []string{"again", "stays"}) || infos[0].Status != apcore.TaskPending {
		t.Errorf("listed %+v, %v", infos, err)
	}
	swept, err := store.Sweep(t.Context(), before)
	if err != nil || swept.Expired != 3 || swept.Deleted != 1 {
		t.Errorf("swept %+v, %v", swept, err)
	}
	for id, want := range map[string]bool{"again": true, "gone": false, "stays": false} {
		if info, err := store.Get(t.Context(), id); err != nil || (info != nil) != want {
			t.Errorf("%s after the sweep: %+v, %v", id, info, err)
		}
	}
}
