package apcore

import (
	"context"
	"sync"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// DefaultDedupLimit is how many outputs an [InMemoryDedupStore] keeps.
const DefaultDedupLimit = 10_000

const maxDedupLimit = 10_000_000

// InMemoryDedupOptions configures an [InMemoryDedupStore]; the zero value is the
// default.
type InMemoryDedupOptions struct {
	// Limit bounds the outputs, 1 to 10000000; beyond it the one that was not used
	// for longest is forgotten. Zero means 10000.
	Limit int
	// TTL is how long an output is remembered; zero means until Limit pushes it out.
	TTL time.Duration
}

// InMemoryDedupStore is a [DedupStore] for one process. It keeps the first
// output of a key, as a copy, and gives out copies.
type InMemoryDedupStore struct {
	ttl time.Duration

	mu      sync.Mutex
	outputs *recent[string, dedupRecord]
}

type dedupRecord struct {
	output map[string]any
	saved  time.Time
}

var _ DedupStore = (*InMemoryDedupStore)(nil)

// NewInMemoryDedupStore fails with GENERAL_INVALID_INPUT for options out of
// bounds.
func NewInMemoryDedupStore(opts InMemoryDedupOptions) (*InMemoryDedupStore, error) {
	if opts.Limit < 0 || opts.Limit > maxDedupLimit {
		return nil, NewError(CodeInvalidInput, "InMemoryDedupOptions.Limit is %d: give 1 to %d, or zero for %d", opts.Limit, maxDedupLimit, DefaultDedupLimit)
	}
	if opts.TTL < 0 {
		return nil, NewError(CodeInvalidInput, "InMemoryDedupOptions.TTL is %v: give a positive one, or zero for none", opts.TTL)
	}
	return &InMemoryDedupStore{ttl: opts.TTL, outputs: newRecent[string, dedupRecord](intOr(opts.Limit, DefaultDedupLimit))}, nil
}

// Load returns a copy of a recorded output.
func (s *InMemoryDedupStore) Load(_ context.Context, key string) (output map[string]any, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	record, ok := s.live(key)
	return copyObject(record.output), ok, nil
}

// Save records a copy of an output unless there is one. An output that is no
// JSON fails with GENERAL_INVALID_INPUT.
func (s *InMemoryDedupStore) Save(_ context.Context, key string, output map[string]any) error {
	copied, err := jsonvalue.CloneObject(output)
	if err != nil {
		return NewError(CodeInvalidInput, "an output to record is no JSON: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.live(key); !ok {
		s.outputs.put(key, dedupRecord{copied, time.Now()})
	}
	return nil
}

func (s *InMemoryDedupStore) live(key string) (dedupRecord, bool) {
	record, ok := s.outputs.get(key)
	if ok && s.ttl > 0 && time.Since(record.saved) >= s.ttl {
		s.outputs.remove(key)
		return dedupRecord{}, false
	}
	return record, ok
}
