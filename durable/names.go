package durable

import (
	"strings"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Operation is a kind of durable unit that works on one module.
type Operation string

// The operations; each has its own family of names.
const (
	OperationCall    Operation = "call"
	OperationStream  Operation = "stream"
	OperationPreview Operation = "preview"
)

// Names that outlive code. A running workflow refers to them for months, so
// they never change; compat/ pins them.
const (
	// ContextHeader carries a serialised apcore context, see [apcore.Context].
	ContextHeader = "apcore-context"
	// IdempotencyKey is the context data key that holds the key of the call: the
	// same on every attempt, after an approval and after a reset.
	IdempotencyKey = "x-idempotency-key"
	// AttemptKey is the context data key that holds the number of the attempt,
	// from 1.
	AttemptKey = "x-attempt"
	// ModuleSettingsKey is the key in a module's annotations.extra or metadata
	// under which it sets timeouts and the like, see [Settings].
	ModuleSettingsKey = "x-temporal"

	// SearchModuleID, SearchPendingApprovals, SearchState, SearchApproverGroup
	// and SearchTaskStatus are search attributes.
	SearchModuleID         = "ApcoreModuleId"
	SearchPendingApprovals = "ApcorePendingApprovals"
	SearchState            = "ApcoreState"
	SearchApproverGroup    = "ApcoreApproverGroup"
	SearchTaskStatus       = "ApcoreTaskStatus"

	// MemoApprovals is the memo key under which a run shows its pending approvals,
	// a list of [ApprovalHead].
	MemoApprovals = "apcore-approvals"
)

const defaultPrefix = "apcore"

// Namer makes the names of units, signals and queries and reads them back. The
// zero value is the default. Module ids cannot contain "/", so names and ids
// map one to one; names contain no dots, because some engines compare only what
// follows the last one.
type Namer struct {
	// Prefix begins every name; empty means "apcore".
	Prefix string
}

// Validate fails with CONFIG_INVALID for a prefix that is not made of letters,
// digits, "_", "-" and "/" or that begins with "__temporal".
func (n Namer) Validate() error {
	bad := strings.IndexFunc(n.Prefix, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-/", r)
	})
	if bad >= 0 || strings.HasPrefix(n.Prefix, reservedPrefix) {
		return newError(apcore.CodeConfigInvalid, "Namer.Prefix is %q: give letters, digits, \"_\", \"-\" and \"/\", not beginning with %q, or nothing for %q", n.Prefix, reservedPrefix, defaultPrefix)
	}
	return nil
}

// reservedPrefix begins the names that the engine keeps for itself.
const reservedPrefix = "__temporal"

func (n Namer) name(parts ...string) string {
	prefix := n.Prefix
	if prefix == "" {
		prefix = defaultPrefix
	}
	return prefix + "/" + strings.Join(parts, "/")
}

// Unit names the unit (activity) of an operation on a module:
// apcore/call/payments/refund.
func (n Namer) Unit(operation Operation, moduleID string) string {
	return n.name(string(operation), strings.ReplaceAll(moduleID, ".", "/"))
}

// ParseUnit is the inverse of [Namer.Unit]; ok is false for any other text.
func (n Namer) ParseUnit(unit string) (operation Operation, moduleID string, ok bool) {
	rest, ours := strings.CutPrefix(unit, n.name(""))
	if !ours {
		return "", "", false
	}
	kind, path, _ := strings.Cut(rest, "/")
	switch operation = Operation(kind); operation {
	case OperationCall, OperationStream, OperationPreview:
	default:
		return "", "", false
	}
	moduleID = strings.ReplaceAll(path, "/", ".")
	if strings.Contains(path, ".") || apcore.ValidateModuleID(moduleID) != nil {
		return "", "", false
	}
	return operation, moduleID, true
}

// Catalog names the unit that lists the modules of a worker.
func (n Namer) Catalog() string { return n.name("catalog") }

// Audit names the unit that hands audit records to a sink.
func (n Namer) Audit() string { return n.name("audit") }

// Approval names the signal and the update that carry a [Decision].
func (n Namer) Approval() string { return n.name("approval") }

// Forward names the signal with which a child shows an [Approval] at the root of
// its tree.
func (n Namer) Forward() string { return n.name("approval-forward") }

// Approvals names the query that answers with every [Approval] of a run.
func (n Namer) Approvals() string { return n.name("approvals") }

// ModuleCall names the workflow of one call.
func (n Namer) ModuleCall() string { return n.name("module-call") }
