package temporal

import (
	"cmp"
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// TaskStore is an [apcore.TaskStore] on Temporal: one workflow per record, for
// any number of processes (apcore, async tasks and durability pattern B). It also
// shows the tasks of a [TaskManager] of the same name, which it cannot write.
//
// Save needs a worker on the task queue, made with package worker; everything
// else works without one. Save, Get and Delete of one id are linearizable over
// all processes. Lists are made from the server's visibility, which lags by
// milliseconds to seconds: an instance always lists what it has saved and deleted
// itself, and what others did a little later. The order is that of first saves by
// the server's clock; microseconds, then ids, decide between equals.
//
// A terminal record is kept when a late write comes, see durable.TaskRecord.MayBecome:
// Save then fails with TASK_ENDED, which wraps [apcore.ErrTaskEnded]. Records that
// ended leave with the retention of the namespace.
//
// Its errors tell apart: TASK_STORE_UNAVAILABLE (no answer; it wraps NO_WORKER
// when the server is there and only a worker lacks), TASK_EXPIRED (Get of a record
// that this instance has seen end, longer ago than the retention), CONFIG_INVALID
// (search attributes are missing, details.missing lists them),
// PAYLOAD_TOO_LARGE, GENERAL_INVALID_INPUT. An unknown id is no error. All
// methods may be called concurrently.
type TaskStore struct {
	client  client.Client
	opts    TaskStoreOptions
	overlay *taskOverlay
	ended   *endedTasks
}

// TaskStoreOptions configures a [TaskStore]; only TaskQueue is required.
type TaskStoreOptions struct {
	// TaskQueue is that of the workers that keep records.
	TaskQueue string
	// Name keeps stores of one namespace apart; empty means "tasks".
	Name string
	// Namespace must be the client's; empty means "default".
	Namespace string
	// Timeout bounds one question to the server or a worker; zero means 10 s.
	Timeout time.Duration
	// MaxRecordBytes bounds a record as JSON; zero means 1 MiB, which is also the
	// most: a save may carry the record twice within the server's 4 MiB.
	MaxRecordBytes int
	// DataConverter must be the client's; nil means the SDK's default.
	DataConverter converter.DataConverter
	// Namer makes the persisted names.
	Namer durable.Namer
}

// Defaults of [TaskStoreOptions].
const (
	DefaultTaskStoreName  = "tasks"
	DefaultMaxRecordBytes = 1 << 20
)

const (
	maxStoreName = 64
	// maxWorkflowID is what servers that keep visibility in SQL have room for.
	maxWorkflowID = 255
	saveTries     = 8
)

// NewTaskStore makes a store. It asks the server nothing yet. Options out of
// bounds fail with GENERAL_INVALID_INPUT.
func NewTaskStore(c client.Client, opts TaskStoreOptions) (*TaskStore, error) {
	switch {
	case c == nil:
		return nil, apcore.NewError(apcore.CodeInvalidInput, "a task store needs a client")
	case opts.TaskQueue == "":
		return nil, apcore.NewError(apcore.CodeInvalidInput, "TaskStoreOptions.TaskQueue is empty: name the queue of the workers that keep the records")
	case opts.Timeout < 0:
		return nil, apcore.NewError(apcore.CodeInvalidInput, "TaskStoreOptions.Timeout is %v: give zero for %v or a positive one", opts.Timeout, defaultAnswerTimeout)
	case opts.MaxRecordBytes < 0 || opts.MaxRecordBytes > DefaultMaxRecordBytes:
		return nil, apcore.NewError(apcore.CodeInvalidInput, "TaskStoreOptions.MaxRecordBytes is %d: give 1 to %d, or zero for the most", opts.MaxRecordBytes, DefaultMaxRecordBytes)
	case len(opts.Name) > maxStoreName || !plainName(opts.Name):
		return nil, apcore.NewError(apcore.CodeInvalidInput, "TaskStoreOptions.Name is %q: give up to %d letters, digits, dots, dashes and underscores", opts.Name, maxStoreName)
	}
	opts.Name, opts.Namespace = cmp.Or(opts.Name, DefaultTaskStoreName), cmp.Or(opts.Namespace, client.DefaultNamespace)
	if opts.Timeout == 0 {
		opts.Timeout = defaultAnswerTimeout
	}
	if opts.MaxRecordBytes == 0 {
		opts.MaxRecordBytes = DefaultMaxRecordBytes
	}
	if opts.DataConverter == nil {
		opts.DataConverter = converter.GetDefaultDataConverter()
	}
	return &TaskStore{client: c, opts: opts, overlay: newTaskOverlay(), ended: newEndedTasks()}, nil
}

func plainName(name string) bool {
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
		default:
			return false
		}
	}
	return true
}

// Save implements [apcore.TaskStore]. It returns once the record is durable.
func (s *TaskStore) Save(ctx context.Context, info apcore.TaskInfo) error {
	info, err := info.Clone()
	if err != nil {
		return err
	}
	if err := s.checkRecord(&info); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	for range saveTries {
		var again bool
		again, err = s.trySave(bounded, &info)
		if !again {
			break
		}
	}
	return s.storeError(ctx, "save", info.TaskID, err)
}

