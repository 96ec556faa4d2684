package apcore

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// CircuitState is the state of one circuit, under the standard's names.
type CircuitState string

// The states of a circuit.
const (
	// CircuitClosed lets calls through.
	CircuitClosed CircuitState = "CLOSED"
	// CircuitOpen refuses calls.
	CircuitOpen CircuitState = "OPEN"
	// CircuitHalfOpen lets one call through to see whether things are well again.
	CircuitHalfOpen CircuitState = "HALF_OPEN"
)

// The events of a [CircuitBreaker]. Data holds module_id, caller_id and
// error_rate.
const (
	EventCircuitOpened = "apcore.circuit.opened"
	EventCircuitClosed = "apcore.circuit.closed"
)

// Defaults of [CircuitBreakerOptions].
const (
	DefaultOpenThreshold  = 0.5
	DefaultCircuitWindow  = 20
	DefaultMinSamples     = 5
	DefaultRecoveryWindow = 30 * time.Second
)

const (
	maxCircuitWindow = 10_000
	maxCircuits      = 10_000
)

// CircuitBreakerOptions configures a [CircuitBreaker]; the zero value is the
// standard's default.
type CircuitBreakerOptions struct {
	// OpenThreshold is the rate of errors, over 0 up to 1, from which a circuit
	// opens; zero means 0.5.
	OpenThreshold float64
	// WindowSize is how many of the last outcomes count, 1 to 10000; zero means 20.
	WindowSize int
	// MinSamples is how many outcomes it takes to open, at most WindowSize; a
	// larger one counts as WindowSize. Zero means 5.
	MinSamples int
	// RecoveryWindow is how long a circuit stays open; zero means 30 s.
	RecoveryWindow time.Duration
	// Priority is 1 to 1000; zero means 100.
	Priority int
	// OnEvent takes apcore.circuit.opened and .closed; it must return soon. nil
	// drops them.
	OnEvent func(Event)
	// Logger is told when OnEvent panics; nil means slog.Default().
	Logger *slog.Logger
}

// CircuitBreaker is a middleware that refuses calls of a module that keeps
// failing, with CIRCUIT_BREAKER_OPEN (apcore §11). Every pair of module and
// caller has a circuit of its own, in this process; of more than 10000 circuits
// the one that was not used for longest is forgotten.
//
// A closed circuit opens when enough of the last outcomes are errors. After the
// recovery window the next call is let through alone as a probe: success closes
// the circuit, with an empty window, failure opens it again. A probe without an
// outcome, because it was cancelled or another middleware took its error,
// leaves its place to the next call.
//
// Refusals, its own and those of calls further down, count neither as success
// nor as failure. Every other error that reaches it counts; cancellations do
// not reach it. Register it last, so that it sees every attempt of a
// [RetryMiddleware].
type CircuitBreaker struct {
	opts CircuitBreakerOptions
	now  func() time.Time

	mu       sync.Mutex
	circuits *recent[circuitKey, *circuit]
}

type circuitKey struct{ moduleID, callerID string }

var (
	_ Middleware = (*CircuitBreaker)(nil)

	circuitState  = NewKey[string]("_apcore.mw.circuit.state")
	circuitTicket = frame[ticket]{"_apcore.mw.circuit.ticket"}
)

// NewCircuitBreaker fails with GENERAL_INVALID_INPUT for options out of bounds.
func NewCircuitBreaker(opts CircuitBreakerOptions) (*CircuitBreaker, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	priority, err := priorityOption("CircuitBreakerOptions", opts.Priority)
	if err != nil {
		return nil, err
	}
	opts.Priority = priority
	if opts.OpenThreshold == 0 {
		opts.OpenThreshold = DefaultOpenThreshold
	}
	opts.WindowSize = intOr(opts.WindowSize, DefaultCircuitWindow)
	opts.MinSamples = min(intOr(opts.MinSamples, DefaultMinSamples), opts.WindowSize)
	opts.RecoveryWindow = timeoutOr(opts.RecoveryWindow, DefaultRecoveryWindow)
	opts.Logger = loggerOr(opts.Logger)
	return &CircuitBreaker{opts: opts, now: time.Now, circuits: newRecent[circuitKey, *circuit](maxCircuits)}, nil
}

