package temporal

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// OnceOptions configures [CallOnce].
type OnceOptions struct {
	// TaskQueue of the workers that host the module; required.
	TaskQueue string
	// Key names the call among those of its module: as long as the server remembers
	// it, a second one with the same key gets the first one's result, whatever its
	// inputs. Required.
	Key string
	// Catalog says how the module wants to be called; nil calls it at most once.
	Catalog *Catalog
	// Call changes how it is called; the zero value leaves everything to the module.
	Call CallOptions
	// Namer makes the persisted names.
	Namer durable.Namer
	// MaxInputBytes bounds the inputs as JSON; zero means 1 MiB.
	MaxInputBytes int
}

// CallOnce makes one call without a workflow, as a standalone activity, and waits
// for its end; when ctx ends before, the call goes on, and CallOnce with the same
// key finds it again. The apcore context is that of [WithContext], or a fresh one.
//
// The errors are those of [Call], with two differences that follow from there
// being no run: a module that needs approval ends with APPROVAL_PENDING (start
// the workflow apcore/module-call for it, which can wait), and a failure before
// the module started is not tried again when it is called at most once. A server
// without standalone activities answers with NO_STANDALONE.
func CallOnce(ctx context.Context, c client.Client, moduleID string, in any, opts OnceOptions) (*durable.CallResult, error) {
	request, policy, err := opts.prepare(ctx, c, moduleID, in)
	if err != nil {
		return nil, err
	}
	handle, err := c.ExecuteActivity(ctx, opts.start(policy, moduleID), opts.Namer.Unit(durable.OperationCall, moduleID), request)
	var taken *serviceerror.ActivityExecutionAlreadyStarted
	switch {
	case errors.As(err, &taken):
		handle = c.GetActivityHandle(client.GetActivityHandleOptions{ActivityID: opts.id(moduleID)})
	case err != nil:
		return nil, onceUnavailable(err)
	}
	var result durable.CallResult
	if err := handle.Get(ctx, &result); err != nil {
		if ctx.Err() != nil {
			return nil, apcore.NewError(apcore.CodeExecutionCancelled, "nobody waits for the call of module %q any more; it goes on: %w", moduleID, ctx.Err()).WithDetail("key", opts.Key)
		}
		return nil, callFailure(request, policy, err, time.Now())
	}
	if result.Status != durable.StatusCompleted {
		return nil, apcore.NewError(apcore.CodeApprovalPending, "module %q needs approval, and without a workflow nothing can wait for it", moduleID).
			WithDetail("module_id", moduleID).WithRetryable(new(false)).
			WithSuggestion("start the workflow " + opts.Namer.ModuleCall() + " instead")
	}
	return &result, nil
}

func (o OnceOptions) prepare(ctx context.Context, c client.Client, moduleID string, in any) (request durable.CallRequest, policy durable.Policy, err error) {
	switch {
	case c == nil:
		return request, policy, apcore.NewError(apcore.CodeInvalidInput, "a call needs a client")
	case o.TaskQueue == "":
		return request, policy, apcore.NewError(apcore.CodeInvalidInput, "OnceOptions.TaskQueue is empty: name the queue of the module's workers")
	case o.MaxInputBytes < 0:
		return request, policy, apcore.NewError(apcore.CodeInvalidInput, "OnceOptions.MaxInputBytes is %d: give a positive number, or zero for 1 MiB", o.MaxInputBytes)
	}
	if err := CheckKey(o.Key); err != nil {
		return request, policy, err
	}
	if err := errors.Join(apcore.ValidateModuleID(moduleID), o.Namer.Validate()); err != nil {
		return request, policy, err
	}
	entry := o.Catalog.entry(moduleID)
	if err := o.Call.check(moduleID, entry.base.Class); err != nil {
		return request, policy, err
	}
	limit := o.MaxInputBytes
	if limit == 0 {
		limit = DefaultMaxInputBytes
	}
	inputs, err := encodeInputs(moduleID, in, limit)
	if err != nil {
		return request, policy, err
	}
	caller := ContextOf(ctx)
	if caller == nil {
		caller = apcore.NewContext(apcore.ContextOptions{})
	}
	wire, err := apcore.EncodeJSON(caller.Serialize())
	request = durable.CallRequest{
		V: durable.WireVersion, ModuleID: moduleID, Inputs: inputs, Context: wire, CallID: o.id(moduleID),
		IdempotencyKey: o.Call.IdempotencyKey, VersionHint: o.Call.VersionHint, Fingerprint: entry.fingerprint,
		AcceptRepeatedEffects: o.Call.AcceptRepeatedEffects, RequestedAt: time.Now().UTC().Truncate(time.Millisecond),
	}
	return request, o.Call.policy(entry.base, o.Call.over(entry.settings)), err
}

// id is the activity's, which is also the call id: it has no run that could be
// reset, and the server runs no second one of it.
func (o OnceOptions) id(moduleID string) string {
	return o.Namer.Unit(durable.OperationCall, moduleID) + "/" + o.Key
}

func (o OnceOptions) start(policy durable.Policy, moduleID string) client.StartActivityOptions {
	return client.StartActivityOptions{
		ID: o.id(moduleID), TaskQueue: o.TaskQueue, Summary: shorten(o.Catalog.entry(moduleID).description),
		StartToCloseTimeout: policy.StartToClose, ScheduleToStartTimeout: policy.ScheduleToStart, ScheduleToCloseTimeout: policy.ScheduleToClose,
		HeartbeatTimeout: policy.Heartbeat, RetryPolicy: retryPolicy(policy),
		ActivityIDConflictPolicy: enums.ACTIVITY_ID_CONFLICT_POLICY_USE_EXISTING,
		ActivityIDReusePolicy:    enums.ACTIVITY_ID_REUSE_POLICY_REJECT_DUPLICATE,
	}
}

// onceUnavailable tells a server that has no standalone activities from one that
// cannot be reached.
func onceUnavailable(err error) error {
	var unimplemented *serviceerror.Unimplemented
	if errors.As(err, &unimplemented) {
		return apcore.NewError(durable.CodeNoStandalone, "this server runs no activities without a workflow: %w", err).WithRetryable(new(false)).
			WithSuggestion("start the workflow apcore/module-call instead")
	}
	return apcore.NewError(apcore.CodeInternal, "the call cannot be started: %w", err)
}

const maxRequestKey = 500

// CheckKey fails with GENERAL_INVALID_INPUT for a request key that is empty, longer
// than 500 bytes or holds anything but printable ASCII.
func CheckKey(key string) error {
	if key == "" || len(key) > maxRequestKey {
		return apcore.NewError(apcore.CodeInvalidInput, "a request key has %d bytes: give 1 to %d", len(key), maxRequestKey)
	}
	for i := range len(key) {
		if key[i] < '!' || key[i] > '~' {
			return apcore.NewError(apcore.CodeInvalidInput, "request key %q holds something else than printable ASCII without spaces at byte %d", key, i)
		}
	}
	return nil
}
