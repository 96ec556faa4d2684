package apcore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"
)

// Error is the one error type of this package (apcore §8.1). It is immutable
// for callers: the With methods return a changed copy.
//
// errors.Is matches an Error against a [Code]; errors.As finds it under any
// number of wrappers. [CodeOf] answers for every error, foreign ones included.
type Error struct {
	// Code is never empty.
	Code Code
	// Message is for people. The executor takes secrets of the call out of it, as
	// out of details, hints and causes (§10.6).
	Message string
	// Details are JSON values under snake_case keys; nil means none.
	Details map[string]any
	// Cause is the wrapped error, nil if there is none. On the wire it is its text.
	Cause error
	// TraceID is empty until the executor has filled it in (§8.3).
	TraceID string
	// Timestamp is the time of construction in UTC.
	Timestamp time.Time
	// Retryable says whether the same call may succeed later; nil means unknown.
	Retryable *bool
	// AIGuidance is a hint for an agent; empty means none.
	AIGuidance string
	// UserFixable says whether the user can mend the cause; nil means unset.
	UserFixable *bool
	// Suggestion says what to do; empty means none.
	Suggestion string
}

// NewError makes an error of the given code. Retryable and UserFixable start
// with the code's defaults. A %w verb in format sets Cause, several join theirs.
func NewError(code Code, format string, args ...any) *Error {
	formatted := fmt.Errorf(format, args...)
	return &Error{
		Code:        code,
		Message:     formatted.Error(),
		Cause:       wrappedBy(formatted),
		Timestamp:   time.Now().UTC(),
		Retryable:   code.DefaultRetryable(),
		UserFixable: code.DefaultUserFixable(),
	}
}

// wrappedBy returns what an error of fmt.Errorf wraps, nil if nothing.
func wrappedBy(formatted error) error {
	if several, ok := formatted.(interface{ Unwrap() []error }); ok {
		return errors.Join(several.Unwrap()...)
	}
	return errors.Unwrap(formatted)
}

// Error returns "[CODE] message".
func (e *Error) Error() string {
	if e == nil {
		return "<nil>" // a nil *Error in an error interface must not crash who looks at it
	}
	return "[" + string(e.Code) + "] " + e.Message
}

// Unwrap returns the cause, nil if there is none.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Cause
}

// Is reports whether target is this error's [Code].
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && e != nil && code == e.Code
}

// WithDetail returns a copy whose details hold value under key. The value must
// be a JSON value.
func (e *Error) WithDetail(key string, value any) *Error {
	clone := e.clone()
	clone.Details[key] = value
	return clone
}

// WithCause returns a copy that wraps cause.
func (e *Error) WithCause(cause error) *Error {
	clone := e.clone()
	clone.Cause = cause
	return clone
}

// WithRetryable returns a copy that says whether repeating the call may help;
// nil means unknown. It overrides the code's default.
func (e *Error) WithRetryable(retryable *bool) *Error {
	clone := e.clone()
	clone.Retryable = copyBool(retryable)
	return clone
}

// WithSuggestion returns a copy that says what to do.
func (e *Error) WithSuggestion(suggestion string) *Error {
	clone := e.clone()
	clone.Suggestion = suggestion
	return clone
}

// WithAIGuidance returns a copy with a hint for an agent.
func (e *Error) WithAIGuidance(hint string) *Error {
	clone := e.clone()
	clone.AIGuidance = hint
	return clone
}

// WithUserFixable returns a copy that says whether the user can mend the cause;
// nil means unset. It overrides the code's default.
func (e *Error) WithUserFixable(fixable *bool) *Error {
	clone := e.clone()
	clone.UserFixable = copyBool(fixable)
	return clone
}

// ModuleID returns details.module_id: the innermost module the error belongs
// to, empty if it belongs to none.
func (e *Error) ModuleID() string {
	id, _ := e.Details["module_id"].(string)
	return id
}

func (e *Error) clone() *Error {
	clone := *e
	clone.Details = maps.Clone(e.Details)
	if clone.Details == nil {
		clone.Details = map[string]any{}
	}
	return &clone
}

// AsError finds the *Error in err's tree, joined errors included, in the order
// of errors.As. It returns nil if there is none.
func AsError(err error) *Error {
	var found *Error
	if errors.As(err, &found) {
		return found
	}
	return nil
}

// CodeOf returns the code of any error: empty for nil, the code of an *Error
// anywhere in its tree, EXECUTION_CANCELLED and MODULE_TIMEOUT for the errors of
// context.Context, MODULE_EXECUTE_ERROR for everything else.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if found := AsError(err); found != nil {
		return found.Code
	}
	var code Code
	switch {
	case errors.As(err, &code):
		return code
	case errors.Is(err, context.Canceled):
		return CodeExecutionCancelled
	case errors.Is(err, context.DeadlineExceeded):
		return CodeModuleTimeout
	default:
		return CodeModuleExecuteError
	}
}
