package apcore

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"time"
)

// RetryStrategy says how the delay of a [RetryMiddleware] grows.
type RetryStrategy string

const (
	// RetryExponential doubles the delay with every retry, up to MaxDelay.
	RetryExponential RetryStrategy = "exponential"
	// RetryFixed always waits BaseDelay.
	RetryFixed RetryStrategy = "fixed"
)

// Defaults of [RetryOptions].
const (
	DefaultMaxRetries     = 3
	DefaultRetryBaseDelay = 100 * time.Millisecond
	DefaultRetryMaxDelay  = 5 * time.Second
)

// maxRetryDelay bounds both delays: a call waits in this process, holding its
// goroutine and its caller.
const maxRetryDelay = time.Hour

// RetryOptions configures a [RetryMiddleware]; the zero value is the standard's
// default.
type RetryOptions struct {
	// MaxRetries bounds the runs after the first; zero means 3. The standard
	// advises 5 at most.
	MaxRetries int
	// Strategy is RetryExponential, which empty means, or RetryFixed.
	Strategy RetryStrategy
	// BaseDelay comes before the first retry, an hour at most; zero means 100 ms.
	BaseDelay time.Duration
	// MaxDelay bounds the exponential delay before jitter, an hour at most; zero
	// means 5 s.
	MaxDelay time.Duration
	// NoJitter waits exactly; by default a delay is multiplied by a random factor
	// from 0.5 up to, not including, 1.5.
	NoJitter bool
	// RequireIdempotent retries only modules that are annotated idempotent or
	// readonly. By default the error alone decides, as in the standard's other
	// SDKs.
	RequireIdempotent bool
	// Priority is 1 to 1000; zero means 100.
	Priority int
	// Logger takes the warning of an exhausted budget; nil means slog.Default().
	Logger *slog.Logger
}

// RetryMiddleware runs a failed call again (apcore §8.6): only when the error
// says that it is retryable; an error that does not know is left alone, and
// cancellations never get here. It waits before each retry, but not longer than
// the call lasts: one that is cancelled meanwhile ends with EXECUTION_CANCELLED,
// one whose ctx runs out with MODULE_TIMEOUT. All runs share the deadline of the
// call tree: where it comes before the next run could begin, the error stands at
// once.
//
// The retries of one module in one call tree are counted together, under
// "_apcore.mw.retry.count.<module_id>" in its data. Success resets the count,
// giving up does not: a module that catches the failure and calls again gets no
// second budget. The count never leaves the process.
//
// A retry takes the whole pipeline, so a module behind the approval gate asks
// for approval again; keep such modules away from it. Where the host retries,
// see [WithHostRetries], it does nothing.
//
// Register it before a [CircuitBreaker], which then sees every attempt.
type RetryMiddleware struct {
	BaseMiddleware
	opts   RetryOptions
	random func() float64 // uniform in [0, 1)
}

var _ Middleware = (*RetryMiddleware)(nil)

// NewRetryMiddleware fails with GENERAL_INVALID_INPUT for options out of bounds.
func NewRetryMiddleware(opts RetryOptions) (*RetryMiddleware, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	priority, err := priorityOption("RetryOptions", opts.Priority)
	if err != nil {
		return nil, err
	}
	opts.Priority = priority
	opts.MaxRetries = intOr(opts.MaxRetries, DefaultMaxRetries)
	opts.BaseDelay = timeoutOr(opts.BaseDelay, DefaultRetryBaseDelay)
	opts.MaxDelay = timeoutOr(opts.MaxDelay, DefaultRetryMaxDelay)
	opts.Logger = loggerOr(opts.Logger)
	return &RetryMiddleware{opts: opts, random: rand.Float64}, nil
}

