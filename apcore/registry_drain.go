package apcore

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultDrainTimeout is how long [Registry.SafeUnregister] waits for calls.
const DefaultDrainTimeout = 5 * time.Second

// usage counts the calls that run a module right now.
type usage struct {
	mu       sync.Mutex
	running  int
	draining atomic.Bool
	idle     chan struct{} // closed when a drained module has no call left
}

func newUsage() *usage { return &usage{idle: make(chan struct{})} }

// acquire is false once the module drains.
func (u *usage) acquire() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.draining.Load() {
		return false
	}
	u.running++
	return true
}

func (u *usage) release() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.running--; u.running == 0 && u.draining.Load() {
		close(u.idle)
	}
}

func (u *usage) drain() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.draining.CompareAndSwap(false, true) && u.running == 0 {
		close(u.idle)
	}
	return u.idle
}

// UnregisterOptions says what leaves a registry; the zero value takes out every
// version of the id.
type UnregisterOptions struct {
	// Versions lists what leaves, each written as it was registered; empty means
	// all.
	Versions []string
	// DrainTimeout is how long [Registry.SafeUnregister] waits for calls; zero
	// means [DefaultDrainTimeout]. [Registry.Unregister] does not wait.
	DrainTimeout time.Duration
	// Caller is the context of whoever takes the module out, see
	// [RegisterOptions].
	Caller *Context
}

// Unregister removes a module and reports whether there was one. An error of
// OnUnload is logged. Calls in flight end normally.
func (r *Registry) Unregister(id string, opts UnregisterOptions) bool {
	removed := false
	for _, entry := range r.all(id).named(opts.Versions) {
		removed = r.remove(entry, opts.Caller) || removed
	}
	return removed
}

// SafeUnregister lets no new call in, waits until the running ones have ended,
// and removes the module. It reports whether they all ended in time; after the
// timeout, or when ctx ends, the module goes all the same, with a warning. While
// one version drains, calls without a version hint go to another, if there is
// one. An unknown id is drained at once.
func (r *Registry) SafeUnregister(ctx context.Context, id string, opts UnregisterOptions) (drained bool) {
	entries := r.all(id).named(opts.Versions)
	idle := make([]<-chan struct{}, len(entries))
	for i, entry := range entries {
		idle[i] = entry.usage.drain()
	}
	if opts.DrainTimeout == 0 {
		opts.DrainTimeout = DefaultDrainTimeout
	}
	timer := time.NewTimer(opts.DrainTimeout)
	defer timer.Stop()
	drained = allClosed(ctx, idle, timer.C)
	if !drained {
		r.logger.Warn("apcore: a module is removed while calls of it are running", "module_id", id)
	}
	for _, entry := range entries {
		if !slices.Contains(r.all(id), entry) {
			continue // somebody else took it out meanwhile
		}
		if _, err := suspend(entry.module); err != nil {
			r.logger.Error("apcore: module failed to suspend", "module_id", id, "error", outside.text(err.Error()))
		}
		r.remove(entry, opts.Caller)
	}
	return drained
}

func allClosed(ctx context.Context, channels []<-chan struct{}, expired <-chan time.Time) bool {
	for _, channel := range channels {
		select {
		case <-channel:
		case <-expired:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// named picks versions by their texts, all if there are none.
func (v versions) named(texts []string) versions {
	if len(texts) == 0 {
		return v
	}
	return slices.DeleteFunc(slices.Clone(v), func(entry *registration) bool {
		return !slices.Contains(texts, entry.descriptor.Version)
	})
}

// remove takes out exactly this registration, not one that came after it, and
// reports whether it was still there.
func (r *Registry) remove(entry *registration, caller *Context) bool {
	id := entry.descriptor.ID
	r.mu.Lock()
	current := slices.Contains(r.modules[id], entry)
	if current {
		r.put(id, r.modules[id].without(entry))
	}
	r.mu.Unlock()
	if current {
		r.unload(id, entry.module)
		r.tell(RegistryUnregister, entry, caller)
	}
	return current
}
