package durable

import (
	"fmt"
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

	// SearchModuleID and the others are search attributes.
	SearchModuleID         = "ApcoreModuleId"
	SearchPendingApprovals = "ApcorePendingApprovals"
	SearchState            = "ApcoreState"
	SearchApproverGroup    = "ApcoreApproverGroup"
	SearchTaskStatus       = "ApcoreTaskStatus"
	// SearchTaskStore holds the name of the store that a task is in, and
	// SearchTaskEnd its completed_at, so that lists and reapers find them.
	SearchTaskStore = "ApcoreTaskStore"
	SearchTaskEnd   = "ApcoreTaskCompletedAt"

	// MemoApprovals is the memo key under which a run shows its pending approvals,
	// a list of [ApprovalHead].
	MemoApprovals = "apcore-approvals"
	// MemoTask is the memo field that holds the head of a [TaskRecord].
	MemoTask = "apcore-task"
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

// Task names the workflow that runs a task, and the query that answers with the
// [TaskRecord] of a task or of a stored record.
func (n Namer) Task() string { return n.name("task") }

// TaskRecord names the workflow that keeps one record of a task store.
func (n Namer) TaskRecord() string { return n.name("task-record") }

// TaskSave names the update that writes a stored record.
func (n Namer) TaskSave() string { return n.name("task-save") }

// TaskCancel names the update that cancels a running task.
func (n Namer) TaskCancel() string { return n.name("task-cancel") }

// TaskReaper names the workflow of one sweep of the reaper.
func (n Namer) TaskReaper() string { return n.name("task-reaper") }

// TaskSweep names the unit (activity) that deletes one page of expired tasks.
func (n Namer) TaskSweep() string { return n.name("task-sweep") }

// TaskID makes the workflow id of a task in a store:
// apcore/tasks/<store>/<task id>. Engines carry ids in headers, so bytes that are
// no printable ASCII, and "%", are written as %XX.
func (n Namer) TaskID(store, taskID string) string { return n.name("tasks", store, printable(taskID)) }

func printable(id string) string {
	var b strings.Builder
	for i := range len(id) {
		if c := id[i]; c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// TaskReaperID makes the id of the schedule that reaps a store.
func (n Namer) TaskReaperID(store string) string { return n.name("task-reaper", store) }
