package durable

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// TaskRecord is a task as its workflow keeps it: what the query apcore/task
// answers, and, as a [TaskRecord.Head], what lists are made of. It never holds
// the inputs of the task.
type TaskRecord struct {
	V    int             `json:"v"`
	Task apcore.TaskInfo `json:"task"`
	// Place orders lists: the time of the first save in microseconds since 1970,
	// by the clock of the engine. Zero means the start of the workflow.
	Place int64 `json:"place,omitempty"`
	// Seq counts the writes of the record, from 1. Place and Seq together tell
	// which of two copies is the newer one.
	Seq int64 `json:"seq"`
	// Deleted says that there is no such record any more. Engines that cannot
	// remove a closed workflow at once show this in its place.
	Deleted bool `json:"deleted,omitempty"`
	// Reopened says that the record was saved again after a run of it had closed,
	// so that the engine may still list that run.
	Reopened bool `json:"reopened,omitempty"`
	// Cut says that this is a head whose result or error text is not all there.
	Cut bool `json:"cut,omitempty"`
	// Owner names the manager that submitted the task; empty for stored records.
	Owner string `json:"owner,omitempty"`
	// RequestDigest tells whether two requests with one key ask for the same.
	RequestDigest string `json:"request_digest,omitempty"`
	// InputRequired marks a pending task that waits for somebody's decision.
	InputRequired bool `json:"input_required,omitempty"`
	// Approval is what it waits for; only with InputRequired.
	Approval *TaskApproval `json:"approval,omitempty"`
	// NextAttemptAt is when the next attempt starts, in seconds since 1970; nil
	// unless the task waits for it.
	NextAttemptAt *float64 `json:"next_attempt_at,omitempty"`
	// ErrorCode is the code of the last attempt's error.
	ErrorCode apcore.Code `json:"error_code,omitempty"`
	// LateOutcome says how the call of a cancelled task ended after all:
	// "completed" or the code of its error. Empty while it is not known, and when
	// the cancellation ended the call.
	LateOutcome string `json:"late_outcome,omitempty"`
}

// TaskApproval refers to the approval that a task waits for.
type TaskApproval struct {
	WorkflowID string    `json:"workflow_id"`
	ApprovalID string    `json:"approval_id"`
	ModuleID   string    `json:"module_id"`
	Deadline   time.Time `json:"deadline,omitzero"`
}

// TaskRecordInput starts the workflow that keeps a record.
type TaskRecordInput struct {
	V      int        `json:"v"`
	Record TaskRecord `json:"record"`
	// SaveID names the save that the record comes from; empty after a
	// continue-as-new.
	SaveID string `json:"save_id,omitempty"`
}

// TaskCancelled answers a cancellation.
type TaskCancelled struct {
	// Cancelled says that this request ended the task; false means that it had
	// ended before.
	Cancelled bool `json:"cancelled"`
}

// TaskSave is one write of a record.
type TaskSave struct {
	SaveID string          `json:"save_id"`
	Task   apcore.TaskInfo `json:"task"`
	// Own is the last terminal record that the writer itself has written, zero if
	// there is none.
	Own TaskSaved `json:"own"`
}

// TaskSaved acknowledges a [TaskSave], and names one state of a record.
type TaskSaved struct {
	Place int64 `json:"place"`
	Seq   int64 `json:"seq"`
}

// TaskRequest starts the workflow that runs a task.
type TaskRequest struct {
	V        int    `json:"v"`
	ModuleID string `json:"module_id"`
	// Inputs is a JSON object.
	Inputs json.RawMessage `json:"inputs"`
	// Context is the apcore context that every attempt starts from; empty means
	// the one of the run.
	Context json.RawMessage `json:"context,omitempty"`
	// Retry is the contract's retry, which then replaces the one by annotation;
	// nil leaves it to the annotations.
	Retry *apcore.RetryConfig `json:"retry,omitempty"`
	// IdempotencyKey is the key of the call on every attempt.
	IdempotencyKey string `json:"idempotency_key"`
	// AcceptRepeatedEffects lets Retry repeat a module that is neither readonly
	// nor idempotent after it may have had its effect.
	AcceptRepeatedEffects bool `json:"accept_repeated_effects,omitempty"`
	// ApprovalTimeoutMS is as in [CallRequest].
	ApprovalTimeoutMS int64 `json:"approval_timeout_ms,omitempty"`
	// VersionHint is as in [CallRequest].
	VersionHint string `json:"version_hint,omitempty"`
	// Record is the task as it stands: pending at first, later what a run hands
	// to its successor.
	Record TaskRecord `json:"record"`
}

