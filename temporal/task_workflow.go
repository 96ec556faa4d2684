package temporal

import (
	"time"

	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/durable"
)

// Names returns the names that the worker of a workflow uses; the default ones
// outside a prepared workflow.
func Names(ctx workflow.Context) durable.Namer {
	s, err := stateOf(ctx)
	if err != nil {
		return durable.Namer{}
	}
	return s.opts.Namer
}

// PublishTask shows a task's record to clients without a worker: its head in the
// memo, status and end in the search attributes. Search attributes that the
// workflow was not started with are left out, because a namespace that lacks them
// would fail the workflow task. Only workflows of tasks call it.
func PublishTask(ctx workflow.Context, record durable.TaskRecord) error {
	head, err := record.Head()
	if err != nil {
		return local(ctx, err)
	}
	if err := workflow.UpsertMemo(ctx, map[string]any{durable.MemoTask: head}); err != nil {
		return err
	}
	present := workflow.GetTypedSearchAttributes(ctx)
	if _, ok := present.GetKeyword(searchTaskStatus); !ok {
		return nil
	}
	return workflow.UpsertTypedSearchAttributes(ctx, taskAttributes(&record)...)
}

// Search attributes of tasks.
var (
	searchTaskStatus = sdktemporal.NewSearchAttributeKeyKeyword(durable.SearchTaskStatus)
	searchTaskStore  = sdktemporal.NewSearchAttributeKeyKeyword(durable.SearchTaskStore)
	searchTaskEnd    = sdktemporal.NewSearchAttributeKeyFloat64(durable.SearchTaskEnd)
)

// taskAttributes are those that change with a record.
func taskAttributes(record *durable.TaskRecord) []sdktemporal.SearchAttributeUpdate {
	updates := []sdktemporal.SearchAttributeUpdate{
		searchTaskStatus.ValueSet(string(record.Task.Status)),
		searchModuleID.ValueSet(shortenTo(record.Task.ModuleID, maxKeyword)),
	}
	if record.Task.Status.Terminal() && record.Task.CompletedAt != nil {
		return append(updates, searchTaskEnd.ValueSet(*record.Task.CompletedAt))
	}
	return append(updates, searchTaskEnd.ValueUnset())
}

// maxKeyword is how many characters a search attribute holds where visibility is
// kept in SQL.
const maxKeyword = 255

func shortenTo(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:limit])
}

// TaskPlace is a time as [durable.TaskRecord] counts its place.
func TaskPlace(t time.Time) int64 { return t.UnixMicro() }

// WorkflowError is what workflow code returns for an apcore error, so that
// clients read its code with [AsError]. Workflows prepared for [Call] need it in
// update handlers only.
func WorkflowError(err error) error { return workflowError(err) }
