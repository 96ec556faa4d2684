package durable

import (
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Failure is a failed attempt with everything decided that an engine needs to
// know. It wraps the apcore error.
type Failure struct {
	// Err is the error in its standard form.
	Err *apcore.Error
	// Retry says whether the engine may run the unit again.
	Retry bool
	// NotStarted says that the module certainly had no effect: the failure came
	// before it was handed the inputs.
	NotStarted bool
	// RetryAfter is when the next attempt makes sense, see
	// [apcore.Error.WithRetryAfter]: zero for no wish, [DefaultMaxRetryAfter] at most.
	RetryAfter time.Duration
}

// Error returns the text of the apcore error.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the apcore error.
func (f *Failure) Unwrap() error { return f.Err }

// notStartedKey marks NotStarted in the wire form of the error.
const notStartedKey = "x-not-started"

// Map returns the error's wire form, see [apcore.Error.Map], within
// [MaxErrorBytes], with the key x-not-started when that is certain.
func (f *Failure) Map() map[string]any {
	wire := Bounded(f.Err.Map())
	if f.NotStarted {
		wire[notStartedKey] = true
	}
	return wire
}

// FailureFromMap is the inverse of [Failure.Map]; Retry belongs to the engine and
// stays false.
func FailureFromMap(wire map[string]any) *Failure {
	notStarted, _ := wire[notStartedKey].(bool)
	err := apcore.ErrorFromMap(wire)
	return &Failure{Err: err, NotStarted: notStarted, RetryAfter: min(err.RetryAfter(), DefaultMaxRetryAfter)}
}

// OutcomeUnknown is the error of an at-most-once call that was lost after its
// module may have started.
func OutcomeUnknown(request CallRequest, why string) *apcore.Error {
	return newError(CodeOutcomeUnknown, "call of module %q was lost after it may have had its effect: %s", request.ModuleID, why).
		WithDetail("module_id", request.ModuleID).WithDetail("call_id", request.CallID).
		WithSuggestion("look the call up by its id at the module's side before doing it again")
}
