package activities

import (
	"context"
	"errors"
	"slices"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdktemporal "go.temporal.io/sdk/temporal"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// Options configures [New]; the zero value is the default.
type Options struct {
	durable.InvokerOptions
	// Namer makes the persisted names.
	Namer durable.Namer
	// AuditSink takes the records of approvals; nil means runs make none.
	AuditSink durable.AuditSink
	// Client asks whether search attributes are registered; nil means that
	// approvals are not shown in searches.
	Client client.Client
	// DataConverter must be the client's, for the reaper of tasks to read their
	// records; nil means the SDK's default.
	DataConverter converter.DataConverter
	// Dynamic answers for activity types that are not of this package; nil says
	// that they are not registered. A worker has one dynamic activity only, and
	// this package needs it: an application passes its own here.
	Dynamic Dynamic
	// NoDynamicActivity leaves the worker's dynamic activity to the application.
	// A call of a module that no worker of the queue knows then fails at once, as
	// Temporal's ActivityNotRegisteredError, instead of waiting for the next
	// deploy.
	NoDynamicActivity bool
	// LeaveUnsealed keeps the executor's registry open, for hot reload. A module
	// that is registered later has no activity of its own; the dynamic activity
	// answers for it.
	LeaveUnsealed bool
}

// Activities hosts the modules of one executor. Its methods may be called
// concurrently.
type Activities struct {
	executor *apcore.Executor
	invoker  *durable.Invoker
	namer    durable.Namer
	sink     durable.AuditSink
	opts     Options
}

// New makes the activities of an executor. Errors are those of
// [durable.NewInvoker] and [durable.Namer.Validate], and GENERAL_INVALID_INPUT
// for a dynamic activity that is given and turned off.
func New(executor *apcore.Executor, opts Options) (*Activities, error) {
	if err := opts.Namer.Validate(); err != nil {
		return nil, err
	}
	if opts.Dynamic != nil && opts.NoDynamicActivity {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "Options.Dynamic is set and Options.NoDynamicActivity too: leave one of them out")
	}
	opts.Audit = opts.AuditSink != nil
	if opts.TraceParent == nil {
		opts.TraceParent = traceParent
	}
	if opts.Client != nil {
		opts.Listed = (&listing{client: opts.Client}).ready
	}
	invoker, err := durable.NewInvoker(executor, opts.InvokerOptions)
	if err != nil {
		return nil, err
	}
	return &Activities{executor: executor, invoker: invoker, namer: opts.Namer, sink: opts.AuditSink, opts: opts}, nil
}

// call is the activity of every module; the request says which.
func (a *Activities) call(ctx context.Context, request durable.CallRequest) (*durable.CallResult, error) {
	linkAsked(ctx, request)
	stop := heartbeat(ctx)
	defer stop()
	result, err := a.measured(ctx, request, func() (*durable.CallResult, error) {
		result, err := a.invoker.Invoke(ctx, request, int(activity.GetInfo(ctx).Attempt))
		if err == nil && activity.GetInfo(ctx).IsLocalActivity {
			err = temporal.CheckLocalResult(request.ModuleID, result)
		}
		return result, err
	})
	if err != nil {
		return nil, a.outcome(ctx, request, err)
	}
	return result, nil
}

// preview is the activity of every module that checks a call without making it.
func (a *Activities) preview(ctx context.Context, request durable.CallRequest) (*apcore.PreflightResult, error) {
	stop := heartbeat(ctx)
	defer stop()
	result, err := a.invoker.Preview(ctx, request)
	if err != nil {
		return nil, a.outcome(ctx, request, err)
	}
	return result, nil
}

// outcome turns a failure into Temporal's terms. A cancellation that the server
// asked for is reported as one; a worker that stops is not.
func (a *Activities) outcome(ctx context.Context, request durable.CallRequest, err error) error {
	var failure *durable.Failure
	if !errors.As(err, &failure) {
		failure = &durable.Failure{Err: apcore.NewError(apcore.CodeInternal, "module %q failed: %w", request.ModuleID, err).WithRetryable(new(false))}
	}
	if failure.Err.Code != apcore.CodeExecutionCancelled || ctx.Err() == nil {
		return temporal.ActivityError(failure)
	}
	if errors.Is(context.Cause(ctx), sdkworker.ErrWorkerShutdown) {
		return temporal.ActivityError(a.interrupted(request, failure))
	}
	return sdktemporal.NewCanceledError(failure.Map())
}

// interrupted is a call whose worker stopped under it.
func (a *Activities) interrupted(request durable.CallRequest, failure *durable.Failure) *durable.Failure {
	if a.repeats(a.opts.Aliases.Target(request.ModuleID)) || failure.NotStarted || request.AcceptRepeatedEffects {
		return &durable.Failure{Err: apcore.NewError(apcore.CodeInternal, "the worker stopped while module %q was running", request.ModuleID), Retry: true, NotStarted: failure.NotStarted}
	}
	return &durable.Failure{Err: durable.OutcomeUnknown(request, "its worker stopped")}
}

// repeats reports whether every version of a module here may run again.
func (a *Activities) repeats(moduleID string) bool {
	definitions := a.executor.Registry().Versions(moduleID)
	return len(definitions) > 0 && !slices.ContainsFunc(definitions, func(d *apcore.Descriptor) bool {
		return !durable.ClassOf(&d.Annotations).Repeats()
	})
}

// catalog lists the modules of this worker.
func (a *Activities) catalog(context.Context) ([]apcore.ModuleRef, error) {
	refs := []apcore.ModuleRef{}
	for _, id := range a.executor.Registry().List(apcore.ListOptions{}) {
		for _, definition := range a.executor.Registry().Versions(id) {
			refs = append(refs, definition.ModuleRef)
		}
	}
	return refs, nil
}

// unknown answers for activity types nobody registered: a module call that
// another worker may know, or something that is not ours at all.
func (a *Activities) unknown(ctx context.Context, args converter.EncodedValues) (any, error) {
	name := activity.GetInfo(ctx).ActivityType.Name
	operation, _, ours := a.namer.ParseUnit(name)
	if !ours {
		if a.opts.Dynamic != nil {
			return a.opts.Dynamic(ctx, args)
		}
		return nil, sdktemporal.NewApplicationError("activity type "+name+" is not registered on this worker", "ActivityNotRegisteredError")
	}
	var request durable.CallRequest
	if err := args.Get(&request); err != nil {
		return nil, temporal.ActivityError(&durable.Failure{
			Err: apcore.NewError(apcore.CodeInvalidInput, "activity %s got no call request: %w", name, err), NotStarted: true,
		})
	}
	if operation == durable.OperationPreview {
		return a.preview(ctx, request)
	}
	return a.call(ctx, request)
}
