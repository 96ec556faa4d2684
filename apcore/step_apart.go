package apcore

import (
	"context"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// waits reports whether a step may wait for something that does not end with its
// ctx: people, or code of the application. The other steps of the standard are
// short, or, as execute, watch their ctx themselves; hooks are never interrupted.
func (s *Step) waits() bool { return !s.builtin || isGate(s.Name) }

// apart runs a step in a goroutine of its own, so that the call goes on at the
// step's timeout whatever the step does (D-142). It works on a copy of the run,
// which is taken over when it is in time and forgotten when it is late.
func (r *run) apart(ctx context.Context, step *Step) (StepResult, error) {
	inputs, err := jsonvalue.CloneObject(r.inputs)
	if err != nil {
		return StepResult{}, NewError(CodeInternal, "the inputs of module %q before step %q are no JSON: %w", r.moduleID, step.Name, err)
	}
	work, outcome := *r, *r.outcome
	work.inputs, work.outcome = inputs, &outcome
	ended := make(chan struct{})
	var result StepResult
	failure := error(NewError(CodeInternal, "step %s ended its goroutine", step.Name).WithRetryable(new(false)))
	go func() {
		defer close(ended)
		defer recoverTo(&failure, "step "+step.Name)
		result, failure = step.Run(ctx, &Pipeline{&work})
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		return StepResult{}, r.interruptedStep(ctx, step)
	}
	if ctx.Err() != nil && failure != nil {
		return StepResult{}, r.interruptedStep(ctx, step)
	}
	*r.outcome = outcome
	work.outcome = r.outcome
	*r = work
	return result, failure
}

// interruptedStep tells the step's timeout from the end of the caller.
func (r *run) interruptedStep(ctx context.Context, step *Step) error {
	if context.Cause(ctx) == errStepTimeout { //nolint:errorlint // a cause of ours, never wrapped
		return r.stepTimeout(step)
	}
	return ctx.Err()
}
