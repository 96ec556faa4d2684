package apcore

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// Data is the state that one call tree shares: every context derived from a
// root holds the same Data (apcore §5.7). Keys that begin with "_" belong to
// this process and never leave it; "ext.<vendor>." is for reusable code; the
// rest is the application's (§10.5).
//
// All methods may be called concurrently. Values should be treated as
// immutable once stored.
type Data struct {
	mu     sync.RWMutex
	values map[string]any
}

func newData(values map[string]any) *Data {
	return &Data{values: maps.Clone(values)}
}

// Get returns the value under key.
func (d *Data) Get(key string) (value any, ok bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	value, ok = d.values[key]
	return value, ok
}

// Set stores value under key.
func (d *Data) Set(key string, value any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.values == nil {
		d.values = map[string]any{}
	}
	d.values[key] = value
}

// Delete removes key; it is a no-op for an absent one.
func (d *Data) Delete(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.values, key)
}

// Len counts the keys, private ones included.
func (d *Data) Len() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.values)
}

// Keys returns all keys, sorted.
func (d *Data) Keys() []string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return slices.Sorted(maps.Keys(d.values))
}

// Public returns a copy of the entries that may leave the process: those whose
// key does not begin with "_".
func (d *Data) Public() map[string]any {
	d.mu.RLock()
	defer d.mu.RUnlock()
	public := make(map[string]any, len(d.values))
	for key, value := range d.values {
		if !strings.HasPrefix(key, "_") {
			public[key] = value
		}
	}
	return public
}

// Key is a typed name in [Data]. Declare keys as package variables:
//
//	var tenant = apcore.NewKey[string]("ext.acme.tenant")
type Key[T any] struct{ name string }

// NewKey names a value of type T.
func NewKey[T any](name string) Key[T] { return Key[T]{name} }

// Name returns the key as it stands in the data.
func (k Key[T]) Name() string { return k.name }

// Scoped returns the key "name.suffix" of the same type.
func (k Key[T]) Scoped(suffix string) Key[T] { return Key[T]{k.name + "." + suffix} }

// Get returns the value. ok is false when it is absent. A value that crossed a
// process boundary is converted from its JSON form; one that cannot be read as
// T fails with GENERAL_INVALID_INPUT through [Key.Read], here ok is false.
func (k Key[T]) Get(c *Context) (value T, ok bool) {
	value, ok, err := k.Read(c)
	return value, ok && err == nil
}

// Read is [Key.Get] with the reason: a value of another type is an error of
// code GENERAL_INVALID_INPUT, an absent one is not.
func (k Key[T]) Read(c *Context) (value T, ok bool, err error) {
	stored, ok := c.Data().Get(k.name)
	if !ok {
		return value, false, nil
	}
	if typed, same := stored.(T); same {
		return typed, true, nil
	}
	if err := convert(stored, &value); err != nil {
		return value, true, NewError(CodeInvalidInput, "context data %q holds a %T and cannot be read as %T", k.name, stored, value).WithCause(err)
	}
	return value, true, nil
}

// Set stores the value.
func (k Key[T]) Set(c *Context, value T) { c.Data().Set(k.name, value) }

// Delete removes the value.
func (k Key[T]) Delete(c *Context) { c.Data().Delete(k.name) }

// Exists reports whether the key is present, whatever its type.
func (k Key[T]) Exists(c *Context) bool {
	_, ok := c.Data().Get(k.name)
	return ok
}

// KeyCheck is the advice of [ValidateContextKey].
type KeyCheck struct {
	// Valid is false when the writer should use another prefix.
	Valid bool `json:"valid"`
	// Warning says why, empty when Valid.
	Warning string `json:"warning,omitempty"`
}

// ValidateContextKey says whether a writer ("user" or "framework") may use a
// data key (§10.5). It advises; nothing is blocked.
func ValidateContextKey(writer, key string) KeyCheck {
	switch {
	case writer == "user" && strings.HasPrefix(key, "_apcore."):
		return KeyCheck{Warning: "key " + key + " is the framework's: use another prefix than _apcore."}
	case writer == "framework" && strings.HasPrefix(key, "ext."):
		return KeyCheck{Warning: "key " + key + " is for extensions: the framework uses _apcore."}
	default:
		return KeyCheck{Valid: true}
	}
}

var (
	traceFlags = NewKey[string]("_apcore.trace.flags")
	traceState = NewKey[[][2]string]("_apcore.trace.state")
)
