package apcore

import (
	"encoding/json"
	"fmt"
	"log/slog"
)

// This file keeps secrets out of an approval request that is shown as a whole:
// Arguments are for a handler's decision, everything that is written, logged or
// sent has RedactedArguments in their place.

// Map returns what may be shown of a request: its fields in snake_case with
// secrets replaced, and of the context the trace id.
func (r ApprovalRequest) Map() map[string]any {
	shown := map[string]any{
		"module_id": r.ModuleID, "caller_id": textOrNil(r.CallerID), "action": r.Action, "arguments": r.RedactedArguments,
		"annotations": r.Annotations, "description": textOrNil(r.Description), "tags": r.Tags,
	}
	if r.Context != nil {
		shown["trace_id"] = r.Context.traceID
	}
	return shown
}

// MarshalJSON writes [ApprovalRequest.Map].
func (r ApprovalRequest) MarshalJSON() ([]byte, error) { return json.Marshal(r.Map()) }

// LogValue logs [ApprovalRequest.Map].
func (r ApprovalRequest) LogValue() slog.Value { return slog.AnyValue(r.Map()) }

// String shows module and arguments without secrets.
func (r ApprovalRequest) String() string {
	return fmt.Sprintf("approval of %s with %v", r.ModuleID, r.RedactedArguments)
}

// GoString is [ApprovalRequest.String].
func (r ApprovalRequest) GoString() string { return r.String() }
