package apcore

import (
	"context"
	"errors"
	"time"
)

// circuit is the state machine of one pair of module and caller. Its breaker
// locks it. It does not call anything outside.
type circuit struct {
	state    CircuitState
	openedAt time.Time
	// term counts the changes of state and the probes: an outcome counts only
	// within the term in which its call was let through.
	term uint64
	// probe is the token of the call that was let through half open.
	probe *CancelToken
	// probing is set while that call is under way.
	probing bool

	window []bool // the last outcomes, true for an error, as a ring
	next   int
	errors int
}

// ticket is the permission of one call.
type ticket struct{ term uint64 }

// admit lets a call through or not. reopened says that a probe turned out to
// have failed.
func (c *circuit) admit(now time.Time, opts *CircuitBreakerOptions, token *CancelToken) (pass ticket, admitted, reopened bool) {
	if c.state == CircuitHalfOpen && c.probing && c.probe.Cancelled() {
		c.probing = false
		if timedOut(c.probe) {
			c.push(true, opts)
			c.open(now)
			reopened = true
		}
	}
	if c.state == CircuitOpen && now.Sub(c.openedAt) >= opts.RecoveryWindow {
		c.state, c.probing = CircuitHalfOpen, false
	}
	switch {
	case c.state == CircuitClosed:
		return ticket{c.term}, true, reopened
	case c.state == CircuitHalfOpen && !c.probing:
		c.term++
		c.probe, c.probing = token, true
		return ticket{c.term}, true, reopened
	default:
		return ticket{}, false, reopened
	}
}

// timedOut reports whether the call ended by its timer or its deadline. Error
// hooks have not seen that yet when another call asks first.
func timedOut(token *CancelToken) bool {
	return errors.Is(context.Cause(token.context()), context.DeadlineExceeded)
}

func (c *circuit) record(pass ticket, failed bool, now time.Time, opts *CircuitBreakerOptions) {
	if pass.term != c.term || c.state == CircuitOpen {
		return
	}
	c.push(failed, opts)
	switch {
	case c.state == CircuitHalfOpen && !failed:
		*c = circuit{state: CircuitClosed, term: c.term + 1}
	case c.state == CircuitHalfOpen:
		c.open(now)
	case len(c.window) >= opts.MinSamples && c.rate() >= opts.OpenThreshold:
		c.open(now)
	}
}

func (c *circuit) open(now time.Time) {
	c.state, c.openedAt = CircuitOpen, now
	c.probe, c.probing = nil, false
	c.term++
}

func (c *circuit) push(failed bool, opts *CircuitBreakerOptions) {
	if len(c.window) < opts.WindowSize {
		c.window = append(c.window, failed)
	} else {
		if c.window[c.next] {
			c.errors--
		}
		c.window[c.next] = failed
		c.next = (c.next + 1) % opts.WindowSize
	}
	if failed {
		c.errors++
	}
}

// rate is the share of errors in the window, 0 for an empty one.
func (c *circuit) rate() float64 {
	if len(c.window) == 0 {
		return 0
	}
	return float64(c.errors) / float64(len(c.window))
}
