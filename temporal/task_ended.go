package temporal

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/apcore-temporal/apcore-temporal/durable"
)

// endedTasks remembers which tasks this instance has seen end: to tell expired
// from unknown, and its own terminal records from those of others. It is bounded;
// the oldest entries go first.
type endedTasks struct {
	mu     sync.Mutex
	tasks  map[string]endedTask
	order  []string
	keeps  time.Duration
	loaded bool
}

type endedTask struct {
	at time.Time
	// own is the state that this instance wrote; zero if another one did.
	own durable.TaskSaved
}

const maxEnded = 100_000

func newEndedTasks() *endedTasks { return &endedTasks{tasks: map[string]endedTask{}} }

// saw notes when a task ended.
func (e *endedTasks) saw(id string, at time.Time) {
	if at.IsZero() {
		return
	}
	e.change(id, func(task *endedTask) { task.at = at })
}

// wrote notes a terminal record of this instance.
func (e *endedTasks) wrote(id string, at time.Time, own durable.TaskSaved) {
	e.change(id, func(task *endedTask) { *task = endedTask{at, own} })
}

func (e *endedTasks) change(id string, change func(*endedTask)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	task, known := e.tasks[id]
	change(&task)
	e.tasks[id] = task
	if known {
		return
	}
	if e.order = append(e.order, id); len(e.order) > maxEnded {
		delete(e.tasks, e.order[0])
		e.order = e.order[1:]
	}
}

func (e *endedTasks) forget(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.tasks, id)
}

func (e *endedTasks) when(id string) (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	task, known := e.tasks[id]
	return task.at, known
}

func (e *endedTasks) own(id string) durable.TaskSaved {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tasks[id].own
}

// retention is how long the namespace keeps closed workflows.
func (e *endedTasks) retention(ctx context.Context, c client.Client, namespace string) (time.Duration, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.loaded {
		answer, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
		if err != nil {
			return 0, err
		}
		e.keeps, e.loaded = answer.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(), true
	}
	return e.keeps, nil
}
