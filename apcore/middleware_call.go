package apcore

import (
	"container/list"
	"sync"
)

// This file holds what the shipped middleware share: state of one run and
// bounded memory.

// frame names the state that a middleware keeps from Before to After or
// OnError. It stands in the data of the call tree, where one entry alone would
// be overwritten by nested and by parallel calls; so it is kept per run.
//
// A run that ends in neither hook, because it was cancelled or another
// middleware took its error, leaves its frame behind until the tree is gone.
type frame[T any] struct{ key string }

type frameKey struct {
	owner any
	call  *Context
}

// frames is the value under a frame's key.
type frames[T any] struct {
	mu     sync.Mutex
	values map[frameKey]T
}

func (f frame[T]) set(owner any, c *Context, value T) {
	all := f.of(c)
	all.mu.Lock()
	defer all.mu.Unlock()
	all.values[frameKey{owner, c}] = value
}

// take returns the state and forgets it, so that an OnError after an After has
// none.
func (f frame[T]) take(owner any, c *Context) (value T, ok bool) {
	all := f.of(c)
	all.mu.Lock()
	defer all.mu.Unlock()
	key := frameKey{owner, c}
	value, ok = all.values[key]
	delete(all.values, key)
	return value, ok
}

func (f frame[T]) of(c *Context) *frames[T] {
	d := c.data
	d.mu.Lock()
	defer d.mu.Unlock()
	if all, ok := d.values[f.key].(*frames[T]); ok {
		return all
	}
	if d.values == nil {
		d.values = map[string]any{}
	}
	all := &frames[T]{values: map[frameKey]T{}}
	d.values[f.key] = all
	return all
}

// recent is a map that forgets what was not used for longest when it holds more
// than limit entries. Its owner locks it.
type recent[K comparable, V any] struct {
	limit int
	order *list.List // of *recentItem, the last used in front
	items map[K]*list.Element
}

type recentItem[K comparable, V any] struct {
	key   K
	value V
}

func newRecent[K comparable, V any](limit int) *recent[K, V] {
	return &recent[K, V]{limit: limit, order: list.New(), items: map[K]*list.Element{}}
}

func (r *recent[K, V]) get(key K) (value V, ok bool) {
	element, ok := r.items[key]
	if !ok {
		return value, false
	}
	r.order.MoveToFront(element)
	return itemOf[K, V](element).value, true
}

func (r *recent[K, V]) put(key K, value V) {
	if element, ok := r.items[key]; ok {
		itemOf[K, V](element).value = value
		r.order.MoveToFront(element)
		return
	}
	r.items[key] = r.order.PushFront(&recentItem[K, V]{key, value})
	if r.order.Len() > r.limit {
		oldest := r.order.Back()
		r.order.Remove(oldest)
		delete(r.items, itemOf[K, V](oldest).key)
	}
}

func (r *recent[K, V]) remove(key K) {
	if element, ok := r.items[key]; ok {
		r.order.Remove(element)
		delete(r.items, key)
	}
}

func itemOf[K comparable, V any](element *list.Element) *recentItem[K, V] {
	item, _ := element.Value.(*recentItem[K, V])
	return item
}

// priorityOption is the priority a constructor was given, checked.
func priorityOption(options string, value int) (int, error) {
	if value < 0 || value > maxPriority {
		return 0, NewError(CodeInvalidInput, "%s.Priority is %d: give 1 to %d, or zero for %d", options, value, maxPriority, defaultPriority)
	}
	return intOr(value, defaultPriority), nil
}
