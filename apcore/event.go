package apcore

import "time"

// Event tells a host what happened (apcore §9.16). Events are best effort and
// never change an outcome.
type Event struct {
	Type      string
	ModuleID  string
	Timestamp time.Time
	// Severity is "info", "warn" or "error".
	Severity string
	// Data is the payload, JSON values without secrets.
	Data map[string]any
}

// The events of the executor.
const (
	EventApprovalDecision = "apcore.approval.decision"
	EventPolicyOverride   = "apcore.policy.override"
	EventACLDenied        = "apcore.acl.denied"
)

// emit hands an event to the host; a panic there changes nothing.
func (e *Executor) emit(eventType, moduleID, severity string, data map[string]any) {
	if e.onEvent == nil {
		return
	}
	defer func() {
		if cause := recover(); cause != nil {
			e.logger.Error("apcore: event listener panicked", "event", eventType, "panic_type", typeName(cause))
		}
	}()
	data["module_id"] = moduleID
	e.onEvent(Event{Type: eventType, ModuleID: moduleID, Timestamp: time.Now().UTC(), Severity: severity, Data: data})
}
