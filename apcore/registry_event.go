package apcore

import (
	"strings"
	"time"
)

// RegistryEvent is what a registry tells its listeners (apcore §12.7.4).
type RegistryEvent string

// The two events: after a module became visible, and after it was taken out.
const (
	RegistryRegister   RegistryEvent = "register"
	RegistryUnregister RegistryEvent = "unregister"
)

// The registry's events for a host, see [RegistryOptions].
const (
	EventModuleRegistered   = "apcore.registry.module_registered"
	EventModuleUnregistered = "apcore.registry.module_unregistered"
	EventModuleLoadFailed   = "apcore.registry.module_load_failed"
)

// RegistryListener is called with the id and module an event is about.
type RegistryListener func(id string, module Module)

type listener struct {
	event RegistryEvent
	call  RegistryListener
}

// On calls a listener at every event from now on, outside the registry's locks,
// and returns what takes it off again. A listener that panics is logged. An
// unknown event or a nil listener fails with GENERAL_INVALID_INPUT.
func (r *Registry) On(event RegistryEvent, call RegistryListener) (off func(), err error) {
	if event != RegistryRegister && event != RegistryUnregister {
		return nil, NewError(CodeInvalidInput, "a registry has no event %q: there are register and unregister", event)
	}
	if call == nil {
		return nil, NewError(CodeInvalidInput, "the listener of event %q is nil", event)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	added := &listener{event: event, call: call}
	r.listeners = append(r.listeners[:len(r.listeners):len(r.listeners)], added)
	return func() { r.off(added) }, nil
}

func (r *Registry) off(gone *listener) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := make([]*listener, 0, len(r.listeners))
	for _, l := range r.listeners {
		if l != gone {
			kept = append(kept, l)
		}
	}
	r.listeners = kept
}

// tell calls the listeners and the host.
func (r *Registry) tell(event RegistryEvent, entry *registration, caller *Context) {
	id := entry.descriptor.ID
	r.mu.RLock()
	listeners := r.listeners
	r.mu.RUnlock()
	for _, l := range listeners {
		if l.event == event {
			r.guarded(id, func() { l.call(id, entry.module) })
		}
	}
	name := EventModuleRegistered
	if event == RegistryUnregister {
		name = EventModuleUnregistered
	}
	data := map[string]any{"version": entry.descriptor.Version}
	if isEphemeral(id) && r.onEvent != nil {
		nameCaller(data, caller)
	}
	r.emit(name, id, "info", data)
}

// The namespace of modules that come and go at run time (apcore §2.2).
const ephemeralNamespace = "ephemeral"

func isEphemeral(id string) bool {
	return id == ephemeralNamespace || strings.HasPrefix(id, ephemeralNamespace+".")
}

func ephemeralRefused(id string) *Error {
	return NewError(CodeInvalidModuleID, "module id %q is ephemeral: such modules come through Registry.Register only", cut(id, maxShownID)).
		WithDetail("module_id", cut(id, MaxModuleIDLength))
}

// nameCaller says who made or took out an ephemeral module.
func nameCaller(data map[string]any, caller *Context) {
	data["namespace_class"], data["caller_id"], data["identity"] = ephemeralNamespace, ExternalCaller, nil
	if caller == nil {
		return
	}
	if caller.CallerID() != "" {
		data["caller_id"] = caller.CallerID()
	}
	redactor, err := NewRedactor(RedactionConfig{})
	if identity := caller.Identity(); identity != nil && err == nil {
		data["identity"] = redactor.Redact(identity.Map(), nil)
	}
}

func (r *Registry) loadFailed(id string, err error) {
	r.emit(EventModuleLoadFailed, id, "error", map[string]any{
		"callback_name": "on_load", "error_type": typeName(err), "error_message": err.Error(),
		"timestamp": time.Now().UTC().Format(timestampLayout),
	})
}

func (r *Registry) emit(name, id, severity string, data map[string]any) {
	if r.onEvent == nil {
		return
	}
	data["module_id"] = id
	r.guarded(id, func() {
		r.onEvent(Event{Type: name, ModuleID: id, Timestamp: time.Now().UTC(), Severity: severity, Data: data})
	})
}

// guarded logs a listener's panic.
func (r *Registry) guarded(id string, call func()) {
	var err error
	defer func() {
		if err != nil {
			r.logger.Error("apcore: a listener of the registry failed", "module_id", id, "error", outside.text(err.Error()))
		}
	}()
	defer recoverTo(&err, "registry listener")
	call()
}
