package apcore

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
// suspended and unloaded, the new one loaded and given the old one's state. Of
// several versions, the one with the new module's version is replaced, or else
// the latest. Calls in flight end with the old module. When the new one fails to
// load, the place is free and its error returned; errors of suspending, unloading
// and resuming are logged. An unknown id fails with MODULE_NOT_FOUND, a sealed
// registry with GENERAL_INVALID_INPUT, a reload that is under way with
// MODULE_RELOAD_CONFLICT, a bad module as with [Registry.Register].
func (r *Registry) Reload(id string, module Module, opts RegisterOptions) error {
	entry, err := newRegistration(id, module, opts)
	if err != nil {
		return err
	}
	if err := r.askValidator(id, module); err != nil {
		return err
	}
	old, err := r.replaceable(entry)
	if err != nil {
		return err
	}
	defer r.release(old.key(), entry.key())
	state, err := suspend(old.module)
	if err != nil {
		r.logger.Error("apcore: module failed to suspend", "module_id", id, "error", outside.text(err.Error()))
	}
	r.remove(old, opts.Caller)
	if err := load(module); err != nil {
		r.loadFailed(id, err)
		return err
	}
	if err := resume(module, state); err != nil {
		r.logger.Error("apcore: module failed to resume", "module_id", id, "error", outside.text(err.Error()))
	}
	if err := r.publish(entry); err != nil {
		r.unload(id, module)
		return err
	}
	r.tell(RegistryRegister, entry, opts.Caller)
	return nil
}

// replaceable reserves the places of the module that has to go and of its
// successor.
func (r *Registry) replaceable(entry *registration) (*registration, error) {
	id := entry.descriptor.ID
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkSeal(id); err != nil {
		return nil, err
	}
	old := r.modules[id].at(entry.version).or(r.modules[id].latest())
	switch {
	case old == nil:
		return nil, NewError(CodeModuleNotFound, "no module %q is registered to be reloaded", id).WithDetail("module_id", id)
	case r.loading[old.key()] != nil || r.loading[entry.key()] != nil:
		return nil, NewError(CodeModuleReloadConflict, "module %q is being reloaded already", id).WithDetail("module_id", id)
	}
	r.loading[old.key()], r.loading[entry.key()] = entry, entry
	return old, nil
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
