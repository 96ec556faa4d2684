package apcore

import "context"

// BeforeFunc is the Before hook of a middleware, see [Middleware].
type BeforeFunc func(ctx context.Context, call *MiddlewareCall) (inputs map[string]any, err error)

// AfterFunc is the After hook of a middleware, see [Middleware].
type AfterFunc func(ctx context.Context, call *MiddlewareCall, output map[string]any) (replaced map[string]any, err error)

// UseBefore adds a function as a middleware of priority 100 for all later calls
// and returns that middleware, for [Executor.Remove]. nil fails with
// GENERAL_INVALID_INPUT.
func (e *Executor) UseBefore(before BeforeFunc) (Middleware, error) {
	if before == nil {
		return nil, NewError(CodeInvalidInput, "the before function is nil")
	}
	middleware := &funcMiddleware{before: before}
	return middleware, e.Use(middleware)
}

// UseAfter is [Executor.UseBefore] for a function that runs after the module.
func (e *Executor) UseAfter(after AfterFunc) (Middleware, error) {
	if after == nil {
		return nil, NewError(CodeInvalidInput, "the after function is nil")
	}
	middleware := &funcMiddleware{after: after}
	return middleware, e.Use(middleware)
}

// funcMiddleware is one function as a middleware.
type funcMiddleware struct {
	BaseMiddleware
	before BeforeFunc
	after  AfterFunc
}

// Before calls the function, if it is one for before.
func (m *funcMiddleware) Before(ctx context.Context, call *MiddlewareCall) (map[string]any, error) {
	if m.before == nil {
		return nil, nil
	}
	return m.before(ctx, call)
}

// After calls the function, if it is one for after.
func (m *funcMiddleware) After(ctx context.Context, call *MiddlewareCall, output map[string]any) (map[string]any, error) {
	if m.after == nil {
		return nil, nil
	}
	return m.after(ctx, call, output)
}
