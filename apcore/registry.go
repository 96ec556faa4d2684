package apcore

import (
	"cmp"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Registry holds modules by id (apcore §12.7.4). It is a value: a process may
// have many. All methods may be called concurrently; callbacks run outside its
// locks.
type Registry struct {
	logger  *slog.Logger
	onEvent func(Event)

	mu        sync.RWMutex
	modules   map[string]*registration
	loading   map[string]bool
	listeners []*listener
	validate  ModuleValidator
	sealed    string
}

// RegistryOptions configures a [Registry]; the zero value is the default.
type RegistryOptions struct {
	// OnEvent takes the registry's events; it must return soon. nil drops them.
	OnEvent func(Event)
	// Logger takes warnings; nil means slog.Default().
	Logger *slog.Logger
}

// NewRegistry makes an empty registry.
func NewRegistry(opts RegistryOptions) *Registry {
	return &Registry{
		logger:  loggerOr(opts.Logger),
		onEvent: opts.OnEvent,
		modules: map[string]*registration{},
		loading: map[string]bool{},
	}
}

// RegisterOptions is the declared layer of a module, which is merged with what
// the module says of itself (§4.13). The zero value declares nothing.
type RegisterOptions struct {
	// Version replaces the module's version when not empty.
	Version string
	// Metadata is merged key by key over the module's.
	Metadata map[string]any
	// Annotations are declared beside the module's own: requires_approval and
	// destructive hold when either says so, every other field is the module's.
	// nil declares nothing.
	Annotations *Annotations
}

// Register makes a module callable under an id. The module becomes visible only
// after its OnLoad succeeded. It fails with
//
//   - INVALID_MODULE_ID for an id that breaks the grammar or is reserved,
//   - GENERAL_INVALID_INPUT for a nil module, a module without description or
//     malformed annotations, findings of the [ModuleValidator], or a sealed
//     registry,
//   - SCHEMA_PARSE_ERROR, SCHEMA_NOT_FOUND, SCHEMA_CIRCULAR_REF or
//     SCHEMA_MAX_DEPTH_EXCEEDED for a schema that cannot be enforced,
//   - STREAMING_INTERFACE_MISMATCH for a module that is annotated as streaming
//     and cannot,
//   - DUPLICATE_MODULE_ID when the id is taken, by a loading module too,
//   - the unchanged error of OnLoad.
func (r *Registry) Register(id string, module Module, opts RegisterOptions) error {
	if err := ValidateModuleID(id); err != nil {
		return err
	}
	if first, _, _ := strings.Cut(id, "."); slices.Contains(ReservedWords(), first) {
		return NewError(CodeInvalidModuleID, "module id %q begins with the reserved word %q: choose another first segment", id, first).
			WithDetail("module_id", id)
	}
	entry, err := newRegistration(id, module, opts)
	if err != nil {
		return err
	}
	if err := r.askValidator(id, module); err != nil {
		return err
	}
	if err := r.reserve(id); err != nil {
		return err
	}
	defer r.release(id)
	if err := load(module); err != nil {
		r.logger.Error("apcore: module failed to load", "module_id", id, "error_type", typeName(err), "error", err.Error())
		r.loadFailed(id, err)
		return err
	}
	if err := r.publish(entry); err != nil {
		r.unload(id, module)
		return err
	}
	r.tell(RegistryRegister, id, module)
	return nil
}

func (r *Registry) reserve(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkSeal(id); err != nil {
		return err
	}
	if r.modules[id] != nil || r.loading[id] {
		return NewError(CodeDuplicateModuleID, "module id %q is taken: unregister it first or choose another", id).WithDetail("module_id", id)
	}
	r.loading[id] = true
	return nil
}

func (r *Registry) release(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.loading, id)
}

// publish makes a module visible, unless the registry was sealed while it loaded.
func (r *Registry) publish(entry *registration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := entry.descriptor.ID
	if err := r.checkSeal(id); err != nil {
		return err
	}
	r.modules[id] = entry
	return nil
}

func (r *Registry) checkSeal(id string) error {
	if r.sealed == "" {
		return nil
	}
	return NewError(CodeInvalidInput, "module %q comes too late: the registry is sealed since %s", id, r.sealed).WithDetail("module_id", id)
}

// Unregister removes a module and reports whether there was one. An error of
// OnUnload is logged. Calls in flight end normally.
func (r *Registry) Unregister(id string) bool {
	entry := r.lookup(id)
	return entry != nil && r.remove(entry)
}

func (r *Registry) unload(id string, module Module) {
	if err := unload(module); err != nil {
		r.logger.Error("apcore: module failed to unload", "module_id", id, "error", err.Error())
	}
}

// Seal refuses every later registration with a GENERAL_INVALID_INPUT that names
// since, for example "worker start"; a module that is still loading counts as
// later and is unloaded again. Removing stays possible. Hosts that derive
// names or policies from the registry call it before they do.
func (r *Registry) Seal(since string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sealed == "" {
		r.sealed = cmp.Or(since, "an unnamed moment")
	}
}

// Get returns a module, nil for an unknown id.
func (r *Registry) Get(id string) Module {
	if entry := r.lookup(id); entry != nil {
		return entry.module
	}
	return nil
}

// Definition describes a module, nil for an unknown id.
func (r *Registry) Definition(id string) *Descriptor {
	entry := r.lookup(id)
	if entry == nil {
		return nil
	}
	return entry.describe()
}

// Has reports whether a module is visible.
func (r *Registry) Has(id string) bool { return r.lookup(id) != nil }

// Len counts the visible modules.
func (r *Registry) Len() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.modules)
}

// IDs returns the ids of all modules, hidden ones included, sorted.
func (r *Registry) IDs() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.modules))
}

// ListOptions narrows [Registry.List]; the zero value lists every discoverable
// module.
type ListOptions struct {
	// Tags must all be present.
	Tags []string
	// Prefix is a plain text prefix of the id.
	Prefix string
	// Hidden includes modules that are not discoverable.
	Hidden bool
}

// List returns ids, sorted.
func (r *Registry) List(opts ListOptions) []string {
	ids := []string{}
	for _, id := range r.IDs() {
		if entry := r.lookup(id); entry != nil && entry.matches(opts) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (r *Registry) lookup(id string) *registration {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.modules[id]
}

func load(module Module) (err error) {
	loader, ok := module.(Loader)
	if !ok {
		return nil
	}
	defer recoverTo(&err, "OnLoad")
	return loader.OnLoad()
}

func unload(module Module) (err error) {
	unloader, ok := module.(Unloader)
	if !ok {
		return nil
	}
	defer recoverTo(&err, "OnUnload")
	return unloader.OnUnload()
}

// recoverTo turns a panic of user code into an error; the panic's text may hold
// secrets and stays out.
func recoverTo(err *error, what string) {
	if cause := recover(); cause != nil {
		*err = NewError(CodeInternal, "%s panicked with a %s", what, typeName(cause)).WithRetryable(new(false))
	}
}

func typeName(value any) string {
	if value == nil {
		return "nil"
	}
	return reflect.TypeOf(value).String()
}

// isNil also recognises a typed nil, which an interface hides.
func isNil(value any) bool {
	if value == nil {
		return true
	}
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Interface, reflect.Chan:
		return v.IsNil()
	default:
		return false
	}
}
