package apcore

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
)

// StorageBackend keeps small values for observability (apcore D-39): error
// histories, usage, metrics. Namespaces do not see each other. All methods may be
// called concurrently.
type StorageBackend interface {
	// Save stores a copy of value, over what was there.
	Save(ctx context.Context, namespace, key string, value []byte) error
	// Get returns a copy; ok is false for an absent key, which is no error.
	Get(ctx context.Context, namespace, key string) (value []byte, ok bool, err error)
	// List returns the keys with a prefix, sorted; an empty prefix means all.
	List(ctx context.Context, namespace, prefix string) ([]string, error)
	// Delete removes a key; an absent one is a no-op.
	Delete(ctx context.Context, namespace, key string) error
}

// InMemoryStorage is a [StorageBackend] in this process. The zero value is ready.
type InMemoryStorage struct {
	mu     sync.RWMutex
	values map[string]map[string][]byte
}

// Save stores a copy; it never fails.
func (s *InMemoryStorage) Save(_ context.Context, namespace, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[string]map[string][]byte{}
	}
	if s.values[namespace] == nil {
		s.values[namespace] = map[string][]byte{}
	}
	s.values[namespace][key] = bytes.Clone(value)
	return nil
}

// Get returns a copy; it never fails.
func (s *InMemoryStorage) Get(_ context.Context, namespace, key string) (value []byte, ok bool, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, ok = s.values[namespace][key]
	return bytes.Clone(value), ok, nil
}

// List returns the keys, sorted; it never fails.
func (s *InMemoryStorage) List(_ context.Context, namespace, prefix string) ([]string, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	keys := slices.Sorted(maps.Keys(s.values[namespace]))
	return slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, prefix) }), nil
}

// Delete removes a key; it never fails.
func (s *InMemoryStorage) Delete(_ context.Context, namespace, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.values[namespace], key)
	return nil
}

var _ StorageBackend = (*InMemoryStorage)(nil)
