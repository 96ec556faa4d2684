package apcore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
)

// TaskStore keeps the records of async tasks. All methods may be called
// concurrently. Records are copied both ways: changing one that was given or
// returned never changes the store. A backend that cannot answer fails with
// TASK_STORE_UNAVAILABLE, see [NewTaskStoreError]; it never looks empty instead.
//
// testsuite.TaskStoreSuite checks an implementation.
type TaskStore interface {
	// Save inserts a record or replaces the one with its TaskID. A replaced record
	// keeps its place in the order of List. A store that several processes share
	// may refuse to replace a terminal record by a late one, with [ErrTaskEnded].
	Save(ctx context.Context, info TaskInfo) error
	// Get returns a record, nil and no error when the id is unknown.
	Get(ctx context.Context, taskID string) (*TaskInfo, error)
	// List returns the records of a status, all of them when it is nil, in the
	// order in which they were first saved.
	List(ctx context.Context, status *TaskStatus) ([]TaskInfo, error)
	// Delete removes a record; an unknown id is no error.
	Delete(ctx context.Context, taskID string) error
	// ListExpired returns the terminal records whose CompletedAt is strictly less
	// than before, in seconds since 1970. Records without CompletedAt are never
	// among them.
	ListExpired(ctx context.Context, before float64) ([]TaskInfo, error)
}

// ErrTaskEnded is what a store's Save wraps when it keeps a terminal record that
// another process has written, and not the one that came too late.
var ErrTaskEnded = errors.New("the task has ended before")

// NewTaskStoreError makes the error of a store that cannot answer, of code
// TASK_STORE_UNAVAILABLE and retryable. The operation is the method's wire name:
// save, get, list, delete or list_expired. The text of cause becomes the reason,
// without passwords in URLs and without what follows the name of a secret.
func NewTaskStoreError(operation string, cause error) *Error {
	cause = outside.cause(cause)
	return NewError(CodeTaskStoreUnavailable, "the task store failed to %s: %w", operation, cause).
		WithDetail("operation", operation).WithDetail("reason", cause.Error())
}

// storeError passes coded errors and ended contexts on and gives others the code
// they lack.
func storeError(operation string, err error) error {
	if err == nil || AsError(err) != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return NewTaskStoreError(operation, err)
}

// InMemoryTaskStore is a [TaskStore] in this process. The zero value is ready.
// Its only error is GENERAL_INVALID_INPUT, for a result that is no JSON object.
type InMemoryTaskStore struct {
	mu      sync.RWMutex
	next    int
	records map[string]taskRecord
}

type taskRecord struct {
	place int // order of first saves
	info  TaskInfo
}

// NewInMemoryTaskStore makes an empty store.
func NewInMemoryTaskStore() *InMemoryTaskStore { return &InMemoryTaskStore{} }

// Save implements [TaskStore].
func (s *InMemoryTaskStore) Save(_ context.Context, info TaskInfo) error {
	info, err := info.Clone()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	record, known := s.records[info.TaskID]
	if !known {
		if s.records == nil {
			s.records = map[string]taskRecord{}
		}
		record.place = s.next
		s.next++
	}
	record.info = info
	s.records[info.TaskID] = record
	return nil
}

// Get implements [TaskStore].
func (s *InMemoryTaskStore) Get(_ context.Context, taskID string) (*TaskInfo, error) {
	s.mu.RLock()
	record, known := s.records[taskID]
	s.mu.RUnlock()
	if !known {
		return nil, nil //nolint:nilnil // the interface's word for unknown
	}
	info, err := record.info.Clone()
	if err != nil {
		return nil, err
	}
	return &info, nil
}

// List implements [TaskStore].
func (s *InMemoryTaskStore) List(_ context.Context, status *TaskStatus) ([]TaskInfo, error) {
	return s.pick(func(info *TaskInfo) bool { return status == nil || info.Status == *status })
}

// Delete implements [TaskStore].
func (s *InMemoryTaskStore) Delete(_ context.Context, taskID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, taskID)
	return nil
}

// ListExpired implements [TaskStore].
func (s *InMemoryTaskStore) ListExpired(_ context.Context, before float64) ([]TaskInfo, error) {
	return s.pick(func(info *TaskInfo) bool {
		return info.Status.Terminal() && info.CompletedAt != nil && *info.CompletedAt < before
	})
}

// pick copies the wanted records in order. Records in the store never change, so
// they can be copied after the lock is released.
func (s *InMemoryTaskStore) pick(wanted func(*TaskInfo) bool) ([]TaskInfo, error) {
	s.mu.RLock()
	picked := []taskRecord{}
	for _, record := range s.records {
		if wanted(&record.info) {
			picked = append(picked, record)
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(picked, func(a, b taskRecord) int { return cmp.Compare(a.place, b.place) })
	infos := make([]TaskInfo, len(picked))
	for i, record := range picked {
		info, err := record.info.Clone()
		if err != nil {
			return nil, err
		}
		infos[i] = info
	}
	return infos, nil
}
