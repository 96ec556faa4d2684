package activities

import (
	"cmp"
	"context"
	"fmt"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// Registry is what activities are registered on: a worker, a plugin's registry,
// or a test environment.
type Registry interface {
	RegisterActivityWithOptions(a any, options activity.RegisterOptions)
	RegisterDynamicActivity(a any, options activity.DynamicRegisterOptions)
}

// Dynamic is an application's own dynamic activity: it answers for the activity
// types that nobody registered and that are not of this package.
type Dynamic func(ctx context.Context, args converter.EncodedValues) (any, error)

// Register seals the executor's registry, unless told otherwise, and registers
// activities for calls and previews of each of its modules and aliases, the catalog, the audit, and a
// dynamic activity that answers for modules this worker does not know. A name that
// is taken or that Temporal does not take fails with NAME_TAKEN, naming who wants
// it; what was registered before stays.
func (a *Activities) Register(registry Registry) error {
	if !a.opts.LeaveUnsealed {
		a.executor.Registry().Seal("its activities were registered")
	}
	for _, id := range a.executor.Registry().IDs() {
		if err := a.registerModule(registry, id); err != nil {
			return err
		}
	}
	if err := register(registry, "the catalog", a.namer.Catalog(), a.catalog); err != nil {
		return err
	}
	if err := register(registry, "the audit", a.namer.Audit(), a.audit); err != nil {
		return err
	}
	if err := register(registry, "the task reaper", a.namer.TaskSweep(), a.sweep); err != nil {
		return err
	}
	if a.opts.NoDynamicActivity {
		return nil
	}
	return attempt("unknown modules", "the dynamic activity", func() {
		registry.RegisterDynamicActivity(a.unknown, activity.DynamicRegisterOptions{})
	})
}

// registerModule registers the operations of a module under its id and its old
// ones.
func (a *Activities) registerModule(registry Registry, id string) error {
	for _, name := range append([]string{id}, a.opts.Aliases.Of(id)...) {
		call := register(registry, "module "+id, a.namer.Unit(durable.OperationCall, name), a.call)
		preview := register(registry, "module "+id, a.namer.Unit(durable.OperationPreview, name), a.preview)
		if err := cmp.Or(call, preview); err != nil {
			return err
		}
	}
	return nil
}

func register(registry Registry, owner, name string, fn any) error {
	return attempt(owner, "activity "+name, func() {
		registry.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	})
}

// attempt turns the SDK's panic over a name into an error.
func attempt(owner, what string, register func()) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = apcore.NewError(durable.CodeNameTaken, "%s of %s cannot be registered on this worker: %s", what, owner, fmt.Sprint(cause)).
				WithRetryable(new(false)).WithDetail("name", what).WithDetail("owner", owner).
				WithSuggestion("one worker hosts one executor: merge the registries, or give each a worker and a task queue of its own")
		}
	}()
	register()
	return nil
}
