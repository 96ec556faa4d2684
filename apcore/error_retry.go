package apcore

import (
	"encoding/json"
	"errors"
	"math"
	"time"
)

// RetryAfterKey is the key in an error's details that says in how many
// milliseconds another attempt makes sense, as a server's Retry-After does.
const RetryAfterKey = "retry_after_ms"

// WithRetryAfter returns a copy that says when another attempt makes sense. Hosts
// that retry wait so long, up to a limit of theirs; it does not make an error
// retryable. Zero or less takes the wish back.
func (e *Error) WithRetryAfter(d time.Duration) *Error {
	clone := e.clone()
	if ms := (d + time.Millisecond - 1).Milliseconds(); d > 0 { // rounded up: never earlier than asked
		clone.Details[RetryAfterKey] = ms
	} else {
		delete(clone.Details, RetryAfterKey)
	}
	return clone
}

// RetryAfter returns what details.retry_after_ms says, zero if that is nothing
// or no positive number. What no time.Duration holds is the longest one.
func (e *Error) RetryAfter() time.Duration {
	if e == nil {
		return 0
	}
	ms := 0.0
	switch value := e.Details[RetryAfterKey].(type) {
	case int:
		ms = float64(value)
	case int64:
		ms = float64(value)
	case float64:
		ms = value
	case json.Number:
		ms, _ = value.Float64() // no number is no wish
	}
	switch {
	case !(ms > 0): // NaN too
		return 0
	case ms >= float64(math.MaxInt64/int64(time.Millisecond)):
		return math.MaxInt64
	default:
		return time.Duration(math.Ceil(ms)) * time.Millisecond
	}
}

// keepRetryAfter takes the wish of any error in err's tree that has a method
// RetryAfter() time.Duration over into the error that leaves the call.
func keepRetryAfter(own *Error, err error) *Error {
	if own.RetryAfter() > 0 {
		return own
	}
	if wish := retryAfterOf(err); wish > 0 {
		return own.WithRetryAfter(wish)
	}
	return own
}

// retryAfterOf finds the first wish in a tree, in the order of errors.As.
func retryAfterOf(err error) time.Duration {
	for err != nil {
		if hint, ok := err.(interface{ RetryAfter() time.Duration }); ok && !isNil(hint) {
			if wish := hint.RetryAfter(); wish > 0 {
				return wish
			}
		}
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			for _, each := range several.Unwrap() {
				if wish := retryAfterOf(each); wish > 0 {
					return wish
				}
			}
			return 0
		}
		err = errors.Unwrap(err)
	}
	return 0
}