func (o *RetryOptions) validate() error {
	if o.MaxRetries < 0 {
		return NewError(CodeInvalidInput, "RetryOptions.MaxRetries is %d: give 1 or more, or zero for %d", o.MaxRetries, DefaultMaxRetries)
	}
	switch o.Strategy {
	case "", RetryExponential, RetryFixed:
	default:
		return NewError(CodeInvalidInput, "RetryOptions.Strategy is %q: give %q or %q", o.Strategy, RetryExponential, RetryFixed)
	}
	if o.BaseDelay < 0 || o.BaseDelay > maxRetryDelay {
		return NewError(CodeInvalidInput, "RetryOptions.BaseDelay is %v: give up to %v, or zero for %v", o.BaseDelay, maxRetryDelay, DefaultRetryBaseDelay)
	}
	if o.MaxDelay < 0 || o.MaxDelay > maxRetryDelay {
		return NewError(CodeInvalidInput, "RetryOptions.MaxDelay is %v: give up to %v, or zero for %v", o.MaxDelay, maxRetryDelay, DefaultRetryMaxDelay)
	}
	return nil
}

// Priority places the middleware.
func (m *RetryMiddleware) Priority() int { return m.opts.Priority }

// After resets the count.
func (m *RetryMiddleware) After(_ context.Context, call *MiddlewareCall, _ map[string]any) (map[string]any, error) {
	call.Context.data.Delete(retryKey(call))
	return nil, nil
}

// OnError asks for another run, after a delay.
func (m *RetryMiddleware) OnError(ctx context.Context, call *MiddlewareCall, err *Error) (*Recovery, error) {
	if err.Retryable == nil || !*err.Retryable || !m.permits(call) || hostRetries(ctx) {
		return nil, nil
	}
	attempt, ok := m.claim(call)
	if !ok {
		m.opts.Logger.WarnContext(ctx, "apcore: retries are exhausted", "module_id", call.ModuleID,
			"trace_id", call.Context.traceID, "max_retries", m.opts.MaxRetries, "error_code", string(err.Code))
		return nil, nil
	}
	delay := m.delay(attempt)
	if deadline, limited := call.Context.GlobalDeadline(); limited && time.Until(deadline) <= delay {
		m.opts.Logger.WarnContext(ctx, "apcore: no time is left for a retry", "module_id", call.ModuleID,
			"trace_id", call.Context.traceID, "delay_ms", millis(delay), "error_code", string(err.Code))
		return nil, nil
	}
	wait(ctx, call, delay)
	// A call that has ended meanwhile is signalled too: the guard of the next run
	// gives it the code it deserves.
	return &Recovery{Retry: &RetrySignal{Inputs: maps.Clone(call.Inputs)}}, nil
}

func (m *RetryMiddleware) permits(call *MiddlewareCall) bool {
	if !m.opts.RequireIdempotent {
		return true
	}
	entry := call.entry
	return entry != nil && (entry.descriptor.Annotations.Idempotent || entry.descriptor.Annotations.Readonly)
}

// claim counts one retry unless the budget is spent; parallel calls of one tree
// share it.
func (m *RetryMiddleware) claim(call *MiddlewareCall) (attempt int, ok bool) {
	key, d := retryKey(call), call.Context.data
	d.mu.Lock()
	defer d.mu.Unlock()
	attempt, _ = d.values[key].(int)
	if attempt >= m.opts.MaxRetries {
		return attempt, false
	}
	if d.values == nil {
		d.values = map[string]any{}
	}
	d.values[key] = attempt + 1
	return attempt, true
}

func retryKey(call *MiddlewareCall) string { return "_apcore.mw.retry.count." + call.ModuleID }

// delay before the retry after attempt earlier ones; jitter comes after the cap.
func (m *RetryMiddleware) delay(attempt int) time.Duration {
	delay := float64(m.opts.BaseDelay)
	if m.opts.Strategy != RetryFixed {
		delay = min(delay*math.Pow(2, float64(attempt)), float64(m.opts.MaxDelay))
	}
	if !m.opts.NoJitter {
		delay *= 0.5 + m.random()
	}
	return time.Duration(delay)
}

// wait ends early with ctx and with the caller's token. The call's own token
// does not count, for the timer that brought a MODULE_TIMEOUT has ended it.
func wait(ctx context.Context, call *MiddlewareCall, delay time.Duration) {
	var cancelled <-chan struct{}
	if own := call.Context.token; own != nil && own.linked != nil {
		cancelled = own.linked.Done()
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-cancelled:
	}
}
