package apcore

import (
	"context"
	"errors"
	"slices"
)

// fail cleans and enriches an error, offers it to the entered middleware and
// returns what becomes of it.
func (r *run) fail(ctx context.Context, err error) (map[string]any, *RetrySignal, error) {
	r.failure = err
	err = r.propagate(err)
	output, retry, left := r.offer(ctx, err)
	if retry != nil {
		left = err // of this run
	}
	r.tellEnd(ctx, AsError(left))
	if retry != nil {
		return nil, retry, nil
	}
	return output, nil, left
}

// offer asks the middleware. Cancellation is nobody's to recover (D-20).
func (r *run) offer(ctx context.Context, err error) (map[string]any, *RetrySignal, error) {
	if CodeOf(err) == CodeExecutionCancelled {
		return nil, nil, err
	}
	for _, middleware := range slices.Backward(r.entered) {
		recovery := r.recovery(ctx, middleware, AsError(err))
		switch {
		case recovery == nil:
		case recovery.Retry != nil && r.overdue(): // it would fail at once, and be asked for again
		case recovery.Retry != nil:
			return nil, recovery.Retry, nil
		case recovery.Output != nil:
			return recovery.Output, nil, nil
		}
	}
	return nil, nil, err
}

func (r *run) recovery(ctx context.Context, middleware Middleware, failure *Error) (recovery *Recovery) {
	var err error
	defer func() {
		if err != nil {
			r.executor.logger.Error("apcore: error hook failed", "module_id", r.moduleID, "middleware", typeName(middleware), "error", r.hide(err).Error())
			recovery = nil
		}
	}()
	defer recoverTo(&err, "error hook")
	recovery, err = middleware.OnError(ctx, r.call(), failure)
	return recovery
}

// endObserver is a middleware that hears of the end of every run it entered, also
// where neither After nor OnError tells it: a cancellation, an error that another
// middleware took, a consumer that had enough. It is told once more after a hook
// that told it, and err is nil for a run that did not fail.
type endObserver interface {
	callEnded(ctx context.Context, call *MiddlewareCall, err *Error)
}

func (r *run) tellEnd(ctx context.Context, err *Error) {
	for _, middleware := range slices.Backward(r.entered) {
		if observer, ok := middleware.(endObserver); ok {
			observer.callEnded(ctx, r.call(), err)
		}
	}
}

// finish follows the last step of a run, failed or not.
func (r *run) finish(ctx context.Context) {
	if len(r.entered) > 0 {
		r.tellEnd(r.within(ctx), nil)
	}
	if r.trace != nil {
		r.trace.clean(r.cleaner())
	}
	r.token.release()
}

// hide returns an error whose texts hold no secret of the call, err itself if it
// holds none.
func (r *run) hide(err error) error { return r.cleaner().cause(err) }

// propagate is algorithm A11 (§8.3): an error of this package keeps its code and
// gets trace id, module id and call chain where they are missing, so that the
// innermost module stays named; any other error is wrapped. What leaves it holds
// no secret of the call.
func (r *run) propagate(err error) error {
	if isNil(err) {
		return r.enrich(NewError(CodeModuleExecuteError, "module %q returned a nil %s as its error: return a plain nil", r.moduleID, typeName(err)).WithRetryable(new(false)))
	}
	own := AsError(err)
	if own == nil {
		return r.enrich(keepRetryAfter(r.wrapForeign(err), err))
	}
	clean := r.cleaner()
	enriched := r.enrich(keepRetryAfter(clean.clean(own), err))
	var approval *ApprovalError
	if errors.As(err, &approval) && approval.Err == own {
		if id, ok := own.Details["approval_id"]; ok {
			enriched.Details["approval_id"] = id // the handler's, and needed to resume
		}
		result := approval.Result
		result.Reason = clean.text(result.Reason)
		result.Metadata, _ = clean.value(result.Metadata).(map[string]any)
		return &ApprovalError{Err: enriched, Result: result}
	}
	return enriched
}

func (r *run) enrich(err *Error) *Error {
	e := err.clone()
	if r.callee == nil {
		return e
	}
	if e.TraceID == "" {
		e.TraceID = r.callee.traceID
	}
	if _, named := e.Details["module_id"]; !named {
		e.Details["module_id"] = r.moduleID
	}
	if _, chained := e.Details["call_chain"]; !chained {
		e.Details["call_chain"] = anySlice(r.callee.chain)
	}
	return e
}

func (r *run) wrapForeign(err error) *Error {
	hidden := r.hide(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return r.timeoutError(0).WithCause(hidden)
	case errors.Is(err, context.Canceled):
		return errCancelled().WithCause(hidden)
	}
	var code Code
	if errors.As(err, &code) {
		return NewError(code, "module %q failed with %s", r.moduleID, code)
	}
	return NewError(CodeModuleExecuteError, "module %q failed with %s: %w", r.moduleID, typeName(err), hidden).
		WithDetail("reason", hidden.Error())
}
