package apcore

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// result is what a module's goroutine leaves behind.
type result struct {
	output map[string]any
	err    error
}

// execute is step 8: it runs the module under its timer and returns as soon as
// the timer or the token ends, whatever the module does (apcore A22, D-133).
func (r *run) execute(ctx context.Context) error {
	if err := r.interrupted(ctx); err != nil {
		return err
	}
	timeout, limited := r.timer(time.Now())
	if limited && timeout <= 0 {
		r.callee.token.cancelWith(context.DeadlineExceeded)
		return r.timeoutError(0)
	}
	inputs, err := jsonvalue.CloneObject(r.inputs)
	if err != nil {
		return NewError(CodeInternal, "a middleware left inputs of module %q that are no JSON: %w", r.moduleID, err).WithRetryable(new(false))
	}
	if !r.entry.usage.acquire() {
		return NewError(CodeModuleNotFound, "module %q is being taken out", r.moduleID).WithDetail("module_id", r.moduleID)
	}
	r.outcome.Started = true
	done := r.start(inputs)
	var expired <-chan time.Time
	if limited {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case res := <-done:
		return r.settle(res)
	case <-expired:
		r.callee.token.cancelWith(context.DeadlineExceeded)
		return r.timeoutError(timeout)
	case <-r.callee.token.Done():
		return r.afterCancel(ctx, done)
	case <-ctx.Done(): // the step's own timeout, if the token does not know yet
		r.callee.token.cancelWith(ctx.Err())
		return r.afterCancel(ctx, done)
	}
}

// start runs the module in a goroutine of its own, whose context ends with the
// call's token. The inputs are the module's alone: it may still write to them
// when the call is over and error hooks read the call's.
func (r *run) start(inputs map[string]any) <-chan result {
	ctx := intoContext(r.callee.token.context(), r.callee)
	done := make(chan result, 1)
	go func() {
		res := result{err: NewError(CodeModuleExecuteError, "module %q ended its goroutine", r.moduleID)}
		defer r.entry.usage.release()
		defer func() { done <- res }()
		defer func() {
			if cause := recover(); cause != nil {
				r.executor.logger.Error("apcore: module panicked", "module_id", r.moduleID, "panic_type", typeName(cause), "stack", string(debug.Stack()))
				res = result{err: NewError(CodeModuleExecuteError, "module %q panicked with a %s", r.moduleID, typeName(cause))}
			}
		}()
		output, err := r.entry.module.Execute(ctx, inputs, r.callee)
		res = result{output, err}
	}()
	return done
}

func (r *run) settle(res result) error {
	if res.err != nil {
		return res.err
	}
	if res.output == nil {
		return NewError(CodeModuleExecuteError, "module %q returned nothing: return an object, {} if there is nothing to say", r.moduleID).WithRetryable(new(false))
	}
	r.output = res.output
	return nil
}

// afterCancel keeps a result that arrived together with the cancellation.
func (r *run) afterCancel(ctx context.Context, done <-chan result) error {
	select {
	case res := <-done:
		if res.err == nil {
			return r.settle(res)
		}
	default:
	}
	if err := r.interrupted(ctx); err != nil {
		return err
	}
	return errCancelled() // somebody has reset the token meanwhile
}

// timer is the smaller of the module's timer and the rest of the deadline.
func (r *run) timer(now time.Time) (timeout time.Duration, limited bool) {
	timeout = r.entry.descriptor.Timeout
	if timeout == 0 {
		timeout = r.executor.defaultTimeout
	}
	limited = timeout != NoTimeout
	if deadline, ok := r.callee.GlobalDeadline(); ok {
		if rest := deadline.Sub(now); !limited || rest < timeout {
			return rest, true
		}
	}
	return timeout, limited
}

// overdue reports whether the deadline of the call tree has passed.
func (r *run) overdue() bool {
	deadline, limited := r.callee.GlobalDeadline()
	return limited && !time.Now().Before(deadline)
}

func (r *run) timeoutError(timeout time.Duration) *Error {
	return NewError(CodeModuleTimeout, "module %q did not finish in time", r.moduleID).
		WithDetail("module_id", r.moduleID).WithDetail("timeout_ms", millis(timeout))
}
