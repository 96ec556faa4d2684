package durable

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// DefaultApprovalTimeout is how long an approval may take unless told otherwise.
const DefaultApprovalTimeout = 24 * time.Hour

// DefaultMaxOutputBytes keeps an output below what engines carry.
const DefaultMaxOutputBytes = 1 << 20

// Invoker runs the units of durable calls on a worker: it rebuilds the context,
// checks what a decision is bound to, runs the executor and decides what an
// error means. It may be used concurrently.
type Invoker struct {
	executor *apcore.Executor
	opts     InvokerOptions
	warned   sync.Map // module id to the last fingerprint that was warned of
}

// InvokerOptions configures an [Invoker]; the zero value is the default.
type InvokerOptions struct {
	// ApprovalTimeout is how long an approval may take when the call does not
	// say: zero means 24 h, NoDeadline means for ever.
	ApprovalTimeout time.Duration
	// SealKey makes grants unforgeable by other parts of the run, and keeps
	// arguments digests from being tried out: whoever reads a bare digest and
	// knows all arguments but a card number can find that. All workers of a queue
	// need the same key. Empty means no seal and bare digests.
	SealKey []byte
	// MaxOutputBytes bounds a module's output as JSON; zero means 1 MiB.
	MaxOutputBytes int
	// Rules say who may decide and what happens meanwhile, for modules that do
	// not say so themselves under x-approval; nil means anyone but the requester.
	Rules *ApprovalRules
	// ApproverKeys are the keys that may sign decisions, by key id. With any, a
	// decision counts only under the signature of its approver.
	ApproverKeys map[string]ApproverKey
	// Audit makes runs report every step of an approval, see [AuditRecord].
	Audit bool
	// Listed says whether runs may show their approvals in what the server can
	// search; nil means no. The engine's binding sets it.
	Listed func(ctx context.Context) bool
	// VerifyContext may refuse the context of a call before anything uses it: an
	// error ends the call with ACL_DENIED, one that says it is retryable lets the
	// call be tried again. nil believes what whoever started the workflow claims.
	VerifyContext func(ctx context.Context, claim Claim) error
	// Aliases are old ids under which modules can still be called.
	Aliases Aliases
	// Fingerprints says what to do about calls that were made for another build of
	// their module; the zero value warns.
	Fingerprints FingerprintPolicy
	// TraceParent tells the span of the unit that runs with ctx, for the module's
	// spans to be below it; nil means there is none. Package activities sets it.
	TraceParent func(ctx context.Context) *apcore.TraceParent
	// Logger takes warnings; nil means slog.Default().
	Logger *slog.Logger
}

// NoDeadline makes an approval wait for ever.
const NoDeadline time.Duration = -1

