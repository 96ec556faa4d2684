package apcore

import (
	"context"
	"errors"
)

// ApprovalTokenKey is the input under which a caller resumes a pending call
// with the approval id it was given (apcore §7.4). The gate takes it out of the
// inputs on every path; no module ever sees it.
const ApprovalTokenKey = "_approval_token"

// ApprovalStatus is an approver's answer. Anything but the constants counts as
// a refusal; the zero value is never an approval.
type ApprovalStatus string

// The four answers of §7.2.
const (
	ApprovalApproved ApprovalStatus = "approved"
	ApprovalRejected ApprovalStatus = "rejected"
	ApprovalTimeout  ApprovalStatus = "timeout"
	ApprovalPending  ApprovalStatus = "pending"
)

// ApprovalRequest is what a handler decides about (§7.1). It must not be
// changed.
type ApprovalRequest struct {
	ModuleID string
	// CallerID is the calling module, empty at the top level.
	CallerID string
	// Action equals ModuleID.
	Action string
	// Arguments are the inputs without the approval token, before validation and
	// before any middleware, secrets included: redact before showing them.
	Arguments map[string]any
	// RedactedArguments are the same with secrets replaced.
	RedactedArguments map[string]any
	// Context is the callee's context.
	Context *Context
	// Annotations are effective, requires_approval is always set.
	Annotations Annotations
	Description string
	Tags        []string
	// Module says which build asks.
	Module ModuleRef
}

// ApprovalResult is a handler's answer (§7.2).
type ApprovalResult struct {
	Status     ApprovalStatus `json:"status"`
	ApprovedBy string         `json:"approved_by,omitempty"`
	Reason     string         `json:"reason,omitempty"`
	// ApprovalID names the pending request. A pending one without it cannot be
	// resumed, see [PendingApproval].
	ApprovalID string         `json:"approval_id,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"`
}

// ApprovalHandler decides calls that need approval (§7.1). Both methods may
// block and may be called concurrently. An error is not a decision: it ends the
// call unchanged. A nil result is a refusal.
type ApprovalHandler interface {
	// RequestApproval is asked on a call without an approval token.
	RequestApproval(ctx context.Context, request *ApprovalRequest) (*ApprovalResult, error)
	// CheckApproval is asked on a call with one. It learns the id only;
	// [FromContext] tells it which call is at the gate.
	CheckApproval(ctx context.Context, approvalID string) (*ApprovalResult, error)
}

// ApprovalError is an [Error] of code APPROVAL_DENIED, APPROVAL_TIMEOUT or
// APPROVAL_PENDING with the handler's whole answer, which does not cross the
// wire (§7.3).
type ApprovalError struct {
	// Err is the error in its standard form, never nil.
	Err *Error
	// Result is the handler's answer.
	Result ApprovalResult
}

// Error returns the text of Err.
func (e *ApprovalError) Error() string { return e.Err.Error() }

// Unwrap returns Err, so that errors.As and errors.Is reach it.
func (e *ApprovalError) Unwrap() error { return e.Err }

// ApprovalID names the pending request, empty for other answers.
func (e *ApprovalError) ApprovalID() string { return e.Result.ApprovalID }

// ModuleID is the module whose call the answer is about.
func (e *ApprovalError) ModuleID() string { return e.Err.ModuleID() }

// Reason is the approver's reason, empty if none was given.
func (e *ApprovalError) Reason() string { return e.Result.Reason }

// PendingApproval returns the id under which a pending call can be resumed. ok
// is false for every other error, and for a pending one without an id.
func PendingApproval(err error) (approvalID string, ok bool) {
	var approval *ApprovalError
	if errors.As(err, &approval) && approval.Err.Code == CodeApprovalPending {
		return approval.ApprovalID(), approval.ApprovalID() != ""
	}
	if e := AsError(err); e != nil && e.Code == CodeApprovalPending {
		approvalID, ok = e.Details["approval_id"].(string)
		return approvalID, ok && approvalID != ""
	}
	return "", false
}

// approvalOutcome turns an answer into nil (go on) or the error of §7.3.
func approvalOutcome(moduleID string, result *ApprovalResult) error {
	if result == nil {
		result = &ApprovalResult{Status: ApprovalRejected, Reason: "the approval handler gave no answer"}
	}
	var e *Error
	switch result.Status {
	case ApprovalApproved:
		return nil
	case ApprovalTimeout:
		e = NewError(CodeApprovalTimeout, "Approval timed out for module '%s'", moduleID)
	case ApprovalPending:
		// The key is there without an id, too: such a call cannot be resumed.
		e = NewError(CodeApprovalPending, "Approval pending for module '%s'", moduleID).WithDetail("approval_id", textOrNil(result.ApprovalID))
	default:
		e = NewError(CodeApprovalDenied, "Approval denied for module '%s'%s", moduleID, suffix(result.Reason))
	}
	return &ApprovalError{Err: e.WithDetail("module_id", moduleID), Result: *result}
}

func suffix(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// AlwaysDeny refuses everything (§7.5).
type AlwaysDeny struct{}

// RequestApproval refuses.
func (AlwaysDeny) RequestApproval(context.Context, *ApprovalRequest) (*ApprovalResult, error) {
	return &ApprovalResult{Status: ApprovalRejected, Reason: "Always denied"}, nil
}

// CheckApproval refuses.
func (AlwaysDeny) CheckApproval(context.Context, string) (*ApprovalResult, error) {
	return &ApprovalResult{Status: ApprovalRejected, Reason: "Always denied"}, nil
}

// AutoApprove approves everything; it is for tests and trusted hosts (§7.5).
type AutoApprove struct{}

// RequestApproval approves.
func (AutoApprove) RequestApproval(context.Context, *ApprovalRequest) (*ApprovalResult, error) {
	return &ApprovalResult{Status: ApprovalApproved, ApprovedBy: "auto"}, nil
}

// CheckApproval approves.
func (AutoApprove) CheckApproval(context.Context, string) (*ApprovalResult, error) {
	return &ApprovalResult{Status: ApprovalApproved, ApprovedBy: "auto"}, nil
}

// ApprovalCallback decides within the call; it cannot resume (§7.5).
type ApprovalCallback func(ctx context.Context, request *ApprovalRequest) (*ApprovalResult, error)

// RequestApproval calls the function.
func (f ApprovalCallback) RequestApproval(ctx context.Context, request *ApprovalRequest) (*ApprovalResult, error) {
	return f(ctx, request)
}

// CheckApproval refuses: a callback has no memory.
func (ApprovalCallback) CheckApproval(context.Context, string) (*ApprovalResult, error) {
	return &ApprovalResult{Status: ApprovalRejected, Reason: "Phase B not supported by callback handler"}, nil
}

var (
	_ ApprovalHandler = AlwaysDeny{}
	_ ApprovalHandler = AutoApprove{}
	_ ApprovalHandler = ApprovalCallback(nil)
)
