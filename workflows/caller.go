package workflows

import (
	"context"
	"errors"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// Caller makes module calls durable for programs that have no workflow of their
// own: each call is a run of [ModuleCall], found again by a request key, such as
// the number of an order. It keeps nothing, so two processes that share only the
// key work on one run. Methods may be called concurrently.
type Caller struct {
	client client.Client
	queue  string
	opts   CallerOptions
}

// CallerOptions configures a [Caller]; the zero value is the default.
type CallerOptions struct {
	// Namer makes the persisted names.
	Namer durable.Namer
}

// NewCaller makes a caller for the workers of a task queue. A nil client or an
// empty queue fails with GENERAL_INVALID_INPUT, a bad prefix with CONFIG_INVALID.
func NewCaller(c client.Client, queue string, opts CallerOptions) (*Caller, error) {
	if c == nil || queue == "" {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "a caller needs a client and a task queue")
	}
	if err := opts.Namer.Validate(); err != nil {
		return nil, err
	}
	return &Caller{client: c, queue: queue, opts: opts}, nil
}

// WorkflowID is the id of the run of a request key: approvals of the call are
// decided with it.
func (c *Caller) WorkflowID(key string) string { return c.opts.Namer.ModuleCall() + "/" + key }

// callDigest begins the details of a run, which say which call a key belongs to.
const callDigest = "call digest: "

// Start begins a call, or finds the one that its key began before, ended or not:
// a key stands for one call for as long as the server keeps its run. It fails with
// GENERAL_INVALID_INPUT for a bad key, and with REQUEST_KEY_TAKEN when the key
// belongs to a call of another module or with other inputs.
func (c *Caller) Start(ctx context.Context, key string, in ModuleCallInput) error {
	if err := errors.Join(temporal.CheckKey(key), apcore.ValidateModuleID(in.ModuleID)); err != nil {
		return apcore.AsError(err)
	}
	digest, err := in.digest()
	if err != nil {
		return err
	}
	_, err = c.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: c.WorkflowID(key), TaskQueue: c.queue, StaticSummary: in.ModuleID, StaticDetails: callDigest + digest,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
	}, c.opts.Namer.ModuleCall(), in)
	var ended *serviceerror.WorkflowExecutionAlreadyStarted
	if err != nil && !errors.As(err, &ended) {
		return apcore.NewError(apcore.CodeInternal, "the call of module %q cannot be started: %w", in.ModuleID, err)
	}
	return c.compare(ctx, key, in.ModuleID, digest)
}

// digest tells calls apart.
func (in ModuleCallInput) digest() (string, error) {
	inputs := map[string]any{}
	if len(in.Inputs) > 0 {
		var err error
		if inputs, err = apcore.DecodeObject(in.Inputs); err != nil {
			return "", apcore.NewError(apcore.CodeInvalidInput, "inputs of module %q are no JSON object", in.ModuleID).WithDetail("module_id", in.ModuleID)
		}
	}
	return apcore.ContentHash(map[string]any{"module_id": in.ModuleID, "inputs": inputs})
}

// compare makes sure that a key's run is the call that is meant.
func (c *Caller) compare(ctx context.Context, key, moduleID, digest string) error {
	run, err := c.client.DescribeWorkflow(ctx, c.WorkflowID(key), "")
	if err != nil {
		return c.missing(key, err)
	}
	if began, err := run.GetStaticDetails(); err != nil || began != callDigest+digest {
		return apcore.NewError(durable.CodeKeyTaken, "request key %q belongs to another call than this one of module %q", key, moduleID).
			WithRetryable(new(false)).WithDetail("key", key).WithSuggestion("give each call a key of its own; a key stands for one module and its inputs")
	}
	return nil
}

// Wait returns the result of a key's call as soon as there is one; when ctx ends
// before, the call goes on. Errors are those of [temporal.Call], and
// RUN_NOT_FOUND for a key that began nothing.
func (c *Caller) Wait(ctx context.Context, key string) (*ModuleCallOutput, error) {
	if err := temporal.CheckKey(key); err != nil {
		return nil, err
	}
	var out ModuleCallOutput
	if err := c.client.GetWorkflow(ctx, c.WorkflowID(key), "").Get(ctx, &out); err != nil {
		return nil, c.missing(key, err)
	}
	return &out, nil
}

// Call is [Caller.Start] and [Caller.Wait].
func (c *Caller) Call(ctx context.Context, key string, in ModuleCallInput) (*ModuleCallOutput, error) {
	if err := c.Start(ctx, key, in); err != nil {
		return nil, err
	}
	return c.Wait(ctx, key)
}

func (c *Caller) missing(key string, err error) error {
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return apcore.NewError(durable.CodeRunNotFound, "no call has the request key %q", key).WithRetryable(new(false)).WithDetail("key", key)
	}
	if found := temporal.AsError(err); found != nil {
		return found
	}
	return apcore.NewError(apcore.CodeInternal, "the call with the request key %q: %w", key, err)
}
