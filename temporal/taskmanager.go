package temporal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// TaskManager is the durable counterpart of [apcore.AsyncTaskManager]: a task is a
// workflow, which outlives every process (apcore, async tasks). Any number of
// managers of one name, in any number of processes, work with the same tasks.
// Nothing has to be recovered at start-up, because nothing stops with a process: a
// task goes on as soon as a worker polls its queue.
//
// It differs from the in-memory manager where a durable task has to:
//   - MaxConcurrent is a matter of the workers (their concurrency and rate limits,
//     priority and fairness of a task), not of the manager.
//   - A task without retry has the retries of its module's annotations.
//   - A retry never repeats a module that is neither readonly nor idempotent after
//     it may have had its effect, see [TaskSubmission], nor asks an approver again
//     who said no.
//   - Status running begins when the call is scheduled; it may still wait for a
//     worker. A task that waits for an approval is pending, and its record (see
//     [TaskStore.Record]) has input_required and the approval's reference.
//
// Errors are those of [TaskStore], and those said at the methods.
type TaskManager struct {
	store *TaskStore
	opts  TaskManagerOptions
	owner string

	mu     sync.Mutex // makes counting and starting one step
	closed bool
}

// TaskManagerOptions configures a [TaskManager]; only TaskQueue is required.
type TaskManagerOptions struct {
	TaskStoreOptions
	// MaxTasks bounds the pending and running tasks; zero means no bound. Within a
	// manager it is exact. Over several it is as exact as the server's visibility,
	// which lags, and each submission close to the bound costs a list.
	MaxTasks int
}

// NewTaskManager makes a manager. Options out of bounds fail with
// GENERAL_INVALID_INPUT.
func NewTaskManager(c client.Client, opts TaskManagerOptions) (*TaskManager, error) {
	if opts.MaxTasks < 0 {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "TaskManagerOptions.MaxTasks is %d: give a positive number, or zero for no bound", opts.MaxTasks)
	}
	store, err := NewTaskStore(c, opts.TaskStoreOptions)
	if err != nil {
		return nil, err
	}
	return &TaskManager{store: store, opts: opts, owner: uuid.NewString()}, nil
}

// Store returns the store that shows the tasks.
func (m *TaskManager) Store() *TaskStore { return m.store }

// TaskSubmission asks for a task; only ModuleID is required.
type TaskSubmission struct {
	ModuleID string
	// Inputs become a JSON object; nil means {}.
	Inputs map[string]any
	// Context is what every attempt starts from; nil means that of [WithContext],
	// or a fresh one.
	Context *apcore.Context
	// Retry takes the place of the module's retries by annotation, with the
	// contract's exact pauses; nil leaves those.
	Retry *apcore.RetryConfig
	// AcceptRepeatedEffects lets Retry repeat a module that is neither readonly nor
	// idempotent although its effect may then happen twice.
	AcceptRepeatedEffects bool
	// RequestKey names the request: a second one with the same key gets the id of
	// the first and starts nothing, as long as the record of the first is kept.
	// Empty means that every submission is a new task.
	RequestKey string
	// ApprovalTimeout is as in [CallOptions].
	ApprovalTimeout time.Duration
	// VersionHint names a wanted version of the module.
	VersionHint string
	// Timeout ends the task, waits and retries included; zero means never.
	Timeout time.Duration
	// Priority, FairnessKey and FairnessWeight order the tasks that wait for
	// workers, see Temporal's task queue priority and fairness.
	Priority       int
	FairnessKey    string
	FairnessWeight float32
}

// Submit starts a task and returns its id as soon as the server has it; no worker
// need be there. It is [TaskManager.Start] with the parameters of the in-memory
// manager.
func (m *TaskManager) Submit(ctx context.Context, moduleID string, inputs map[string]any, c *apcore.Context, retry *apcore.RetryConfig) (string, error) {
	return m.Start(ctx, TaskSubmission{ModuleID: moduleID, Inputs: inputs, Context: c, Retry: retry})
}

