package apcore

import (
	"encoding/json"
	"errors"
	"maps"
	"time"
)

// timestampLayout is ISO 8601 in UTC with milliseconds (§8.1).
const timestampLayout = "2006-01-02T15:04:05.000Z"

// Map returns the wire form of §8.2 as a JSON object: code, message and
// timestamp always, everything else only when it is set, keys in snake_case.
func (e *Error) Map() map[string]any {
	wire := map[string]any{
		"code":      string(e.Code),
		"message":   e.Message,
		"timestamp": e.Timestamp.UTC().Format(timestampLayout),
	}
	if len(e.Details) > 0 {
		wire["details"] = maps.Clone(e.Details)
	}
	if e.Cause != nil {
		wire["cause"] = e.Cause.Error()
	}
	if e.Retryable != nil {
		wire["retryable"] = *e.Retryable
	}
	if e.UserFixable != nil {
		wire["user_fixable"] = *e.UserFixable
	}
	for key, value := range map[string]string{
		"trace_id": e.TraceID, "ai_guidance": e.AIGuidance, "suggestion": e.Suggestion,
	} {
		if value != "" {
			wire[key] = value
		}
	}
	return wire
}

// MarshalJSON writes the wire form, see [Error.Map].
func (e *Error) MarshalJSON() ([]byte, error) { return json.Marshal(e.Map()) }

// ErrorFromMap rebuilds an error from its wire form. Unknown codes and unset
// retryable or user_fixable stay as they are; unknown keys are ignored; a cause
// may be a text or a nested error object. A map without a code is an error of
// code GENERAL_INTERNAL_ERROR that says so.
func ErrorFromMap(wire map[string]any) *Error {
	code, _ := wire["code"].(string)
	if code == "" {
		return NewError(CodeInternal, "an error arrived without a code")
	}
	e := &Error{Code: Code(code), Retryable: boolOf(wire["retryable"]), UserFixable: boolOf(wire["user_fixable"])}
	e.Message, _ = wire["message"].(string)
	e.TraceID, _ = wire["trace_id"].(string)
	e.AIGuidance, _ = wire["ai_guidance"].(string)
	e.Suggestion, _ = wire["suggestion"].(string)
	if stamp, ok := wire["timestamp"].(string); ok {
		e.Timestamp, _ = time.Parse(time.RFC3339Nano, stamp)
	}
	if details, ok := wire["details"].(map[string]any); ok {
		e.Details = maps.Clone(details)
	}
	switch cause := wire["cause"].(type) {
	case string:
		e.Cause = errors.New(cause)
	case map[string]any:
		e.Cause = ErrorFromMap(cause)
	}
	return e
}

// UnmarshalJSON reads the wire form, see [ErrorFromMap]. Numbers in details
// keep their digits as json.Number.
func (e *Error) UnmarshalJSON(data []byte) error {
	wire, err := decodeObject(data)
	if err != nil {
		return err
	}
	*e = *ErrorFromMap(wire)
	return nil
}

func boolOf(value any) *bool {
	b, ok := value.(bool)
	if !ok {
		return nil
	}
	return &b
}
