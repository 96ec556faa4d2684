package apcore

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// Defaults of [ExecutorOptions] (§11.6).
const (
	DefaultModuleTimeout   = 30 * time.Second
	DefaultGlobalTimeout   = 60 * time.Second
	DefaultMaxCallDepth    = 32
	DefaultMaxModuleRepeat = 3
)

// Bounds of the limits (§4.3).
const (
	maxCallDepthBound    = 1000
	maxModuleRepeatBound = 100
)

// Executor runs module calls through the eleven steps of the standard (apcore
// §5.16, [StepNames]). It remembers nothing between calls. All methods may be
// called concurrently; changes affect later calls only.
type Executor struct {
	registry *Registry
	redactor *Redactor
	services any
	onEvent  func(Event)
	logger   *slog.Logger

	defaultTimeout, globalTimeout time.Duration
	maxDepth, maxRepeat           int
	allowRewrite                  bool
	strategy                      *Strategy

	parts    atomic.Pointer[parts] // read without a lock by every call
	disabled sync.Map              // module id -> reason

	mu         sync.RWMutex // held by those who change parts or strategies
	strategies []*Strategy  // registered ones

	warned sync.Map // one warning per module and kind
}

// parts are what may be exchanged between calls. A call takes them once; they are
// immutable.
type parts struct {
	access     AccessControl
	approval   ApprovalHandler
	policy     *ExecutionPolicy
	middleware []Middleware
}

// change exchanges parts for later calls.
func (e *Executor) change(how func(*parts)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := *e.parts.Load()
	how(&next)
	e.parts.Store(&next)
}

// ExecutorOptions configures an [Executor]. The zero value runs every module
// without access rules, approval or middleware, with the standard's limits.
type ExecutorOptions struct {
	// AccessControl decides who may call what; nil lets every call pass.
	AccessControl AccessControl
	// ApprovalHandler answers the approval gate. nil, or a nil pointer in it,
	// means there is none: calls that need approval pass with one warning per
	// module, unless Policy.Strict denies them.
	ApprovalHandler ApprovalHandler
	// Policy overrides what modules say about approval; nil changes nothing.
	Policy *ExecutionPolicy
	// Middleware is added in this order, see [Executor.Use].
	Middleware []Middleware
	// DefaultTimeout is the timer of modules without their own: zero means 30 s,
	// NoTimeout none.
	DefaultTimeout time.Duration
	// GlobalTimeout bounds a call tree: zero means 60 s, NoTimeout nothing.
	GlobalTimeout time.Duration
	// MaxCallDepth bounds the call chain, 1 to 1000; zero means 32.
	MaxCallDepth int
	// MaxModuleRepeat bounds direct recursion, 1 to 100; zero means 3.
	MaxModuleRepeat int
	// RewriteAfterApproval lets middleware change inputs that an approver has
	// decided about. By default such a call is denied, for nobody approved what
	// would run.
	RewriteAfterApproval bool
	// Strategy is the order of steps; nil means the preset standard. The executor
	// takes a copy.
	Strategy *Strategy
	// Redaction says what is secret; the zero value uses the standard's keys.
	Redaction RedactionConfig
	// Services is given to contexts that carry none.
	Services any
	// OnEvent takes events; it must return soon. nil drops them.
	OnEvent func(Event)
	// Logger takes warnings; nil means slog.Default().
	Logger *slog.Logger
}

