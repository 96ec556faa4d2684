package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// CheckOptions configures [CheckNames]; the zero value looks at all open runs of
// the task queue.
type CheckOptions struct {
	// Query narrows the runs, as a visibility query; it is joined with AND.
	Query string
	// Aliases are those of the worker.
	Aliases durable.Aliases
	// Namer makes the persisted names.
	Namer durable.Namer
}

// CheckNames looks through the open runs whose workflow uses a task queue and
// fails with CONFIG_INVALID when one has called a module that the executor does
// not have and no alias stands for: such a run would call it again, replay
// against code that does not, or waits for it right now. The message lists the
// missing ids, each with a run; details.missing holds them all.
//
// It reads the history of each open run, so it is meant for a deploy pipeline or
// for the start of a worker with few runs, see [Options].CheckNames. Visibility
// may lag behind by some seconds.
func CheckNames(ctx context.Context, c client.Client, queue string, executor *apcore.Executor, opts CheckOptions) error {
	if c == nil || executor == nil || queue == "" {
		return apcore.NewError(apcore.CodeInvalidInput, "names are checked with a client, a task queue and an executor")
	}
	known := func(id string) bool { return executor.Registry().Has(opts.Aliases.Target(id)) }
	missing := map[string]string{}
	for page := []byte(nil); ; {
		list, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: openRuns(queue, opts.Query), NextPageToken: page})
		if err != nil {
			return apcore.NewError(apcore.CodeInternal, "the open runs of task queue %q cannot be listed: %w", queue, err)
		}
		for _, run := range list.GetExecutions() {
			id, runID := run.GetExecution().GetWorkflowId(), run.GetExecution().GetRunId()
			called, err := calledModules(ctx, c, id, runID, queue, opts.Namer)
			if err != nil {
				return err
			}
			for _, moduleID := range called {
				if !known(moduleID) && missing[moduleID] == "" {
					missing[moduleID] = id
				}
			}
		}
		if page = list.GetNextPageToken(); len(page) == 0 {
			return missingAliases(missing)
		}
	}
}

func openRuns(queue, narrow string) string {
	query := fmt.Sprintf("ExecutionStatus = 'Running' AND TaskQueue = '%s'", strings.ReplaceAll(queue, "'", "''"))
	if narrow != "" {
		query += " AND (" + narrow + ")"
	}
	return query
}

// calledModules lists the modules that a run has called on the queue, in order.
func calledModules(ctx context.Context, c client.Client, id, runID, queue string, namer durable.Namer) ([]string, error) {
	var called []string
	events := c.GetWorkflowHistory(ctx, id, runID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return nil, apcore.NewError(apcore.CodeInternal, "the history of workflow %q cannot be read: %w", id, err)
		}
		scheduled := event.GetActivityTaskScheduledEventAttributes()
		_, moduleID, ours := namer.ParseUnit(scheduled.GetActivityType().GetName())
		if ours && scheduled.GetTaskQueue().GetName() == queue && !slices.Contains(called, moduleID) {
			called = append(called, moduleID)
		}
	}
	return called, nil
}

func missingAliases(missing map[string]string) error {
	if len(missing) == 0 {
		return nil
	}
	ids := slices.Sorted(maps.Keys(missing))
	var lines []string
	for _, id := range ids {
		lines = append(lines, fmt.Sprintf("%s (workflow %s)", id, missing[id]))
	}
	return apcore.NewError(apcore.CodeConfigInvalid, "open runs call modules that are not here and that no alias stands for: %s", strings.Join(lines, ", ")).
		WithDetail("missing", ids).WithRetryable(new(false)).
		WithSuggestion("add an alias from each old id to the module's new one, or keep the module until the runs have ended")
}
