package durable

import (
	"math"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// TaskRetry decides whether a task whose attempt failed is tried again, and after
// which pause. Like the contract it does not ask what the error says about being
// retried, with two exceptions: what needs somebody to act first (a denied or
// expired approval, missing rights, a cancellation, the codes of this layer) is
// final, and a module that is neither readonly nor idempotent is repeated only
// after a failure that provably came before it started, unless the request accepts
// repeated effects. class is the class of the module, done the number of retries so
// far.
func (r *TaskRequest) TaskRetry(failure *Failure, class Class, done int) (pause time.Duration, again bool) {
	if r.Retry == nil || done >= r.Retry.MaxRetries {
		return 0, false
	}
	repeats := class.Repeats() || r.AcceptRepeatedEffects
	switch {
	case failure.Err.Code == CodeOutcomeUnknown:
		again = repeats
	case isFinal(failure.Err.Code):
		again = false
	default:
		again = repeats || failure.NotStarted
	}
	if !again {
		return 0, false
	}
	return milliseconds(r.Retry.DelayMS(done)), true
}

func isFinal(code apcore.Code) bool { return VerdictOf(code).Repeat == RepeatNever }

// milliseconds rounds to what engines count in, without overflow.
func milliseconds(ms float64) time.Duration {
	if nanos := ms * float64(time.Millisecond); nanos < math.MaxInt64 {
		return time.Duration(nanos)
	}
	return math.MaxInt64
}

// FromMilliseconds reads an approval timeout from the wire: negative is
// [NoDeadline].
func FromMilliseconds(ms int64) time.Duration {
	if ms < 0 {
		return NoDeadline
	}
	return time.Duration(ms) * time.Millisecond
}