// NewExecutor makes an executor over a registry. Options out of bounds fail
// with GENERAL_INVALID_INPUT naming field, value and bound; a redaction pattern
// that does not compile with CONFIG_INVALID.
func NewExecutor(registry *Registry, opts ExecutorOptions) (*Executor, error) {
	if registry == nil {
		return nil, NewError(CodeInvalidInput, "an executor needs a registry")
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	redactor, err := NewRedactor(opts.Redaction)
	if err != nil {
		return nil, err
	}
	e := &Executor{
		registry: registry, redactor: redactor,
		services: opts.Services, onEvent: opts.OnEvent, logger: loggerOr(opts.Logger),
		defaultTimeout: timeoutOr(opts.DefaultTimeout, DefaultModuleTimeout),
		globalTimeout:  timeoutOr(opts.GlobalTimeout, DefaultGlobalTimeout),
		maxDepth:       intOr(opts.MaxCallDepth, DefaultMaxCallDepth),
		maxRepeat:      intOr(opts.MaxModuleRepeat, DefaultMaxModuleRepeat),
		allowRewrite:   opts.RewriteAfterApproval,
	}
	e.parts.Store(&parts{policy: opts.Policy})
	if e.strategy, err = strategyOr(opts.Strategy); err != nil {
		return nil, err
	}
	e.SetAccessControl(opts.AccessControl)
	e.SetApprovalHandler(opts.ApprovalHandler)
	for _, middleware := range opts.Middleware {
		if err := e.Use(middleware); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (o *ExecutorOptions) validate() error {
	for name, value := range map[string]time.Duration{"DefaultTimeout": o.DefaultTimeout, "GlobalTimeout": o.GlobalTimeout} {
		if value < 0 && value != NoTimeout {
			return NewError(CodeInvalidInput, "ExecutorOptions.%s is %v: give zero for the default, NoTimeout for none or a positive one", name, value)
		}
	}
	if o.MaxCallDepth < 0 || o.MaxCallDepth > maxCallDepthBound {
		return NewError(CodeInvalidInput, "ExecutorOptions.MaxCallDepth is %d: give 1 to 1000, or zero for %d", o.MaxCallDepth, DefaultMaxCallDepth)
	}
	if o.MaxModuleRepeat < 0 || o.MaxModuleRepeat > maxModuleRepeatBound {
		return NewError(CodeInvalidInput, "ExecutorOptions.MaxModuleRepeat is %d: give 1 to 100, or zero for %d", o.MaxModuleRepeat, DefaultMaxModuleRepeat)
	}
	return o.Policy.validate()
}

// Registry returns the registry the executor runs from.
func (e *Executor) Registry() *Registry { return e.registry }

// HasApprovalHandler reports whether anybody answers the approval gate.
func (e *Executor) HasApprovalHandler() bool { return e.ApprovalHandler() != nil }

// ApprovalHandler returns who answers the approval gate, nil if nobody does.
func (e *Executor) ApprovalHandler() ApprovalHandler { return e.parts.Load().approval }

// SetApprovalHandler changes who answers the approval gate of later calls; nil,
// or a nil pointer in it, means nobody.
func (e *Executor) SetApprovalHandler(handler ApprovalHandler) {
	if isNil(handler) {
		handler = nil
	}
	e.change(func(p *parts) { p.approval = handler })
}

// SetAccessControl changes who decides about access of later calls; nil, or a nil
// pointer in it, lets every call pass.
func (e *Executor) SetAccessControl(access AccessControl) {
	if isNil(access) {
		access = nil
	}
	e.change(func(p *parts) { p.access = access })
}

// SetPolicy changes the execution policy of later calls; nil means none. It fails
// with GENERAL_INVALID_INPUT for a rule without a pattern. The policy must not be
// changed afterwards.
func (e *Executor) SetPolicy(policy *ExecutionPolicy) error {
	if err := policy.validate(); err != nil {
		return err
	}
	e.change(func(p *parts) { p.policy = policy })
	return nil
}

func (e *Executor) executionPolicy() *ExecutionPolicy {
	return e.parts.Load().policy
}

// accessControl is who decides now.
func (e *Executor) accessControl() AccessControl { return e.parts.Load().access }

// ApprovalGateWired reports whether the standard's own approval gate is in the
// pipeline: without it nobody is asked, whatever modules need.
func (e *Executor) ApprovalGateWired() bool { return e.strategy.wired(stepApproval) }

// NeedsApproval reports whether a call of any version of the module would need
// approval by its annotations and the policy; access rules may demand it on top.
// An unknown module needs none.
func (e *Executor) NeedsApproval(moduleID string) bool {
	return slices.ContainsFunc(e.registry.all(moduleID), e.demandsApproval)
}

// VersionNeedsApproval is [Executor.NeedsApproval] for the version that a hint
// asks for, see [Registry.Resolve].
func (e *Executor) VersionNeedsApproval(moduleID, hint string) bool {
	entry, err := e.registry.pick(moduleID, hint)
	return err == nil && e.demandsApproval(entry)
}

func (e *Executor) demandsApproval(entry *registration) bool {
	annotations, err := entry.effective()
	needs, _, _ := e.executionPolicy().requirement(entry.descriptor.ID, annotations)
	return needs || err != nil // who cannot say it may well need one
}

// ModuleTimeout returns the timer of a module: its own, or else the executor's
// default; of several versions the longest. NoTimeout means none.
func (e *Executor) ModuleTimeout(moduleID string) time.Duration {
	longest := time.Duration(0)
	for _, entry := range e.registry.all(moduleID) {
		timeout := timeoutOr(entry.descriptor.Timeout, e.defaultTimeout)
		if timeout == NoTimeout {
			return NoTimeout
		}
		longest = max(longest, timeout)
	}
	return timeoutOr(longest, e.defaultTimeout)
}

// Redactor returns the executor's redactor.
func (e *Executor) Redactor() *Redactor { return e.redactor }

// Request is one call.
type Request struct {
	ModuleID string
	// Inputs are copied; nil means {}.
	Inputs map[string]any
	// Context is the caller's own context, not one derived for the target; nil
	// means a fresh one.
	Context *Context
	// VersionHint asks for a version, see [Registry.Resolve]; empty means the
	// latest.
	VersionHint string
	// Until is asked after each completed step; true ends the call there, with
	// the output so far. nil runs to the end.
	Until func(step string, p *Pipeline) bool
	// Strategy names a strategy of [Executor.RegisterStrategy] for this call; empty
	// means the executor's own. An unknown name fails with STRATEGY_NOT_FOUND. One
	// without gates lets the call pass unasked: never take the name from a caller.
	Strategy string

	trace *PipelineTrace
}

// Outcome is what [Executor.Do] knows after a call, failed ones included.
type Outcome struct {
	// Output is the module's result, nil when the call failed.
	Output map[string]any
	// Context is the callee's context, nil when the call failed before step 1. Its
	// cancel token is the caller's or else a fresh one, for the callee's own ended
	// with the call.
	Context *Context
	// Module says what ran; its ID is empty when no module was found.
	Module ModuleRef
	// Annotations of that module, effective.
	Annotations Annotations
	// Description of that module.
	Description string
	// Started reports whether step "execute" handed the inputs to the module, so
	// that an effect may have happened. It stays set over a retry.
	Started bool
}

// Call runs one module and returns its output. c is the caller's own context,
// nil for a fresh one. Errors carry a code, see [CodeOf]; a pending approval is
// an [ApprovalError] to resume by calling again with [ApprovalTokenKey].
func (e *Executor) Call(ctx context.Context, moduleID string, inputs map[string]any, c *Context) (map[string]any, error) {
	outcome := &Outcome{}
	_, err := e.do(ctx, Request{ModuleID: moduleID, Inputs: inputs, Context: c}, outcome)
	return outcome.Output, err
}

// Do is [Executor.Call] with the whole outcome, which is never nil.
func (e *Executor) Do(ctx context.Context, request Request) (*Outcome, error) {
	outcome := &Outcome{}
	last, err := e.do(ctx, request, outcome)
	if last != nil {
		outcome.Context = last.lasting()
	}
	return outcome, err
}

// do fills an outcome but for its context, which the last run knows.
func (e *Executor) do(ctx context.Context, request Request, outcome *Outcome) (last *run, err error) {
	if err := ValidateModuleID(request.ModuleID); err != nil {
		return nil, err
	}
	caller := request.Context
	if caller == nil {
		caller = NewContext(ContextOptions{Logger: e.logger})
	}
	strategy, err := e.strategyNamed(request.Strategy)
	if err != nil {
		return nil, err
	}
	inputs, err := jsonvalue.CloneObject(request.Inputs)
	if err != nil {
		return nil, NewError(CodeInvalidInput, "inputs of module %q are no JSON object: %w", request.ModuleID, err).
			WithDetail("module_id", request.ModuleID)
	}
	var deadline time.Time
	for {
		if request.trace != nil {
			request.trace.Steps = nil
		}
		r := newRun(e, caller, request, inputs, outcome)
		r.strategy, r.deadline = strategy, deadline
		output, retry, err := r.contained(ctx)
		if retry == nil {
			outcome.Output = output
			return r, err
		}
		deadline = r.deadline
		if inputs, err = jsonvalue.CloneObject(retry.Inputs); err != nil {
			return r, retryFault(request.ModuleID, err)
		}
	}
}

// Call invokes another module from inside a module, with the running call's
// context and executor, and reads the output as Out. Nil inputs mean {}. Outside
// a call it fails with CONTEXT_BINDING_ERROR.
func Call[Out any](ctx context.Context, moduleID string, inputs any) (Out, error) {
	var out Out
	c, ok := FromContext(ctx)
	if !ok || c.Executor() == nil {
		return out, NewError(CodeContextBinding, "module %q can be called so only from inside a module: use Executor.Call", moduleID)
	}
	data, err := EncodeJSON(inputs)
	if err != nil {
		return out, err
	}
	object := map[string]any{}
	if string(data) != "null" {
		if object, err = DecodeObject(data); err != nil {
			return out, err
		}
	}
	output, err := c.Executor().Call(ctx, moduleID, object, c)
	if err != nil {
		return out, err
	}
	if err := convert(output, &out); err != nil {
		return out, NewError(CodeInvalidInput, "output of module %q does not fit %T", moduleID, out).WithDetail("module_id", moduleID)
	}
	return out, nil
}

// CallWithTrace is [Executor.Call] with the way the call took through the steps.
// The trace is never nil; of a call that was retried it tells the last run.
func (e *Executor) CallWithTrace(ctx context.Context, moduleID string, inputs map[string]any, c *Context) (map[string]any, *PipelineTrace, error) {
	trace := &PipelineTrace{ModuleID: moduleID, StrategyName: e.strategy.name}
	begin := time.Now()
	outcome, err := e.Do(ctx, Request{ModuleID: moduleID, Inputs: inputs, Context: c, trace: trace})
	trace.Duration, trace.Success = time.Since(begin), err == nil
	return outcome.Output, trace, err
}

func timeoutOr(value, fallback time.Duration) time.Duration {
	if value == 0 {
		return fallback
	}
	return value
}

func intOr(value, fallback int) int {
	if value == 0 {
		return fallback
	}
	return value
}
