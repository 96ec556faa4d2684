package apcore

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// Defaults of [AsyncTaskOptions] (apcore, async tasks).
const (
	DefaultMaxConcurrentTasks = 10
	DefaultMaxTasks           = 1000
)

// AsyncTaskManager runs module calls in the background of this process and keeps
// their state in a [TaskStore] (apcore, async tasks). It never resumes a task of
// an earlier process: who wants that lists the pending and running records at
// start-up and submits them again or fails them.
//
// All methods may be called concurrently. Errors of the store are passed on; one
// without a code, and a panic, become TASK_STORE_UNAVAILABLE. While a task runs in the
// background there is nobody to pass them to: they are logged, the task ends,
// and its record stays as it was.
type AsyncTaskManager struct {
	executor  *Executor
	store     guardedStore
	logger    *slog.Logger
	maxTasks  int
	slots     chan struct{} // one for each running task
	admission taskLock      // makes counting and saving one step
	foreign   taskLock      // for records without a task here

	mu     sync.Mutex
	closed bool
	order  []*asyncTask // in order of submission
	reaper *Reaper
}

// AsyncTaskOptions configures an [AsyncTaskManager].
type AsyncTaskOptions struct {
	// Store keeps the records; nil means a fresh [InMemoryTaskStore].
	Store TaskStore
	// MaxConcurrent bounds the modules that run at once; zero means 10.
	MaxConcurrent int
	// MaxTasks bounds the pending and running records of the store; zero means
	// 1000.
	MaxTasks int
	// Logger takes what nobody else can be told; nil means slog.Default().
	Logger *slog.Logger
}

// NewAsyncTaskManager makes a manager. It has no goroutine until a task is
// submitted or the reaper started. A nil executor and negative bounds fail with
// GENERAL_INVALID_INPUT.
func NewAsyncTaskManager(executor *Executor, opts AsyncTaskOptions) (*AsyncTaskManager, error) {
	if executor == nil {
		return nil, NewError(CodeInvalidInput, "an async task manager needs an executor")
	}
	if opts.MaxConcurrent < 0 {
		return nil, NewError(CodeInvalidInput, "AsyncTaskOptions.MaxConcurrent is %d: give a positive number, or zero for %d", opts.MaxConcurrent, DefaultMaxConcurrentTasks)
	}
	if opts.MaxTasks < 0 {
		return nil, NewError(CodeInvalidInput, "AsyncTaskOptions.MaxTasks is %d: give a positive number, or zero for %d", opts.MaxTasks, DefaultMaxTasks)
	}
	if isNil(opts.Store) {
		opts.Store = NewInMemoryTaskStore()
	}
	return &AsyncTaskManager{
		executor: executor, store: guardedStore{opts.Store}, logger: loggerOr(opts.Logger),
		maxTasks:  intOr(opts.MaxTasks, DefaultMaxTasks),
		slots:     make(chan struct{}, intOr(opts.MaxConcurrent, DefaultMaxConcurrentTasks)),
		admission: newTaskLock(), foreign: newTaskLock(),
	}, nil
}

// Store returns the store of the manager.
func (m *AsyncTaskManager) Store() TaskStore { return m.store.store }

// Submit records a call as pending and runs it in the background, in turn with
// the others. It returns the task's id as soon as the record is saved.
//
// Inputs are copied; nil means {}. Every attempt starts from c, nil for a fresh
// context, and so shares its data and its global deadline. Neither the end of ctx
// nor c's cancel token reaches the task, which may outlive the call that
// submitted it: [AsyncTaskManager.Cancel] ends it. A nil retry means no retry.
//
// It fails with TASK_LIMIT_EXCEEDED when too many records of the store are
// pending or running, and with GENERAL_INVALID_INPUT when the inputs are no JSON,
// retry is out of bounds or the manager is shut down. An unknown or malformed
// module id is none of its errors: that task fails.
func (m *AsyncTaskManager) Submit(ctx context.Context, moduleID string, inputs map[string]any, c *Context, retry *RetryConfig) (string, error) {
	t, err := m.newTask(ctx, moduleID, inputs, c, retry)
	if err != nil {
		return "", err
	}
	if err := m.admit(ctx, t); err != nil {
		t.end()
		return "", err
	}
	go m.run(t)
	return t.id, nil
}

func (m *AsyncTaskManager) newTask(ctx context.Context, moduleID string, inputs map[string]any, c *Context, retry *RetryConfig) (*asyncTask, error) {
	if retry == nil {
		retry = new(DefaultRetryConfig())
	}
	if err := retry.Validate(); err != nil {
		return nil, err
	}
	inputs, err := jsonvalue.CloneObject(inputs)
	if err != nil {
		return nil, NewError(CodeInvalidInput, "inputs of module %q are no JSON object: %w", moduleID, err).WithDetail("module_id", moduleID)
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, NewError(CodeInternal, "no task id can be made: %w", err)
	}
	if c == nil {
		c = NewContext(ContextOptions{Logger: m.logger})
	}
	t := &asyncTask{
		id: id.String(), moduleID: moduleID, inputs: inputs, retry: *retry,
		token: NewCancelToken(), lock: newTaskLock(), ended: make(chan struct{}),
	}
	t.caller = c.WithCancelToken(t.token)
	t.ctx, t.release = context.WithCancel(context.WithoutCancel(ctx))
	return t, nil
}

// admit counts, registers and saves. The task is locked meanwhile, so that a
// shutdown finds it and waits for its record.
func (m *AsyncTaskManager) admit(ctx context.Context, t *asyncTask) error {
	if err := m.admission.acquire(ctx); err != nil {
		return err
	}
	defer m.admission.release()
	if err := m.underLimit(ctx); err != nil {
		return err
	}
	if err := t.lock.acquire(ctx); err != nil {
		return err
	}
	defer t.lock.release()
	if err := m.register(t); err != nil {
		return err
	}
	err := m.store.Save(ctx, TaskInfo{
		TaskID: t.id, ModuleID: t.moduleID, Status: TaskPending,
		SubmittedAt: epochSeconds(time.Now()), MaxRetries: t.retry.MaxRetries,
	})
	if err != nil {
		m.forget(t)
	}
	return storeError("save", err)
}

func (m *AsyncTaskManager) underLimit(ctx context.Context) error {
	infos, err := m.ListTasks(ctx, nil) // one list, for a task may change its state between two
	if err != nil {
		return err
	}
	active := 0
	for i := range infos {
		if !infos[i].Status.Terminal() {
			active++
		}
	}
	if active < m.maxTasks {
		return nil
	}
	return NewError(CodeTaskLimitExceeded, "Task limit reached (%d)", m.maxTasks).
		WithDetail("max_tasks", m.maxTasks)
}

func (m *AsyncTaskManager) register(t *asyncTask) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errShutDown()
	}
	m.order = append(m.order, t)
	return nil
}

func errShutDown() *Error {
	return NewError(CodeInvalidInput, "the async task manager is shut down")
}
