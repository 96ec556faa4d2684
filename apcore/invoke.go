package apcore

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// invocation is one execution of a module.
type invocation interface {
	// run is the module's part: it happens in a goroutine of its own and may go on
	// after the call.
	run(ctx context.Context, c *Context) error
	// result is what run left behind, asked only after it returned nil.
	result() (map[string]any, error)
	// fresh reports whether the result is JSON and the caller's alone.
	fresh() bool
}

// moduleCall is an invocation of any module. The inputs are the module's alone:
// it may still write to them when the call is over and error hooks read the
// call's.
type moduleCall struct {
	module         Module
	inputs, output map[string]any
}

func (m *moduleCall) run(ctx context.Context, c *Context) (err error) {
	m.output, err = m.module.Execute(ctx, m.inputs, c)
	return err
}

func (m *moduleCall) result() (map[string]any, error) { return m.output, nil }

func (m *moduleCall) fresh() bool { return false }

// invocation prepares the module's part. Inputs that somebody may have written
// to since they were copied are copied, and so checked, again.
func (r *run) invocation() (invocation, error) {
	typed, _ := r.entry.module.(*FuncModule)
	known := typed != nil && typed.begin != nil
	if known && r.inputsCaptured {
		return typed.begin(r.inputs), nil
	}
	inputs, err := jsonvalue.CloneObject(r.inputs)
	if err != nil {
		return nil, NewError(CodeInternal, "a middleware left inputs of module %q that are no JSON: %w", r.moduleID, err).WithRetryable(new(false))
	}
	if known {
		return typed.begin(inputs), nil
	}
	return &moduleCall{module: r.entry.module, inputs: inputs}, nil
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
	call, err := r.invocation()
	if err != nil {
		return err
	}
	if !r.entry.usage.acquire() {
		return NewError(CodeModuleNotFound, "module %q is being taken out", r.moduleID).WithDetail("module_id", r.moduleID)
	}
	r.outcome.Started = true
	done := r.start(call)
	var expired <-chan time.Time
	if limited {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case err := <-done:
		return r.settle(call, err)
	case <-expired:
		r.callee.token.cancelWith(context.DeadlineExceeded)
		return r.timeoutError(timeout)
	case <-r.callee.token.Done():
		return r.afterCancel(ctx, call, done)
	case <-ctx.Done(): // the step's own timeout, if the token does not know yet
		r.callee.token.cancelWith(ctx.Err())
		return r.afterCancel(ctx, call, done)
	}
}

// start runs the module in a goroutine of its own, whose context ends with the
// call's token.
func (r *run) start(call invocation) <-chan error {
	done := make(chan error, 1)
	r.own.carrier = carrier{r.callee.token.context(), r.callee}
	go play(&r.own.carrier, r.executor, r.entry, call, done)
	return done
}

// play uses nothing of the run, which goes on without it at a timeout.
func play(ctx *carrier, executor *Executor, entry *registration, call invocation, done chan<- error) {
	var err error
	ended, id := false, entry.descriptor.ID
	defer entry.usage.release()
	defer func() { done <- err }()
	defer func() {
		if cause := recover(); cause != nil {
			executor.logger.Error("apcore: module panicked", "module_id", id, "panic_type", typeName(cause), "stack", string(debug.Stack()))
			err = NewError(CodeModuleExecuteError, "module %q panicked with a %s", id, typeName(cause))
			return
		}
		if !ended {
			err = NewError(CodeModuleExecuteError, "module %q ended its goroutine", id)
		}
	}()
	err = call.run(ctx, ctx.carried)
	ended = true
}

func (r *run) settle(call invocation, err error) error {
	if err != nil {
		return err
	}
	output, err := call.result()
	if err != nil {
		return err
	}
	if output == nil {
		return NewError(CodeModuleExecuteError, "module %q returned nothing: return an object, {} if there is nothing to say", r.moduleID).WithRetryable(new(false))
	}
	r.setOutput(output)
	r.fresh = call.fresh()
	return nil
}

// afterCancel keeps a result that arrived together with the cancellation.
func (r *run) afterCancel(ctx context.Context, call invocation, done <-chan error) error {
	select {
	case err := <-done:
		if err == nil {
			return r.settle(call, nil)
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
