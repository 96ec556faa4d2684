package apcore

import "context"

// contained is run behind walls: a hook that panics or ends its goroutine ends
// the call with an error and not the caller. Where nobody but the module takes
// part, which has walls of its own, there is nothing to wall in and no goroutine
// to pay for.
func (r *run) contained(ctx context.Context) (output map[string]any, retry *RetrySignal, err error) {
	if r.quiet = r.isQuiet(); !r.quiet {
		return r.walled(ctx, nil)
	}
	if output, err = r.quietly(ctx); err != nil {
		return r.walled(ctx, err)
	}
	return output, nil, nil
}

// walled runs in a goroutine of its own; with a failure it only ends the run,
// for an error is the module's, and so are its methods.
func (r *run) walled(ctx context.Context, failure error) (output map[string]any, retry *RetrySignal, err error) {
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
		if failure != nil {
			defer r.finish(ctx)
			output, retry, err = r.fail(r.within(ctx), failure)
		} else {
			output, retry, err = r.run(ctx)
		}
		finished = true
	}()
	<-done
	return output, retry, err
}

// aside runs something of the application that nothing depends on, so that the
// call goes on whatever it does.
func aside(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		do()
	}()
	<-done
}

// isQuiet reports whether a call runs no code of the application but the module's
// function: no hook, handler, step or listener, no warning of a hint or a policy,
// no module that is asked for its annotations.
func (r *run) isQuiet() bool {
	found := r.executor.registry.lookup(r.moduleID)
	if found == nil {
		return false
	}
	if _, plain := found.module.(*FuncModule); !plain {
		return false
	}
	r.found = found
	return len(r.chain) == 0 && r.access == nil && r.approval == nil && r.until == nil && r.hint == "" &&
		r.policy == nil && r.strategy.builtin()
}

// quietly takes the steps; what comes after a failure is not quiet.
func (r *run) quietly(ctx context.Context) (output map[string]any, err error) {
	defer recoverTo(&err, "the pipeline")
	if err := r.walk(ctx, 0, len(r.strategy.steps)); err != nil {
		return nil, err
	}
	r.finish(ctx)
	return r.ownOutput(), nil
}

// builtin reports whether a strategy has the standard's own steps only, none
// with a failure to be ignored or a time of its own.
func (s *Strategy) builtin() bool {
	if len(s.middleware) > 0 {
		return false
	}
	for _, step := range s.steps {
		if !step.builtin || step.IgnoreErrors || step.Timeout != 0 {
			return false
		}
	}
	return true
}
