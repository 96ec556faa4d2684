package durable

import (
	"slices"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Codes of this layer, beside those of the standard.
const (
	// CodeOutcomeUnknown: an at-most-once call was lost after it may have had its
	// effect. details.call_id tells which, so that the caller can find out.
	CodeOutcomeUnknown apcore.Code = "OUTCOME_UNKNOWN"
	// CodeNestedApproval: a module called another one in process, and that one
	// waits for approval. Lift the inner call into the workflow.
	CodeNestedApproval apcore.Code = "NESTED_APPROVAL_PENDING"
	// CodePayloadTooLarge: a value is over the size limit; details name path,
	// size and limit.
	CodePayloadTooLarge apcore.Code = "PAYLOAD_TOO_LARGE"
	// CodeTokenRefused: a caller brought its own _approval_token.
	CodeTokenRefused apcore.Code = "TOKEN_REFUSED"
	// CodeBuildMismatch: a call was made for another build of its module and the
	// worker refuses such calls; details name what differs.
	CodeBuildMismatch apcore.Code = "MODULE_BUILD_MISMATCH"
	// CodeNameTaken: two owners want one name on a worker; the message names both.
	CodeNameTaken apcore.Code = "NAME_TAKEN"
	// CodeKeyTaken: a request key belongs to another call.
	CodeKeyTaken apcore.Code = "REQUEST_KEY_TAKEN"
	// CodeNoStandalone: the server runs no activities without a workflow.
	CodeNoStandalone apcore.Code = "NO_STANDALONE"

	// CodeDecisionUnknown: the run has no approval of that id.
	CodeDecisionUnknown apcore.Code = "DECISION_UNKNOWN_APPROVAL"
	// CodeDecisionDuplicate: somebody has decided before.
	CodeDecisionDuplicate apcore.Code = "DECISION_DUPLICATE"
	// CodeDecisionLate: the deadline has passed.
	CodeDecisionLate apcore.Code = "DECISION_LATE"
	// CodeDecisionClosed: the call no longer waits, it was cancelled or withdrawn.
	CodeDecisionClosed apcore.Code = "DECISION_CLOSED"
	// CodeDecisionInvalid: a decision lacks a field or has a wrong one.
	CodeDecisionInvalid apcore.Code = "DECISION_INVALID"
	// CodeDecisionForbidden: the approver may not decide about this call.
	CodeDecisionForbidden apcore.Code = "DECISION_FORBIDDEN"
	// CodeDecisionSignature: a decision is not signed by a key that the worker
	// trusts, or not by this approver.
	CodeDecisionSignature apcore.Code = "DECISION_SIGNATURE_INVALID"
	// CodeRunClosed: the workflow has ended; details.status says how.
	CodeRunClosed apcore.Code = "RUN_CLOSED"
	// CodeRunNotFound: there is no such workflow.
	CodeRunNotFound apcore.Code = "RUN_NOT_FOUND"
	// CodeNoWorker: the run is there, but no worker answers for it.
	CodeNoWorker apcore.Code = "NO_WORKER"

	// CodeTaskEnded: a task has a terminal status that a late one may not replace;
	// details.status tells which.
	CodeTaskEnded apcore.Code = "TASK_ENDED"
	// CodeTaskExpired: a task has ended so long ago that the server has deleted
	// it, as its namespace's retention says.
	CodeTaskExpired apcore.Code = "TASK_EXPIRED"

	// CodeGrantMissing: a resumed call carries no grant or no decision.
	CodeGrantMissing apcore.Code = "GRANT_MISSING"
	// CodeGrantSeal: the grant's seal does not fit, it was not made here.
	CodeGrantSeal apcore.Code = "GRANT_SEAL_INVALID"
	// CodeGrantApproval: grant and decision name different approvals.
	CodeGrantApproval apcore.Code = "GRANT_APPROVAL_MISMATCH"
	// CodeGrantCall: the grant belongs to another call.
	CodeGrantCall apcore.Code = "GRANT_CALL_MISMATCH"
	// CodeGrantModule: the grant belongs to another module.
	CodeGrantModule apcore.Code = "GRANT_MODULE_MISMATCH"
	// CodeGrantVersion: the module has another version than the approver saw.
	CodeGrantVersion apcore.Code = "GRANT_VERSION_MISMATCH"
	// CodeGrantSchema: the module has other schemas than the approver saw.
	CodeGrantSchema apcore.Code = "GRANT_SCHEMA_MISMATCH"
	// CodeGrantArguments: the arguments are not those the approver saw.
	CodeGrantArguments apcore.Code = "GRANT_ARGUMENTS_MISMATCH"
	// CodeGrantRequester: somebody else asks than the approver saw.
	CodeGrantRequester apcore.Code = "GRANT_REQUESTER_MISMATCH"
	// CodeGrantExpired: the decision fell after the deadline.
	CodeGrantExpired apcore.Code = "GRANT_EXPIRED"
)

// own lists the codes of this layer, none of which is ever retried: each needs
// somebody to act first.
var own = []apcore.Code{
	CodeOutcomeUnknown, CodeNestedApproval, CodePayloadTooLarge, CodeTokenRefused, CodeBuildMismatch, CodeNameTaken, CodeKeyTaken, CodeNoStandalone,
	CodeDecisionUnknown, CodeDecisionDuplicate, CodeDecisionLate, CodeDecisionClosed, CodeDecisionInvalid,
	CodeDecisionForbidden, CodeDecisionSignature,
	CodeRunClosed, CodeRunNotFound, CodeNoWorker, CodeTaskEnded, CodeTaskExpired,
	CodeGrantMissing, CodeGrantSeal, CodeGrantApproval, CodeGrantCall, CodeGrantModule, CodeGrantVersion,
	CodeGrantSchema, CodeGrantArguments, CodeGrantRequester, CodeGrantExpired,
}

// Codes returns this layer's codes, sorted.
func Codes() []apcore.Code {
	codes := slices.Clone(own)
	slices.Sort(codes)
	return codes
}

func newError(code apcore.Code, format string, args ...any) *apcore.Error {
	return apcore.NewError(code, format, args...).WithRetryable(new(false))
}
