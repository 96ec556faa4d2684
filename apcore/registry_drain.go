package apcore

import (
	"context"
	"sync"
	"time"
)

// DefaultDrainTimeout is how long [Registry.SafeUnregister] waits for calls.
const DefaultDrainTimeout = 5 * time.Second

// usage counts the calls that run a module right now.
type usage struct {
	mu       sync.Mutex
	running  int
	draining bool
	idle     chan struct{} // closed when a drained module has no call left
}

func newUsage() *usage { return &usage{idle: make(chan struct{})} }

// acquire is false once the module drains.
func (u *usage) acquire() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.draining {
		return false
	}
	u.running++
	return true
}

func (u *usage) release() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.running--; u.running == 0 && u.draining {
		close(u.idle)
	}
}

func (u *usage) drain() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.draining {
		if u.draining = true; u.running == 0 {
			close(u.idle)
		}
	}
	return u.idle
}

// SafeUnregister lets no new call in, waits until the running ones have ended,
// and removes the module. It reports whether they all ended in time; after the
// timeout, or when ctx ends, the module goes all the same, with a warning. A
// timeout of zero means 5 s. An unknown id is drained at once.
func (r *Registry) SafeUnregister(ctx context.Context, id string, timeout time.Duration) (drained bool) {
	entry := r.lookup(id)
	if entry == nil {
		return true
	}
	if timeout == 0 {
		timeout = DefaultDrainTimeout
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	idle := entry.usage.drain()
	select {
	case <-idle:
		drained = true
	case <-timer.C:
	case <-ctx.Done():
	}
	if !drained {
		r.logger.Warn("apcore: a module is removed while calls of it are running", "module_id", id)
	}
	if _, err := suspend(entry.module); err != nil {
		r.logger.Error("apcore: module failed to suspend", "module_id", id, "error", err.Error())
	}
	r.remove(entry)
	return drained
}

// remove takes out exactly this registration, not one that came after it, and
// reports whether it was still there.
func (r *Registry) remove(entry *registration) bool {
	id := entry.descriptor.ID
	r.mu.Lock()
	current := r.modules[id] == entry
	if current {
		delete(r.modules, id)
	}
	r.mu.Unlock()
	if current {
		r.unload(id, entry.module)
		r.tell(RegistryUnregister, id, entry.module)
	}
	return current
}

// Suspender gives up its state before a hot reload; nil means it has none (§5.15).
type Suspender interface {
	OnSuspend() (map[string]any, error)
}

// Resumer takes over the state of its predecessor; it must bear missing and
// unknown keys. It is called only when there is state.
type Resumer interface {
	OnResume(state map[string]any) error
}

// Reload puts a module in the place of the one under its id: the old one is
// suspended and unloaded, the new one loaded and given the old one's state. Calls
// in flight end with the old module. When the new one fails to load, the id is
// free and its error returned; errors of suspending, unloading and resuming are
// logged. An unknown id fails with MODULE_NOT_FOUND, a sealed registry with
// GENERAL_INVALID_INPUT; a reload that is under way with MODULE_RELOAD_CONFLICT.
func (r *Registry) Reload(id string, module Module, opts RegisterOptions) error {
	entry, err := newRegistration(id, module, opts)
	if err != nil {
		return err
	}
	old, err := r.replaceable(id)
	if err != nil {
		return err
	}
	defer r.release(id)
	state, err := suspend(old.module)
	if err != nil {
		r.logger.Error("apcore: module failed to suspend", "module_id", id, "error", err.Error())
	}
	r.remove(old)
	if err := load(module); err != nil {
		r.loadFailed(id, err)
		return err
	}
	if err := resume(module, state); err != nil {
		r.logger.Error("apcore: module failed to resume", "module_id", id, "error", err.Error())
	}
	if err := r.publish(entry); err != nil {
		r.unload(id, module)
		return err
	}
	r.tell(RegistryRegister, id, module)
	return nil
}

// replaceable reserves the id of a visible module.
func (r *Registry) replaceable(id string) (*registration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkSeal(id); err != nil {
		return nil, err
	}
	switch {
	case r.modules[id] == nil:
		return nil, NewError(CodeModuleNotFound, "no module %q is registered to be reloaded", id).WithDetail("module_id", id)
	case r.loading[id]:
		return nil, NewError(CodeModuleReloadConflict, "module %q is being reloaded already", id).WithDetail("module_id", id)
	}
	r.loading[id] = true
	return r.modules[id], nil
}

func suspend(module Module) (state map[string]any, err error) {
	suspender, ok := module.(Suspender)
	if !ok {
		return nil, nil
	}
	defer recoverTo(&err, "OnSuspend")
	return suspender.OnSuspend()
}

func resume(module Module, state map[string]any) (err error) {
	resumer, ok := module.(Resumer)
	if !ok || state == nil {
		return nil
	}
	defer recoverTo(&err, "OnResume")
	return resumer.OnResume(state)
}
