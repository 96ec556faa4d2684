package apcore

import (
	"context"
	"slices"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// run is one pass through the pipeline.
type run struct {
	executor *Executor
	moduleID string
	hint     string
	caller   *Context
	given    map[string]any // the inputs before middleware
	inputs   map[string]any
	outcome  *Outcome

	entry    *registration
	callee   *Context
	release  func()
	aclAsks  bool
	approved string // digest of the inputs an approver has seen
	chain    []Middleware
	entered  []Middleware
	output   map[string]any

	access   AccessControl
	approval ApprovalHandler
	policy   *ExecutionPolicy
	strategy *Strategy
	trace    *PipelineTrace
	until    func(step string, p *Pipeline) bool
	dryRun   bool
	ended    bool            // by until
	inner    context.Context // carries the callee
	failure  error           // what error hooks were told
}

func newRun(e *Executor, caller *Context, request Request, inputs map[string]any, outcome *Outcome) *run {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return &run{
		executor: e, moduleID: request.ModuleID, hint: request.VersionHint,
		caller: caller, given: inputs, inputs: inputs, outcome: outcome, chain: e.middleware, release: func() {},
		access: e.access, approval: e.approval, policy: e.policy, strategy: e.strategy, trace: request.trace, until: request.Until,
	}
}

// contained is run in a goroutine of its own, so that a hook which ends its
// goroutine ends the call with an error and not the caller.
func (r *run) contained(ctx context.Context) (output map[string]any, retry *RetrySignal, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer recoverTo(&err, "the pipeline")
		finished := false
		defer func() {
			if !finished {
				err = r.enrich(NewError(CodeInternal, "a hook or handler of module %q ended its goroutine", r.moduleID).WithRetryable(new(false)))
			}
		}()
		output, retry, err = r.run(ctx)
		finished = true
	}()
	<-done
	return output, retry, err
}

// run takes the steps; a failure is enriched (§8.3) and offered to the entered
// middleware. The context of a step carries the callee and ends with its token
// only inside the module, so that hooks outlive the timer.
func (r *run) run(ctx context.Context) (output map[string]any, retry *RetrySignal, err error) {
	defer r.finish(ctx)
	if err := r.walk(ctx, 0, len(r.strategy.steps)); err != nil {
		return r.fail(r.within(ctx), err)
	}
	return r.output, nil, nil
}

func (r *run) createContext(ctx context.Context) error {
	if err := r.caller.bind(r.executor); err != nil {
		return err
	}
	callee := r.caller.Child(r.moduleID)
	if callee.services == nil {
		callee.services = r.executor.services
	}
	if callee.deadline.IsZero() && r.executor.globalTimeout != NoTimeout {
		callee.deadline = time.Now().Add(r.executor.globalTimeout)
	}
	callee.token, r.release = linkedToken(ctx, r.caller.token)
	r.callee = callee
	return nil
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
	entry, err := r.executor.registry.pick(r.moduleID, r.hint)
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
	r.redactInputs()
	return nil
}

func (r *run) redactInputs() {
	r.callee.redactedInputs = r.executor.redactor.Redact(r.inputs, r.entry.descriptor.InputSchema)
	delete(r.callee.redactedInputs, ApprovalTokenKey)
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
		if r.inputs, err = jsonvalue.CloneObject(replaced); err != nil {
			return NewError(CodeInternal, "middleware %s returned inputs that are no JSON: %w", typeName(middleware), err)
		}
	}
	return nil
}

func (r *run) call() *MiddlewareCall {
	return &MiddlewareCall{ModuleID: r.moduleID, Inputs: r.inputs, Context: r.callee, entry: r.entry}
}

func (r *run) validateInputs(context.Context) error {
	if len(r.entered) > 0 {
		if err := r.unchangedSinceApproval(); err != nil {
			return err
		}
		r.redactInputs()
	}
	if items := r.entry.input.Validate(r.inputs); len(items) > 0 {
		return schemaError("inputs", items)
	}
	return nil
}

func (r *run) validateOutput(context.Context) error {
	output, err := jsonvalue.CloneObject(r.output)
	if err != nil {
		return NewError(CodeModuleExecuteError, "the output of module %q is no JSON object: %w", r.moduleID, err).WithRetryable(new(false))
	}
	r.output = output
	if items := r.entry.output.Validate(output); len(items) > 0 {
		return schemaError("output", items)
	}
	r.callee.redactedOutput = r.executor.redactor.Redact(output, r.entry.descriptor.OutputSchema)
	return nil
}

func (r *run) middlewareAfter(ctx context.Context) error {
	for _, middleware := range slices.Backward(r.chain) {
		replaced, err := middleware.After(ctx, r.call(), r.output)
		if err != nil {
			return err
		}
		if replaced != nil {
			r.output = replaced
		}
	}
	return nil
}

func (r *run) returnResult(context.Context) error { return nil }

func (e *Executor) warnOnce(key, message string, args ...any) {
	if _, seen := e.warned.LoadOrStore(key, true); !seen {
		e.logger.Warn(message, args...)
	}
}