// trySave writes once; again says that the record changed between two steps.
func (s *TaskStore) trySave(ctx context.Context, info *apcore.TaskInfo) (again bool, err error) {
	record := durable.TaskRecord{V: durable.WireVersion, Task: *info, Seq: 1}
	err = s.put(ctx, record, enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE)
	if err == nil || !isClosed(err) {
		return false, err
	}
	stored, err := s.describe(ctx, info.TaskID)
	switch {
	case err != nil:
		return false, err
	case stored == nil || stored.open:
		return true, errors.New("the record keeps changing")
	case !stored.record.MayBecome(info, s.ended.own(info.TaskID)):
		return false, durable.TaskEnded(&stored.record.Task, info.Status)
	case !stored.record.Deleted && !stored.record.Cut && sameTask(&stored.record.Task, info):
		return false, nil
	case !stored.record.Deleted:
		record.Place, record.Seq = stored.record.Place, stored.record.Seq+1
	}
	record.Reopened = true
	if err := s.put(ctx, record, enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE); err != nil {
		return isClosed(err), err
	}
	// The run of the old record would stay in the filtered lists of others until
	// its retention ends. The save itself is done, whatever comes of this.
	_ = s.deleteRun(ctx, info.TaskID, stored.runID)
	return false, nil
}

// sameTask compares what the wire carries.
func sameTask(a, b *apcore.TaskInfo) bool {
	x, errX := apcore.EncodeJSON(a)
	y, errY := apcore.EncodeJSON(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// put starts the workflow of a record, or updates the one that is open.
func (s *TaskStore) put(ctx context.Context, record durable.TaskRecord, reuse enumspb.WorkflowIdReusePolicy) error {
	saveID := uuid.NewString()
	options, err := s.startOptions(&record)
	if err != nil {
		return err
	}
	options.WorkflowIDReusePolicy = reuse
	options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	start := s.client.NewWithStartWorkflowOperation(options, s.opts.Namer.TaskRecord(),
		durable.TaskRecordInput{V: durable.WireVersion, Record: record, SaveID: saveID})
	handle, err := s.client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateID: saveID, UpdateName: s.opts.Namer.TaskSave(), WaitForStage: client.WorkflowUpdateStageCompleted,
			Args: []any{durable.TaskSave{SaveID: saveID, Task: record.Task, Own: s.ended.own(record.Task.TaskID)}},
		},
	})
	var saved durable.TaskSaved
	if err == nil {
		err = handle.Get(ctx, &saved)
	}
	if err != nil {
		return err
	}
	record.Place, record.Seq = saved.Place, saved.Seq
	s.remember(&record)
	return nil
}

// remember keeps what visibility may not show yet.
func (s *TaskStore) remember(record *durable.TaskRecord) {
	if head, err := record.Head(); err == nil {
		s.overlay.put(&head)
	}
	if record.Task.Status.Terminal() {
		s.ended.wrote(record.Task.TaskID, time.Now(), record.Saved())
	}
}

// startOptions are common to records and tasks.
func (s *TaskStore) startOptions(record *durable.TaskRecord) (client.StartWorkflowOptions, error) {
	head, err := record.Head()
	if err != nil {
		return client.StartWorkflowOptions{}, err
	}
	attributes := append(taskAttributes(record), searchTaskStore.ValueSet(s.opts.Name))
	return client.StartWorkflowOptions{
		ID: s.workflowID(record.Task.TaskID), TaskQueue: s.opts.TaskQueue,
		Memo:                  map[string]any{durable.MemoTask: head},
		TypedSearchAttributes: sdktemporal.NewSearchAttributes(attributes...),
		StaticSummary:         shorten(record.Task.ModuleID),
	}, nil
}

func (s *TaskStore) workflowID(taskID string) string {
	return s.opts.Namer.TaskID(s.opts.Name, taskID)
}

// checkRecord refuses what the server would refuse, before it is asked.
func (s *TaskStore) checkRecord(info *apcore.TaskInfo) error {
	if err := s.checkTaskID(info.TaskID); err != nil {
		return err
	}
	text, err := apcore.EncodeJSON(info)
	if err != nil {
		return apcore.NewError(apcore.CodeInvalidInput, "the record of task %s cannot be written as JSON: %w", info.TaskID, err).
			WithDetail("task_id", info.TaskID)
	}
	if len(text) > s.opts.MaxRecordBytes {
		return tooLarge(info.TaskID, "record", len(text), s.opts.MaxRecordBytes)
	}
	return nil
}

func tooLarge(taskID, path string, size, limit int) error {
	return apcore.NewError(durable.CodePayloadTooLarge, "the %s of task %s has %d bytes, %d are allowed: keep it elsewhere and save a reference", path, taskID, size, limit).
		WithDetail("task_id", taskID).WithDetail("path", path).WithDetail("size", size).WithDetail("limit", limit)
}

// checkTaskID lets pass what can be part of a workflow id.
func (s *TaskStore) checkTaskID(taskID string) error {
	if taskID == "" || !utf8.ValidString(taskID) {
		return apcore.NewError(apcore.CodeInvalidInput, "task id %q: give a text that is not empty, in UTF-8", taskID)
	}
	if size := len(s.workflowID(taskID)); size > maxWorkflowID {
		return tooLarge(taskID[:min(len(taskID), 36)]+"…", "task_id", size, maxWorkflowID)
	}
	return nil
}

var _ apcore.TaskStore = (*TaskStore)(nil)
