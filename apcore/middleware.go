package apcore

import (
	"context"
	"slices"
)

// Middleware surrounds module calls (apcore §11):
//
//	Before A → Before B → validate → module → validate → After B → After A
//
// and, when something between fails, OnError B → OnError A, for those whose
// Before was entered. It runs after the approval gate: errors of access rules
// and approval never reach it. One value serves all calls; state of a call
// belongs in its context's data. Embed [BaseMiddleware] to implement only some
// hooks.
type Middleware interface {
	// Before may replace the inputs as a whole; nil keeps them. An error skips
	// the module.
	Before(ctx context.Context, call *MiddlewareCall) (inputs map[string]any, err error)
	// After may replace the output; nil keeps it. Replaced output is not
	// validated again.
	After(ctx context.Context, call *MiddlewareCall, output map[string]any) (replaced map[string]any, err error)
	// OnError may recover from err or ask for another run; nil leaves the error.
	// An error of its own is logged and counts as nil. Cancellations never reach it.
	OnError(ctx context.Context, call *MiddlewareCall, err *Error) (*Recovery, error)
}

// MiddlewareCall is the call a hook works on. Hooks must not keep it.
type MiddlewareCall struct {
	ModuleID string
	// Inputs are the call's own copy.
	Inputs  map[string]any
	Context *Context

	entry *registration // the version that runs
}

// Recovery is what [Middleware.OnError] makes of an error: an output that
// becomes the call's result as it is, or another run.
type Recovery struct {
	// Output is the call's result; ignored when Retry is set.
	Output map[string]any
	// Retry runs the whole pipeline again from the caller's context.
	Retry *RetrySignal
}

// RetrySignal asks for another run with these inputs. Nothing bounds it but the
// middleware that gives it and the deadline of the call tree, which all runs
// share: after it a signal is ignored.
type RetrySignal struct{ Inputs map[string]any }

func retryFault(moduleID string, err error) *Error {
	return NewError(CodeInternal, "a middleware asked to retry module %q with inputs that are no JSON: %w", moduleID, err)
}

// Prioritized places a middleware: 0 to 1000, the higher the earlier in Before.
// Without it the priority is 100; equal ones keep the order of registration.
type Prioritized interface{ Priority() int }

const (
	defaultPriority = 100
	maxPriority     = 1000
)

// BaseMiddleware does nothing; embed it.
type BaseMiddleware struct{}

// Before keeps the inputs.
func (BaseMiddleware) Before(context.Context, *MiddlewareCall) (map[string]any, error) {
	return nil, nil
}

// After keeps the output.
func (BaseMiddleware) After(context.Context, *MiddlewareCall, map[string]any) (map[string]any, error) {
	return nil, nil
}

// OnError leaves the error.
func (BaseMiddleware) OnError(context.Context, *MiddlewareCall, *Error) (*Recovery, error) {
	return nil, nil
}

var _ Middleware = BaseMiddleware{}

// Use adds a middleware for all later calls. It fails with
// GENERAL_INVALID_INPUT for nil and for a priority outside 0 to 1000. Adding
// one value twice works, with a warning.
func (e *Executor) Use(middleware Middleware) error {
	if isNil(middleware) {
		return NewError(CodeInvalidInput, "the middleware is nil")
	}
	if priority := priorityOf(middleware); priority < 0 || priority > maxPriority {
		return NewError(CodeInvalidInput, "middleware %s has priority %d: give 0 to %d", typeName(middleware), priority, maxPriority)
	}
	e.change(func(p *parts) {
		if slices.ContainsFunc(p.middleware, func(m Middleware) bool { return identical(m, middleware) }) {
			e.logger.Warn("apcore: middleware is registered twice", "middleware", typeName(middleware))
		}
		p.middleware = append(slices.Clone(p.middleware), middleware)
		slices.SortStableFunc(p.middleware, func(a, b Middleware) int { return priorityOf(b) - priorityOf(a) })
	})
	return nil
}

// Remove takes the first occurrence of a middleware out for all later calls and
// reports whether it was there.
func (e *Executor) Remove(middleware Middleware) (removed bool) {
	e.change(func(p *parts) {
		at := slices.IndexFunc(p.middleware, func(m Middleware) bool { return identical(m, middleware) })
		if removed = at >= 0; removed {
			p.middleware = slices.Delete(slices.Clone(p.middleware), at, at+1)
		}
	})
	return removed
}

func priorityOf(middleware Middleware) int {
	if p, ok := middleware.(Prioritized); ok {
		return p.Priority()
	}
	return defaultPriority
}

// identical compares by identity; values that cannot be compared are never the same.
func identical(a, b any) (equal bool) {
	defer func() {
		if recover() != nil {
			equal = false
		}
	}()
	return a == b
}
