package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// callError is what workflow code gets: the apcore error first, Temporal's own
// beside it, so that errors.As finds either.
type callError struct {
	failure *durable.Failure
	sdk     error
}

func (e *callError) Error() string { return e.failure.Error() }

func (e *callError) Unwrap() []error { return []error{e.failure, e.sdk} }

// ActivityError turns a failed attempt into the one application error that the
// server understands: its type is the apcore code, its only detail the error's
// wire form, and whether it is retried is decided.
func ActivityError(failure *durable.Failure) error {
	options := sdktemporal.ApplicationErrorOptions{
		NonRetryable:   !failure.Retry,
		Details:        []any{detail(failure.Map())},
		NextRetryDelay: failure.RetryAfter,
	}
	if durable.Expected(failure.Err.Code) {
		options.Category = sdktemporal.ApplicationErrorCategoryBenign
	}
	return sdktemporal.NewApplicationErrorWithOptions(failure.Err.Message, string(failure.Err.Code), options)
}

// AsError reads the apcore error of a failed workflow or activity: one that is
// already there, or the one that Temporal's error carries. A timeout, a
// cancellation or termination gets the code that fits; any other application
// error its type as code. It returns nil for nil.
func AsError(err error) *apcore.Error {
	if err == nil {
		return nil
	}
	if found := apcore.AsError(err); found != nil {
		return found
	}
	return failureOf(err).Err
}

// failureOf reads Temporal's error. That of a query has the workflow's own inside.
func failureOf(err error) *durable.Failure {
	var query *serviceerror.QueryFailed
	if errors.As(err, &query) && query.Failure != nil {
		err = sdktemporal.GetDefaultFailureConverter().FailureToError(query.Failure)
	}
	var application *sdktemporal.ApplicationError
	if errors.As(err, &application) {
		return fromApplication(application)
	}
	var (
		canceled *sdktemporal.CanceledError
		timeout  *sdktemporal.TimeoutError
		code     = apcore.CodeInternal
	)
	switch {
	case errors.As(err, &canceled), errors.Is(err, context.Canceled):
		code = apcore.CodeExecutionCancelled
	case errors.As(err, &timeout):
		code = apcore.CodeModuleTimeout
	}
	e := &apcore.Error{Code: code, Message: err.Error(), Cause: err, Retryable: code.DefaultRetryable(), UserFixable: code.DefaultUserFixable()}
	return &durable.Failure{Err: e}
}

// fromApplication reads the wire form out of an application error; one without
// it keeps at least its type as code.
func fromApplication(application *sdktemporal.ApplicationError) *durable.Failure {
	retry := !application.NonRetryable()
	if wire := wireOf(application); wire != nil {
		failure := durable.FailureFromMap(wire)
		failure.Retry = retry
		return failure
	}
	e := &apcore.Error{Code: apcore.Code(application.Type()), Message: application.Message(), Cause: application}
	if e.Code == "" {
		e.Code = apcore.CodeModuleExecuteError
	}
	if !retry {
		e.Retryable = new(false)
	}
	return &durable.Failure{Err: e, Retry: retry}
}

// detail is an error's wire form as text, so that no digit is lost on the way.
func detail(wire map[string]any) json.RawMessage {
	text, err := apcore.EncodeJSON(wire)
	if err != nil { // a detail that is no JSON; the error matters more
		delete(wire, "details")
		text = mustJSON(wire)
	}
	return text
}

// wireOf is the inverse of detail, nil if the error carries no wire form of its
// own type.
func wireOf(application *sdktemporal.ApplicationError) map[string]any {
	var text json.RawMessage
	if !application.HasDetails() || application.Details(&text) != nil {
		return nil
	}
	wire, err := apcore.DecodeObject(text)
	if err != nil || wire["code"] != application.Type() {
		return nil
	}
	return wire
}

// callFailure reads the error of one unit. For an at-most-once call the kind of
// timeout tells whether the module may have run.
func callFailure(request durable.CallRequest, policy durable.Policy, err error, now time.Time) error {
	failure := failureOf(err)
	var timeout *sdktemporal.TimeoutError
	var application *sdktemporal.ApplicationError
	if errors.As(err, &timeout) && !errors.As(err, &application) {
		failure = timedOut(request, policy, timeout)
	}
	if policy.Class.Repeats() && (failure.Retry || timeout != nil) && stoppedByCancel(err) {
		failure = cancelled(request, failure)
		err = errors.Join(sdktemporal.NewCanceledError(), err)
	}
	if failure.Err.Timestamp.IsZero() {
		failure.Err.Timestamp = now
	}
	return &callError{failure, err}
}

// stoppedByCancel reports whether no attempt followed a failed one because of a
// cancellation. The server says so of every failure after the request, also where
// none would have followed.
func stoppedByCancel(err error) bool {
	var activity *sdktemporal.ActivityError
	return errors.As(err, &activity) && activity.RetryState() == enumspb.RETRY_STATE_CANCEL_REQUESTED && !sdktemporal.IsCanceledError(err)
}

// cancelled is a call that was cancelled between two attempts; the last one's
// failure is the cause.
func cancelled(request durable.CallRequest, last *durable.Failure) *durable.Failure {
	return &durable.Failure{NotStarted: last.NotStarted, Err: &apcore.Error{
		Code: apcore.CodeExecutionCancelled, Cause: last.Err,
		Message: "the call of module '" + request.ModuleID + "' was cancelled between two attempts",
		Details: map[string]any{"module_id": request.ModuleID, "call_id": request.CallID},
	}}
}

func timedOut(request durable.CallRequest, policy durable.Policy, timeout *sdktemporal.TimeoutError) *durable.Failure {
	kind := timeout.TimeoutType()
	if kind != enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START && !policy.Class.Repeats() {
		e := durable.OutcomeUnknown(request, "its worker gave no answer ("+kind.String()+" timeout)")
		e.Timestamp = time.Time{} // the caller stamps it with the run's time
		return &durable.Failure{Err: e}
	}
	e := &apcore.Error{
		Code: apcore.CodeModuleTimeout, Cause: timeout,
		Message:   "module '" + request.ModuleID + "' gave no result in time (" + kind.String() + " timeout)",
		Details:   map[string]any{"module_id": request.ModuleID, "call_id": request.CallID},
		Retryable: apcore.CodeModuleTimeout.DefaultRetryable(),
	}
	return &durable.Failure{Err: e, NotStarted: kind == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START}
}

// workflowError turns whatever a workflow returns into an error whose type the
// client can read. Cancellation and continue-as-new pass, as does everything
// that has nothing to do with apcore.
func workflowError(err error) error {
	found := apcore.AsError(err)
	if found == nil || sdktemporal.IsCanceledError(err) {
		return err
	}
	return sdktemporal.NewApplicationErrorWithOptions(found.Message, string(found.Code), sdktemporal.ApplicationErrorOptions{
		// All that could be retried has been; a retry of the whole run would ask
		// people again and repeat effects under new call ids.
		NonRetryable: true,
		Details:      []any{detail(found.Map())},
		Category:     categoryOf(found.Code),
	})
}

func categoryOf(code apcore.Code) sdktemporal.ApplicationErrorCategory {
	if durable.Expected(code) {
		return sdktemporal.ApplicationErrorCategoryBenign
	}
	return sdktemporal.ApplicationErrorCategoryUnspecified
}