// NewInvoker makes an invoker. Options out of bounds fail with
// GENERAL_INVALID_INPUT.
func NewInvoker(executor *apcore.Executor, opts InvokerOptions) (*Invoker, error) {
	if executor == nil {
		return nil, newError(apcore.CodeInvalidInput, "an invoker needs an executor")
	}
	if opts.ApprovalTimeout < 0 && opts.ApprovalTimeout != NoDeadline {
		return nil, newError(apcore.CodeInvalidInput, "InvokerOptions.ApprovalTimeout is %v: give zero for 24 h, NoDeadline for none or a positive one", opts.ApprovalTimeout)
	}
	if opts.MaxOutputBytes < 0 {
		return nil, newError(apcore.CodeInvalidInput, "InvokerOptions.MaxOutputBytes is %d: give a positive number, or zero for 1 MiB", opts.MaxOutputBytes)
	}
	if err := opts.Rules.validate(""); err != nil {
		return nil, err
	}
	if err := validateKeys(opts.ApproverKeys); err != nil {
		return nil, err
	}
	if opts.ApprovalTimeout == 0 {
		opts.ApprovalTimeout = DefaultApprovalTimeout
	}
	if opts.MaxOutputBytes == 0 {
		opts.MaxOutputBytes = DefaultMaxOutputBytes
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if !opts.Fingerprints.valid() {
		return nil, newError(apcore.CodeInvalidInput, "InvokerOptions.Fingerprints is %q: give nothing to warn, %q or %q", opts.Fingerprints, FingerprintRefuse, FingerprintIgnore)
	}
	if err := opts.Aliases.Validate(executor.Registry().Has); err != nil {
		return nil, err
	}
	opts.SealKey, opts.Aliases = bytes.Clone(opts.SealKey), maps.Clone(opts.Aliases)
	return &Invoker{executor: executor, opts: opts}, nil
}

// target is the id under which the module of a call is registered here.
func (i *Invoker) target(moduleID string) string { return i.opts.Aliases.Target(moduleID) }

// Invoke runs one attempt, counted from 1. A pending approval is a result, not
// an error; every error is a [*Failure].
func (i *Invoker) Invoke(ctx context.Context, request CallRequest, attempt int) (*CallResult, error) {
	call, err := i.prepare(ctx, request, attempt)
	if failure, ok := errors.AsType[*Failure](err); ok {
		return nil, failure
	}
	var refused *refusal
	if errors.As(err, &refused) {
		return &CallResult{V: WireVersion, Status: StatusDecisionRefused, Refused: refused.decisions}, nil
	}
	if err != nil {
		return nil, &Failure{Err: apcore.AsError(err).WithRetryable(new(false)), NotStarted: true}
	}
	if request.Ask && !i.asks(request) {
		return &CallResult{V: WireVersion, Status: StatusNotAsked}, nil
	}
	before := publicData(call.context)
	outcome, err := i.executor.Do(intoContext(apcore.WithHostRetries(ctx), call.invocation), apcore.Request{
		ModuleID: i.target(request.ModuleID), Inputs: call.inputs, Context: call.context, VersionHint: i.hint(request),
	})
	if err != nil {
		return i.unfinished(ctx, call.invocation, outcome, err)
	}
	return i.completed(request, outcome, changedData(before, call.context))
}

// prepared is a decoded request.
type prepared struct {
	inputs     map[string]any
	context    *apcore.Context
	invocation *invocation
}

func (i *Invoker) prepare(ctx context.Context, request CallRequest, attempt int) (*prepared, error) {
	if request.V > WireVersion {
		return nil, newError(apcore.CodeInvalidInput, "call request has version %d, this worker reads up to %d: update the worker", request.V, WireVersion)
	}
	inputs, err := apcore.DecodeObject(request.Inputs)
	if err != nil {
		return nil, newError(apcore.CodeInvalidInput, "inputs of module %q: %w", request.ModuleID, err)
	}
	if _, brought := inputs[apcore.ApprovalTokenKey]; brought {
		return nil, newError(CodeTokenRefused, "inputs of module %q bring their own %s", request.ModuleID, apcore.ApprovalTokenKey)
	}
	caller, err := i.readContext(ctx, request)
	if err != nil {
		return nil, err
	}
	call := &prepared{inputs: inputs, context: caller}
	if err := i.guardAttempt(request, attempt); err != nil {
		return nil, err
	}
	if err := i.checkBuild(request); err != nil {
		return nil, err
	}
	if err := i.redeem(request, call); err != nil {
		return nil, err
	}
	if err := i.approveNested(request); err != nil {
		return nil, err
	}
	if i.opts.TraceParent != nil {
		call.context.ContinueTrace(i.opts.TraceParent(ctx))
	}
	call.context.Data().Set(IdempotencyKey, keyOf(request))
	call.context.Data().Set(AttemptKey, attempt)
	call.invocation = &invocation{invoker: i, request: request, target: i.target(request.ModuleID), depth: call.context.Depth() + 1}
	return call, nil
}

// asks reports whether a call without a decision certainly ends at the gate of
// this worker: the module needs approval here and the handler is the one that
// always sends such a call back. A module that is not here cannot run either.
func (i *Invoker) asks(request CallRequest) bool {
	if i.definition(request) == nil {
		return true
	}
	_, ours := i.executor.ApprovalHandler().(*ApprovalHandler)
	return ours && i.executor.VersionNeedsApproval(i.target(request.ModuleID), i.hint(request)) && i.executor.ApprovalGateWired()
}

// hint says which version a request wants. A resumed call without a wish runs the
// version that was approved, if this worker has it.
func (i *Invoker) hint(request CallRequest) string {
	if request.VersionHint != "" || request.Grant == nil {
		return request.VersionHint
	}
	approved := request.Grant.Module.Version
	if _, _, err := i.executor.Registry().Resolve(i.target(request.ModuleID), approved); err != nil {
		return ""
	}
	return approved
}

// definition describes the version that a request runs, nil if it is not here.
func (i *Invoker) definition(request CallRequest) *apcore.Descriptor {
	_, definition, err := i.executor.Registry().Resolve(i.target(request.ModuleID), i.hint(request))
	if err != nil {
		return nil
	}
	return definition
}

// guardAttempt refuses to repeat what may have had its effect, whatever the
// engine's schedule says.
func (i *Invoker) guardAttempt(request CallRequest, attempt int) error {
	if attempt <= 1 || request.AcceptRepeatedEffects || request.Ask {
		return nil
	}
	definition := i.definition(request)
	if definition == nil || ClassOf(&definition.Annotations).Repeats() {
		return nil
	}
	return OutcomeUnknown(request, "an earlier attempt may have run, and the module is neither readonly nor idempotent")
}

func keyOf(request CallRequest) string {
	if request.IdempotencyKey != "" {
		return request.IdempotencyKey
	}
	return request.CallID
}

func (i *Invoker) approvalTimeout(request CallRequest) time.Duration {
	switch {
	case request.ApprovalTimeoutMS < 0:
		return NoDeadline
	case request.ApprovalTimeoutMS > 0:
		return time.Duration(request.ApprovalTimeoutMS) * time.Millisecond
	default:
		return i.opts.ApprovalTimeout
	}
}

// classify decides what an executor's error means for the call.
func (i *Invoker) classify(request CallRequest, outcome *apcore.Outcome, err error) *Failure {
	e := apcore.AsError(err)
	if e == nil {
		e = apcore.NewError(apcore.CodeInternal, "module %q failed: %w", request.ModuleID, err)
	}
	ownNotFound := e.Code == apcore.CodeModuleNotFound && !outcome.Started && outcome.Module.ID == ""
	failure := &Failure{Err: e, NotStarted: !outcome.Started, Retry: repeats(e, ownNotFound), RetryAfter: min(e.RetryAfter(), DefaultMaxRetryAfter)}
	if outcome.Module.ID == "" || ClassOf(&outcome.Annotations).Repeats() || !outcome.Started {
		return failure
	}
	if lost(e) {
		failure.Err = OutcomeUnknown(request, "it ended with "+string(e.Code)+" while the module was running").WithCause(e)
	}
	if !request.AcceptRepeatedEffects {
		failure.Retry = false
	}
	return failure
}

// lost reports whether the call returned while its module was still at work.
func lost(e *apcore.Error) bool { return e.Code == apcore.CodeModuleTimeout }

// DefaultMaxRetryAfter caps the wait that a module may ask for.
const DefaultMaxRetryAfter = 10 * time.Minute

func (i *Invoker) completed(request CallRequest, outcome *apcore.Outcome, data map[string][]byte) (*CallResult, error) {
	output, err := apcore.EncodeJSON(outcome.Output)
	if err != nil {
		return nil, &Failure{Err: apcore.AsError(err)}
	}
	if err := i.checkSizes(request.ModuleID, output, data); err != nil {
		return nil, &Failure{Err: apcore.AsError(err)}
	}
	result := &CallResult{V: WireVersion, Status: StatusCompleted, Output: output, Module: outcome.Module}
	result.setData(data)
	i.noteChanges(request, result)
	return result, nil
}
