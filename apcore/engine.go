package apcore

import (
	"context"
	"errors"
	"slices"
	"time"
)

// StepMiddleware surrounds the steps of a pipeline (apcore §5.16). Hooks observe;
// only OnStepError can change what happens. It opens no gate, though, and brings
// no cancelled call back: such failures stay.
type StepMiddleware interface {
	// BeforeStep runs in the order of registration. A failure is terminal.
	BeforeStep(ctx context.Context, step string, p *Pipeline) error
	// AfterStep runs in reverse order after a step that ended well or was
	// recovered.
	AfterStep(ctx context.Context, step string, p *Pipeline)
	// OnStepError runs in reverse order; the first output that is not nil becomes
	// the call's output so far and the pipeline goes on.
	OnStepError(ctx context.Context, step string, p *Pipeline, err error) (output map[string]any, recovered bool)
}

// walk takes the steps from one index to another, exclusive.
func (r *run) walk(ctx context.Context, from, to int) error {
	for at := from; at < to; at++ {
		step := r.strategy.steps[at]
		if reason := r.skips(step); reason != "" {
			r.trace.skip(step.Name, reason)
			continue
		}
		inner := ctx
		if !r.quiet {
			inner = r.within(ctx)
		}
		result, err := r.take(inner, step)
		if err != nil {
			return err
		}
		if at, err = r.next(at, step, result); err != nil {
			return err
		}
		if r.until != nil && r.until(step.Name, r.pipeline()) {
			r.ended = true
			return nil
		}
	}
	return nil
}

// within gives steps the callee's context once there is one.
func (r *run) within(ctx context.Context) context.Context {
	if r.callee == nil {
		return ctx
	}
	if r.inner == nil {
		r.inner = intoContext(ctx, r.callee)
	}
	return r.inner
}

func (r *run) skips(step *Step) (reason string) {
	if len(step.MatchModules) > 0 && !slices.ContainsFunc(step.MatchModules, func(p string) bool { return MatchPattern(p, r.moduleID) }) {
		return "no_match"
	}
	if r.dryRun && !step.Pure {
		return "dry_run"
	}
	return ""
}

// take runs one step between its hooks.
func (r *run) take(ctx context.Context, step *Step) (StepResult, error) {
	begin := r.trace.begin()
	entered := 0
	for _, hook := range r.strategy.middleware {
		entered++
		if err := r.beforeStep(ctx, hook, step); err != nil {
			r.trace.end(step.Name, begin, StepResult{}, "")
			r.observe(entered, func(m StepMiddleware) { m.OnStepError(ctx, step.Name, r.pipeline(), err) })
			return StepResult{}, err
		}
	}
	result, err := r.body(ctx, step)
	reason := ""
	if err != nil {
		if result, reason, err = r.rescue(ctx, step, entered, err); err != nil {
			r.trace.end(step.Name, begin, result, "")
			return result, err
		}
	}
	r.observe(entered, func(m StepMiddleware) { m.AfterStep(ctx, step.Name, r.pipeline()) })
	r.trace.end(step.Name, begin, result, reason)
	return result, nil
}

func (r *run) beforeStep(ctx context.Context, hook StepMiddleware, step *Step) (err error) {
	defer recoverTo(&err, "step middleware")
	return hook.BeforeStep(ctx, step.Name, r.pipeline())
}

// observe calls the entered hooks in reverse; a panic in one is logged.
func (r *run) observe(entered int, call func(StepMiddleware)) {
	for _, hook := range slices.Backward(r.strategy.middleware[:entered]) {
		r.guarded(func() { call(hook) })
	}
}

func (r *run) guarded(do func()) {
	var err error
	defer func() {
		if err != nil {
			r.executor.logger.Error("apcore: step middleware failed", "module_id", r.moduleID, "error", err.Error())
		}
	}()
	defer recoverTo(&err, "step middleware")
	do()
}