// Start starts a task and returns its id as soon as the server has it.
//
// It fails with TASK_LIMIT_EXCEEDED, with GENERAL_INVALID_INPUT when the inputs are
// no JSON object, a field is out of bounds, a request key was used for another
// request or the manager is shut down, with PAYLOAD_TOO_LARGE, and with
// TOKEN_REFUSED for inputs that bring an approval token. An unknown or malformed
// module id is none of its errors: that task fails.
func (m *TaskManager) Start(ctx context.Context, submission TaskSubmission) (string, error) {
	request, err := m.request(&submission)
	if err != nil {
		return "", err
	}
	bounded, cancel := context.WithTimeout(ctx, m.store.opts.Timeout)
	defer cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return "", apcore.NewError(apcore.CodeInvalidInput, "the task manager is shut down")
	}
	if err := m.admit(ctx); err != nil {
		return "", err
	}
	return request.Record.Task.TaskID, m.store.storeError(ctx, "save", request.Record.Task.TaskID, m.start(bounded, request, &submission))
}

// request turns a submission into the input of the workflow.
func (m *TaskManager) request(submission *TaskSubmission) (*durable.TaskRequest, error) {
	if err := submission.check(); err != nil {
		return nil, err
	}
	inputs, err := encodeInputs(submission.ModuleID, submission.Inputs, DefaultMaxInputBytes)
	if err != nil {
		return nil, err
	}
	id, err := taskID(m.store.opts.Name, submission.RequestKey)
	if err != nil {
		return nil, err
	}
	request := &durable.TaskRequest{
		V: durable.WireVersion, ModuleID: submission.ModuleID, Inputs: inputs, IdempotencyKey: m.store.workflowID(id),
		Retry: submission.Retry, AcceptRepeatedEffects: submission.AcceptRepeatedEffects, VersionHint: submission.VersionHint,
		ApprovalTimeoutMS: CallOptions{ApprovalTimeout: submission.ApprovalTimeout}.approvalTimeoutMS(),
		Record: durable.TaskRecord{
			V: durable.WireVersion, Seq: 1, Owner: m.owner,
			Task: apcore.TaskInfo{TaskID: id, ModuleID: submission.ModuleID, Status: apcore.TaskPending, SubmittedAt: epochSeconds(time.Now())},
		},
	}
	if submission.Context != nil {
		if request.Context, err = apcore.EncodeJSON(submission.Context.Serialize()); err != nil {
			return nil, err
		}
		if err := durable.CheckSize(submission.ModuleID, "context", len(request.Context), DefaultMaxContextBytes); err != nil {
			return nil, err
		}
	}
	if submission.Retry != nil {
		request.Record.Task.MaxRetries = submission.Retry.MaxRetries
	}
	digest := sha256.New()
	digest.Write([]byte(submission.ModuleID + "\n"))
	digest.Write(inputs)
	request.Record.RequestDigest = hex.EncodeToString(digest.Sum(nil))
	return request, nil
}

func (s *TaskSubmission) check() error {
	if s.Retry != nil {
		if err := s.Retry.Validate(); err != nil {
			return err
		}
	}
	switch {
	case len(s.ModuleID) > maxKey:
		return apcore.NewError(apcore.CodeInvalidInput, "TaskSubmission.ModuleID has %d bytes, %d are allowed", len(s.ModuleID), maxKey)
	case len(s.RequestKey) > maxKey:
		return apcore.NewError(apcore.CodeInvalidInput, "TaskSubmission.RequestKey has %d bytes, %d are allowed", len(s.RequestKey), maxKey)
	case s.ApprovalTimeout < 0 && s.ApprovalTimeout != durable.NoDeadline:
		return apcore.NewError(apcore.CodeInvalidInput, "TaskSubmission.ApprovalTimeout is %v: give zero for the worker's, NoDeadline for none or a positive one", s.ApprovalTimeout)
	case s.Timeout < 0:
		return apcore.NewError(apcore.CodeInvalidInput, "TaskSubmission.Timeout is %v: give zero for none or a positive one", s.Timeout)
	case s.Priority < 0 || s.Priority > 5:
		return apcore.NewError(apcore.CodeInvalidInput, "TaskSubmission.Priority is %d: give 1 (first) to 5, or zero for the default", s.Priority)
	case len(s.FairnessKey) > 64:
		return apcore.NewError(apcore.CodeInvalidInput, "TaskSubmission.FairnessKey has %d bytes, 64 are allowed", len(s.FairnessKey))
	case s.FairnessWeight < 0 || math.IsNaN(float64(s.FairnessWeight)) || s.FairnessWeight > 1000:
		return apcore.NewError(apcore.CodeInvalidInput, "TaskSubmission.FairnessWeight is %v: give 0.001 to 1000, or zero for 1", s.FairnessWeight)
	}
	return nil
}

