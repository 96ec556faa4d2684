package apcore

import "time"

// WithRandom sets the source of jitter, for tests.
func (m *RetryMiddleware) WithRandom(random func() float64) { m.random = random }

// WithClock sets the clock, for tests.
func (b *CircuitBreaker) WithClock(now func() time.Time) { b.now = now }
