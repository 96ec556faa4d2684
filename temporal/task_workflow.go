package temporal

import (
	"time"

	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
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

// AdoptContext makes a run act under an apcore context in wire form that came with
// its input, as if it had come in the header; empty changes nothing. A context that
// cannot be read is GENERAL_INVALID_INPUT. Call it before the first [Call].
func AdoptContext(ctx workflow.Context, wire []byte) error {
	if len(wire) == 0 {
		return nil
	}
	s, err := stateOf(ctx)
	if err != nil {
		return err
	}
	object, err := apcore.DecodeObject(wire)
	if err != nil {
		return local(ctx, apcore.NewError(apcore.CodeInvalidInput, "the context of the run is no apcore context: %w", err))
	}
	s.context, s.data, s.text = object, map[string]any{}, nil
	if data, ok := object["data"].(map[string]any); ok {
		s.data = data
	}
	return nil
}

// RecordedClass returns the class of a module as this worker knows it, and writes
// it into the history, so that a replay on another worker decides alike.
func RecordedClass(ctx workflow.Context, moduleID string) durable.Class {
	class := durable.ClassAtMostOnce
	value := workflow.SideEffect(ctx, func(ctx workflow.Context) any {
		s, err := stateOf(ctx)
		if err != nil {
			return durable.ClassAtMostOnce
		}
		return s.opts.Catalog.Policy(moduleID).Class
	})
	if value.Get(&class) != nil {
		return durable.ClassAtMostOnce
	}
	return class
}

type waitingKey struct{}

// ObserveWaiting returns a context whose calls tell when they begin to wait for
// somebody's decision, with what they wait for, and when they go on, with nil.
func ObserveWaiting(ctx workflow.Context, observe func(workflow.Context, *durable.Approval)) workflow.Context {
	return workflow.WithValue(ctx, waitingKey{}, observe)
}

// observed tells the observer of a call, if it has one; call what it returns when
// the wait is over.
func observed(ctx workflow.Context, approval *durable.Approval) (over func()) {
	observe, ok := ctx.Value(waitingKey{}).(func(workflow.Context, *durable.Approval))
	if !ok {
		return func() {}
	}
	observe(ctx, approval)
	return func() { observe(ctx, nil) }
}