// MayBecome reports whether a save over this record takes effect, which a store
// of several processes has to decide itself. Over a terminal record these do: the
// same status, a new submission (pending, never started, no retry), and whatever
// comes from the writer of that very record. Everything else is late, and a late
// write never undoes the end of a task.
func (r *TaskRecord) MayBecome(next *apcore.TaskInfo, own TaskSaved) bool {
	if r.Deleted || !r.Task.Status.Terminal() || next.Status == r.Task.Status || own == r.Saved() {
		return true
	}
	return next.Status == apcore.TaskPending && next.RetryCount == 0 && next.StartedAt == nil
}

// Saved names the state of the record.
func (r *TaskRecord) Saved() TaskSaved { return TaskSaved{Place: r.Place, Seq: r.Seq} }

// tombstoneStep puts a tombstone behind writes that happen at the same time.
const tombstoneStep = 1_000_000

// Tombstone is what stands in the place of a deleted record.
func (r *TaskRecord) Tombstone() TaskRecord {
	return TaskRecord{
		V: WireVersion, Place: r.Place, Seq: r.Seq + tombstoneStep, Deleted: true,
		Task: apcore.TaskInfo{TaskID: r.Task.TaskID, ModuleID: cutText(r.Task.ModuleID, maxHeadName), Status: r.Task.Status, CompletedAt: r.Task.CompletedAt},
	}
}

// Closed reports whether nothing is to come for the record.
func (r *TaskRecord) Closed() bool { return r.Deleted || r.Task.Status.Terminal() }

// TaskEnded is the error of a write that came after the end of its task.
func TaskEnded(stored *apcore.TaskInfo, next apcore.TaskStatus) *apcore.Error {
	return newError(CodeTaskEnded, "task %s has ended as %s: %s came too late and is not written", stored.TaskID, stored.Status, next).
		WithDetail("task_id", stored.TaskID).WithDetail("status", string(stored.Status)).WithCause(apcore.ErrTaskEnded)
}

// Newer reports whether the record is a later state than the other one.
func (r *TaskRecord) Newer(other *TaskRecord) bool {
	return r.Place > other.Place || r.Place == other.Place && r.Seq > other.Seq
}

// MaxTaskHeadBytes bounds a head as JSON. Engines warn about larger memos, and a
// page of a list holds hundreds of them.
const MaxTaskHeadBytes = 1600

const (
	maxHeadError = 400 // bytes of an error's text in a head
	maxHeadName  = 256 // bytes of a module id that is none
	// TaskResultRef is the only key of a result that stands for one too large for
	// a list. Its value has task_id, bytes and sha256.
	TaskResultRef = "x-apcore-result-ref"
)

// Head returns the record as lists show it: whole if it fits into
// [MaxTaskHeadBytes], otherwise with a reference in place of the result, see
// [TaskResultRef], and the error cut. A result that is no JSON fails with
// GENERAL_INVALID_INPUT.
func (r TaskRecord) Head() (TaskRecord, error) {
	whole, err := apcore.EncodeJSON(r)
	if err != nil || len(whole) <= MaxTaskHeadBytes {
		return r, err
	}
	if r.Task.Result != nil {
		text, err := apcore.EncodeJSON(r.Task.Result)
		if err != nil {
			return r, err
		}
		sum := sha256.Sum256(text)
		r.Task.Result = map[string]any{TaskResultRef: map[string]any{
			"task_id": r.Task.TaskID, "bytes": len(text), "sha256": hex.EncodeToString(sum[:]),
		}}
	}
	if r.Task.Error != nil {
		r.Task.Error = new(cutText(*r.Task.Error, maxHeadError))
	}
	r.Task.ModuleID = cutText(r.Task.ModuleID, maxHeadName)
	r.Cut = true
	return r, nil
}

func cutText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}

// TaskSweep asks for one page of the reaper's work.
type TaskSweep struct {
	Store string `json:"store"`
	// TaskQueue is where tombstones of the store are closed.
	TaskQueue string `json:"task_queue"`
	// TTLSeconds is how long ended tasks are kept.
	TTLSeconds float64 `json:"ttl_seconds"`
	// Before is the time before which a task has to have ended, in seconds since
	// 1970, exclusive; the run of the sweep sets it.
	Before float64 `json:"before,omitempty"`
}

// TaskSwept reports what a page, or a whole sweep, did.
type TaskSwept struct {
	Pages   int `json:"pages"`
	Expired int `json:"expired"`
	Deleted int `json:"deleted"`
	// More says that the page was full.
	More bool `json:"more,omitempty"`
}

// Add adds a page to a sweep.
func (s *TaskSwept) Add(page TaskSwept) {
	s.Pages += page.Pages
	s.Expired += page.Expired
	s.Deleted += page.Deleted
	s.More = page.More
}