func (o *CircuitBreakerOptions) validate() error {
	switch {
	case !(o.OpenThreshold >= 0 && o.OpenThreshold <= 1): // so that NaN is none
		return NewError(CodeInvalidInput, "CircuitBreakerOptions.OpenThreshold is %v: give more than 0 up to 1, or zero for %v", o.OpenThreshold, DefaultOpenThreshold)
	case o.WindowSize < 0 || o.WindowSize > maxCircuitWindow:
		return NewError(CodeInvalidInput, "CircuitBreakerOptions.WindowSize is %d: give 1 to %d, or zero for %d", o.WindowSize, maxCircuitWindow, DefaultCircuitWindow)
	case o.MinSamples < 0:
		return NewError(CodeInvalidInput, "CircuitBreakerOptions.MinSamples is %d: give 1 or more, or zero for %d", o.MinSamples, DefaultMinSamples)
	case o.RecoveryWindow < 0:
		return NewError(CodeInvalidInput, "CircuitBreakerOptions.RecoveryWindow is %v: give a positive one, or zero for %v", o.RecoveryWindow, DefaultRecoveryWindow)
	}
	return nil
}

// Priority places the middleware.
func (b *CircuitBreaker) Priority() int { return b.opts.Priority }

// State returns the state of one circuit; an empty callerID stands for calls
// from the top. An open circuit becomes half open with the next call only.
func (b *CircuitBreaker) State(moduleID, callerID string) CircuitState {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c, ok := b.circuits.get(circuitKey{moduleID, callerID}); ok {
		return c.state
	}
	return CircuitClosed
}

// Before refuses the call or lets it through.
func (b *CircuitBreaker) Before(_ context.Context, call *MiddlewareCall) (map[string]any, error) {
	key := keyOf(call)
	b.mu.Lock()
	c := b.circuit(key)
	pass, admitted, reopened := c.admit(b.now(), &b.opts, call.Context.token)
	state, rate := c.state, c.rate()
	b.mu.Unlock()
	circuitState.Set(call.Context, string(state))
	if reopened {
		b.emit(EventCircuitOpened, "warn", key, rate)
	}
	if !admitted {
		return nil, NewError(CodeCircuitBreakerOpen, "the circuit of module %q is open", call.ModuleID).
			WithDetail("module_id", key.moduleID).WithDetail("caller_id", key.callerID)
	}
	circuitTicket.set(b, call.Context, pass)
	return nil, nil
}

// After counts a success.
func (b *CircuitBreaker) After(_ context.Context, call *MiddlewareCall, _ map[string]any) (map[string]any, error) {
	b.record(call, false)
	return nil, nil
}

// OnError counts a failure.
func (b *CircuitBreaker) OnError(_ context.Context, call *MiddlewareCall, err *Error) (*Recovery, error) {
	if err.Code != CodeCircuitBreakerOpen {
		b.record(call, true)
	}
	return nil, nil
}

func (b *CircuitBreaker) record(call *MiddlewareCall, failed bool) {
	pass, ok := circuitTicket.take(b, call.Context)
	if !ok {
		return
	}
	key := keyOf(call)
	b.mu.Lock()
	c := b.circuit(key)
	before := c.state
	c.record(pass, failed, b.now(), &b.opts)
	after, rate := c.state, c.rate()
	b.mu.Unlock()
	circuitState.Set(call.Context, string(after))
	switch {
	case before == after:
	case after == CircuitOpen:
		b.emit(EventCircuitOpened, "warn", key, rate)
	case after == CircuitClosed:
		b.emit(EventCircuitClosed, "info", key, rate)
	}
}

func keyOf(call *MiddlewareCall) circuitKey {
	return circuitKey{call.ModuleID, call.Context.callerID}
}

func (b *CircuitBreaker) circuit(key circuitKey) *circuit {
	c, ok := b.circuits.get(key)
	if !ok {
		c = &circuit{state: CircuitClosed}
		b.circuits.put(key, c)
	}
	return c
}

func (b *CircuitBreaker) emit(eventType, severity string, key circuitKey, rate float64) {
	if b.opts.OnEvent == nil {
		return
	}
	defer func() {
		if cause := recover(); cause != nil {
			b.opts.Logger.Error("apcore: event listener panicked", "event", eventType, "panic_type", typeName(cause))
		}
	}()
	b.opts.OnEvent(Event{
		Type: eventType, ModuleID: key.moduleID, Timestamp: b.now().UTC(), Severity: severity,
		Data: map[string]any{"module_id": key.moduleID, "caller_id": key.callerID, "error_rate": rate},
	})
}
