package apcore

import (
	"context"
	"slices"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// equipment is what every run needs, as one piece of memory.
type equipment struct {
	run            run
	callee         Context
	token          CancelToken
	inputs, output capture
	carrier        carrier // gives the module the callee
}

// run is one pass through the pipeline.
type run struct {
	own      *equipment
	executor *Executor
	moduleID string
	hint     string
	caller   *Context
	given    map[string]any // the inputs before middleware
	inputs   map[string]any
	outcome  *Outcome

	entry    *registration
	callee   *Context
	token    *CancelToken // the callee's, nil before step 1
	aclAsks  bool
	approved string // digest of the inputs an approver has seen
	chain    []Middleware
	entered  []Middleware
	output   map[string]any

	inputsCaptured, outputCaptured bool // the redacted form is still to be made of them
	lent                           bool // a step of the application may hold the inputs
	fresh                          bool // the output is JSON and nobody else's

	access   AccessControl
	approval ApprovalHandler
	policy   *ExecutionPolicy
	strategy *Strategy
	trace    *PipelineTrace
	quiet    bool          // nobody but the module takes part
	found    *registration // what a quiet call runs
	until    func(step string, p *Pipeline) bool
	dryRun   bool
	ended    bool            // by until
	deadline time.Time       // of the call tree, the same for every run of a call that is retried
	inner    context.Context // carries the callee
	failure  error           // what error hooks were told
	handle   Pipeline        // what steps are given
}

func (r *run) pipeline() *Pipeline {
	r.handle.run = r
	return &r.handle
}

func (r *run) setOutput(output map[string]any) {
	r.output, r.outputCaptured, r.fresh = output, false, false
}

func newRun(e *Executor, caller *Context, request Request, inputs map[string]any, outcome *Outcome) *run {
	parts := e.parts.Load()
	f := &equipment{}
	f.run = run{
		own: f, executor: e, moduleID: request.ModuleID, hint: request.VersionHint,
		caller: caller, given: inputs, inputs: inputs, outcome: outcome, chain: parts.middleware,
		access: parts.access, approval: parts.approval, policy: parts.policy, strategy: e.strategy, trace: request.trace, until: request.Until,
	}
	return &f.run
}

// run takes the steps; a failure is enriched (§8.3) and offered to the entered
// middleware. The context of a step carries the callee and ends with its token
// only inside the module, so that hooks outlive the timer.
func (r *run) run(ctx context.Context) (output map[string]any, retry *RetrySignal, err error) {
	defer r.finish(ctx)
	if err := r.walk(ctx, 0, len(r.strategy.steps)); err != nil {
		return r.fail(r.within(ctx), err)
	}
	return r.ownOutput(), nil, nil
}

func (r *run) createContext(ctx context.Context) error {
	if err := r.caller.bind(r.executor); err != nil {
		return err
	}
	callee := &r.own.callee
	r.caller.derive(callee, r.moduleID)
	if callee.services == nil {
		callee.services = r.executor.services
	}
	if callee.deadline.IsZero() {
		callee.deadline = r.treeDeadline()
	}
	r.token = &r.own.token
	r.token.link(ctx, r.caller.token)
	callee.token, r.callee = r.token, callee
	return nil
}

// treeDeadline is what the executor gives a call tree that has no deadline. A
// retry belongs to the same tree, so it gets no fresh one.
func (r *run) treeDeadline() time.Time {
	if r.deadline.IsZero() && r.executor.globalTimeout != NoTimeout {
		r.deadline = time.Now().Add(r.executor.globalTimeout)
	}
	return r.deadline
}

// lasting is the callee's context as it may be used after the call.
func (r *run) lasting() *Context {
	if r.callee == nil {
		return nil
	}
	token := r.caller.token
	if token == nil {
		token = NewCancelToken()
	}
	return r.callee.WithCancelToken(token)
}

func (r *run) guardCallChain(ctx context.Context) error {
	if err := r.interrupted(ctx); err != nil {
		return err
	}
	return GuardCallChain(r.moduleID, r.callee.chain, r.executor.maxDepth, r.executor.maxRepeat)
}

// interrupted answers for a call whose token has ended: by its caller's
// deadline or by cancellation.
func (r *run) interrupted(ctx context.Context) error {
	if ctx.Err() == context.DeadlineExceeded {
		return r.timeoutError(0).WithCause(context.DeadlineExceeded)
	}
	return r.callee.token.Check()
}

func (r *run) lookUpModule(context.Context) error {
	entry, err := r.found, error(nil)
	if !r.quiet {
		entry, err = r.executor.registry.pick(r.moduleID, r.hint)
	}
	if err != nil {
		return err
	}
	r.entry = entry
	d := &r.entry.descriptor
	annotations, err := entry.effective()
	r.outcome.Module, r.outcome.Annotations, r.outcome.Description = d.ModuleRef, annotations, d.Description
	if err != nil {
		return err
	}
	if reason, off := r.executor.Disabled(r.moduleID); off {
		return NewError(CodeModuleDisabled, "module %q is disabled%s", r.moduleID, suffix(reason)).WithDetail("module_id", r.moduleID)
	}
	r.captureInputs()
	return nil
}

func (r *run) checkAccess(ctx context.Context) error {
	if r.access == nil {
		return nil
	}
	request := AccessRequest{CallerID: r.callee.callerID, TargetID: r.moduleID, Context: r.callee, ArgumentKeys: r.argumentKeys()}
	if request.CallerID == "" {
		request.CallerID = ExternalCaller
	}
	decision, err := r.decideAccess(ctx, request)
	r.aclAsks = decision.ApprovalRequired
	if decision.Allowed && err == nil {
		return nil
	}
	if !r.dryRun {
		r.executor.emit(EventACLDenied, r.moduleID, "warn", map[string]any{
			"caller_id": request.CallerID, "reason": decision.Reason, "trace_id": r.callee.traceID,
		})
	}
	return NewError(CodeACLDenied, "access of %s to module %q is denied", request.CallerID, r.moduleID).
		WithDetail("caller_id", request.CallerID).WithDetail("target_id", r.moduleID)
}

// decideAccess treats a panic as a denial.
func (r *run) decideAccess(ctx context.Context, request AccessRequest) (decision AccessDecision, err error) {
	defer func() {
		if err != nil {
			r.executor.logger.Error("apcore: access control failed, the call is denied", "module_id", r.moduleID, "error", err.Error())
			decision = AccessDecision{Reason: "handler_error"}
		}
	}()
	defer recoverTo(&err, "access control")
	return r.access.CheckAccess(ctx, request), nil
}

func (r *run) argumentKeys() []string {
	keys := make([]string, 0, len(r.inputs))
	for key := range r.inputs {
		if key != ApprovalTokenKey {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (r *run) middlewareBefore(ctx context.Context) error {
	for _, middleware := range r.chain {
		r.entered = append(r.entered, middleware)
		replaced, err := middleware.Before(ctx, r.call())
		if err != nil {
			return err
		}
		if replaced == nil {
			continue
		}
		r.inputsCaptured, r.lent = false, false
		if r.inputs, err = jsonvalue.CloneObject(replaced); err != nil {
			return NewError(CodeInternal, "middleware %s returned inputs that are no JSON: %w", typeName(middleware), err)
		}
	}
	return nil
}

func (r *run) call() *MiddlewareCall {
	return &MiddlewareCall{ModuleID: r.moduleID, Inputs: r.ownInputs(), Context: r.callee, entry: r.entry}
}

func (r *run) validateInputs(context.Context) error {
	if len(r.entered) > 0 {
		if err := r.unchangedSinceApproval(); err != nil {
			return err
		}
		r.captureInputs()
	}
	if items := r.entry.input.Validate(r.inputs); len(items) > 0 {
		return schemaError("inputs", items)
	}
	return nil
}

func (r *run) validateOutput(context.Context) error {
	if !r.fresh {
		output, err := jsonvalue.CloneObject(r.output)
		if err != nil {
			return NewError(CodeModuleExecuteError, "the output of module %q is no JSON object: %w", r.moduleID, err).WithRetryable(new(false))
		}
		r.setOutput(output)
	}
	if items := r.entry.output.Validate(r.output); len(items) > 0 {
		return schemaError("output", items)
	}
	r.captureOutput()
	return nil
}

func (r *run) middlewareAfter(ctx context.Context) error {
	for _, middleware := range slices.Backward(r.chain) {
		replaced, err := middleware.After(ctx, r.call(), r.ownOutput())
		if err != nil {
			return err
		}
		if replaced != nil {
			r.setOutput(replaced)
		}
	}
	return nil
}

func (r *run) returnResult(context.Context) error { return nil }

func (e *Executor) warnOnce(key, message string, args ...any) {
	if _, seen := e.warned.LoadOrStore(key, true); !seen {
		aside(func() { e.logger.Warn(message, args...) })
	}
}