// taskID makes a UUID of version 4: a random one, or the one that a request key
// stands for in a store.
func taskID(store, key string) (string, error) {
	if key == "" {
		id, err := uuid.NewRandom()
		if err != nil {
			return "", apcore.NewError(apcore.CodeInternal, "no task id can be made: %w", err)
		}
		return id.String(), nil
	}
	sum := sha256.Sum256([]byte(store + "\n" + key))
	id, err := uuid.NewRandomFromReader(newReader(sum[:]))
	if err != nil {
		return "", apcore.NewError(apcore.CodeInternal, "no task id can be made: %w", err)
	}
	return id.String(), nil
}

func (m *TaskManager) start(ctx context.Context, request *durable.TaskRequest, submission *TaskSubmission) error {
	options, err := m.store.startOptions(&request.Record)
	if err != nil {
		return err
	}
	options.WorkflowExecutionTimeout = submission.Timeout
	options.WorkflowExecutionErrorWhenAlreadyStarted = true
	options.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	options.Priority = sdktemporal.Priority{PriorityKey: submission.Priority, FairnessKey: submission.FairnessKey, FairnessWeight: submission.FairnessWeight}
	for range saveTries {
		_, err = m.store.client.ExecuteWorkflow(ctx, options, m.store.opts.Namer.Task(), *request)
		var started *serviceerror.WorkflowExecutionAlreadyStarted
		if err == nil {
			m.store.overlay.start(&request.Record)
			return nil
		}
		if !errors.As(err, &started) {
			return err
		}
		found, err := m.store.describe(ctx, request.Record.Task.TaskID)
		switch {
		case err != nil:
			return err
		case found == nil: // deleted meanwhile
		case found.record.Deleted:
			options.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
		case found.record.RequestDigest != request.Record.RequestDigest:
			return apcore.NewError(apcore.CodeInvalidInput, "request key %q was used for another module or other inputs: task %s", submission.RequestKey, request.Record.Task.TaskID).
				WithDetail("task_id", request.Record.Task.TaskID)
		default:
			return nil
		}
	}
	return err
}

// admit counts the tasks that are pending or running.
func (m *TaskManager) admit(ctx context.Context) error {
	if m.opts.MaxTasks == 0 {
		return nil
	}
	active, err := m.active(ctx)
	if err != nil {
		return err
	}
	// Visibility may still show as active what has ended.
	for _, record := range active {
		if len(active) < m.opts.MaxTasks {
			break
		}
		found, err := m.store.describe(ctx, record.Task.TaskID)
		if err != nil {
			return m.store.storeError(ctx, "list", record.Task.TaskID, err)
		}
		if found == nil || found.record.Closed() {
			active = active[1:]
		}
	}
	if len(active) < m.opts.MaxTasks {
		return nil
	}
	return apcore.NewError(apcore.CodeTaskLimitExceeded, "Task limit reached (%d)", m.opts.MaxTasks).WithDetail("max_tasks", m.opts.MaxTasks)
}

// active lists the tasks that are pending or running.
func (m *TaskManager) active(ctx context.Context) ([]durable.TaskRecord, error) {
	found, err := m.store.collect(ctx, activeFilter, func(info *apcore.TaskInfo) bool { return !info.Status.Terminal() })
	return recordsOf(found), m.store.storeError(ctx, "list", "", err)
}

const activeFilter = durable.SearchTaskStatus + " IN ('pending', 'running')"

func epochSeconds(t time.Time) float64 { return float64(TaskPlace(t)) / 1e6 }