// rescue offers a failed step's error to the hooks, then to IgnoreErrors. Nobody
// opens a gate or brings a cancelled call back; the hooks are told all the same.
func (r *run) rescue(ctx context.Context, step *Step, entered int, failure error) (StepResult, string, error) {
	final := isGate(step.Name) || CodeOf(failure) == CodeExecutionCancelled
	for _, hook := range slices.Backward(r.strategy.middleware[:entered]) {
		recovered := false
		r.guarded(func() {
			var output map[string]any
			if output, recovered = hook.OnStepError(ctx, step.Name, r.pipeline(), failure); recovered && output != nil && !final {
				r.setOutput(output)
			}
		})
		if recovered && !final {
			return StepResult{}, "error_recovered", nil
		}
	}
	if step.IgnoreErrors && !final {
		r.executor.logger.Warn("apcore: a step failed and its error is ignored", "module_id", r.moduleID, "step", step.Name, "error", r.hide(failure).Error())
		return StepResult{}, "error_ignored", nil
	}
	return StepResult{}, "", failure
}

func isGate(name string) bool { return name == stepACL || name == stepApproval }

// body runs a step under its own timeout; a panic in it is a failure, never a
// pass.
func (r *run) body(ctx context.Context, step *Step) (result StepResult, err error) {
	if step.Timeout <= 0 {
		defer recoverStep(&err, step)
		return step.Run(ctx, r.pipeline())
	}
	bounded, cancel := context.WithTimeoutCause(ctx, step.Timeout, errStepTimeout)
	defer cancel()
	if step.waits() {
		return r.apart(bounded, step)
	}
	func() {
		defer recoverStep(&err, step)
		result, err = step.Run(bounded, r.pipeline())
	}()
	if context.Cause(bounded) == errStepTimeout { //nolint:errorlint // a cause of ours, never wrapped
		return StepResult{}, r.stepTimeout(step)
	}
	return result, err
}

// errStepTimeout tells a step's own timeout from the end of its caller.
var errStepTimeout = errors.New("timeout of a step")

func (r *run) stepTimeout(step *Step) *Error {
	return r.timeoutError(step.Timeout).WithDetail("step", step.Name)
}

func recoverStep(err *error, step *Step) {
	if cause := recover(); cause != nil {
		*err = panicked("step "+step.Name, cause)
	}
}

// next follows a step's wish; it returns the index of the step just done.
func (r *run) next(at int, step *Step, result StepResult) (int, error) {
	switch result.Action {
	case "", StepContinue:
		return at, nil
	case StepAbort:
		return at, NewError(CodePipelineAbort, "step %q ended the call of module %q%s", step.Name, r.moduleID, suffix(result.Explanation))
	}
	target, known := r.strategy.index[result.SkipTo]
	if !known || target <= at {
		return at, NewError(CodeStepNotFound, "step %q wants to go on with %q, which is no later step", step.Name, result.SkipTo)
	}
	for _, skipped := range r.strategy.steps[at+1 : target] {
		r.trace.skip(skipped.Name, "skipped")
	}
	return target - 1, nil
}

// PipelineTrace tells how a call went through the steps (§4.8). It stays in this
// process.
type PipelineTrace struct {
	ModuleID     string
	StrategyName string
	Steps        []StepTrace
	Duration     time.Duration
	Success      bool
}

// StepTrace is one step of a [PipelineTrace].
type StepTrace struct {
	Name     string
	Duration time.Duration
	Result   StepResult
	Skipped  bool
	// DecisionPoint is set when the step did more than go on: it skipped, ended the
	// call, or gave its confidence or alternatives.
	DecisionPoint bool
	// SkipReason is no_match, dry_run, skipped, error_ignored or error_recovered.
	SkipReason string
}

// skip, begin and end do nothing on nil, which is a call that nobody traces.
func (t *PipelineTrace) skip(name, reason string) {
	if t != nil {
		t.Steps = append(t.Steps, StepTrace{Name: name, Skipped: true, SkipReason: reason})
	}
}

// clean takes secrets out of what steps said.
func (t *PipelineTrace) clean(c *cleaner) {
	for i := range t.Steps {
		result := &t.Steps[i].Result
		result.Explanation = c.text(result.Explanation)
		for j, alternative := range result.Alternatives {
			result.Alternatives[j] = c.text(alternative)
		}
	}
}

func (t *PipelineTrace) begin() time.Time {
	if t == nil {
		return time.Time{}
	}
	return time.Now()
}

func (t *PipelineTrace) end(name string, begin time.Time, result StepResult, reason string) {
	if t != nil {
		t.Steps = append(t.Steps, StepTrace{Name: name, Duration: time.Since(begin), Result: result, DecisionPoint: result.decides(), SkipReason: reason})
	}
}
