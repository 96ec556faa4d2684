package apcore

import (
	"cmp"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Registry holds modules by id and version (apcore §12.7.4). It is a value: a
// process may have many. All methods may be called concurrently; callbacks run
// outside its locks.
//
// An id may have several versions. Where a method takes an id alone, it means
// the latest one: the highest that is no pre-release, or else the highest.
type Registry struct {
	logger  *slog.Logger
	onEvent func(Event)

	mu         sync.RWMutex
	modules    map[string]versions // changed by put only
	loading    map[versionKey]*registration
	listeners  []*listener
	validate   ModuleValidator
	discoverer Discoverer
	sealed     string

	current    sync.Map // modules again, id -> versions, for calls to read without a lock
	deprecated sync.Map // the deprecations that have been warned of
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
		modules: map[string]versions{},
		loading: map[versionKey]*registration{},
	}
}

// RegisterOptions is the declared layer of a module, which is merged with what
// the module says of itself (§4.13). The zero value declares nothing.
type RegisterOptions struct {
	// Version replaces the module's version when not empty.
	Version string
	// Metadata is merged key by key over the module's. What stands under
	// "annotations", in the wire form, goes over the module's annotations field by
	// field; "examples" replaces the module's list; "tags" and "dependencies" are
	// added to the module's.
	Metadata map[string]any
	// Annotations are declared beside the module's own: requires_approval and
	// destructive hold when either says so, every other field is the module's.
	// nil declares nothing.
	Annotations *Annotations
	// Caller is the context of whoever registers; events about ephemeral modules
	// name it. nil stands for a caller outside of every module.
	Caller *Context
}

// Register makes a module callable under an id, beside other versions of that
// id. The module becomes visible only after its OnLoad succeeded. Modules made
// at run time belong under "ephemeral."; they should require approval and be
// hidden, otherwise there is a warning. It fails with
//
//   - INVALID_MODULE_ID for an id that breaks the grammar or is reserved,
//   - GENERAL_INVALID_INPUT for a nil module, a module without description, a
//     malformed version or annotations, findings of the [ModuleValidator], or a
//     sealed registry,
//   - SCHEMA_PARSE_ERROR, SCHEMA_NOT_FOUND, SCHEMA_CIRCULAR_REF or
//     SCHEMA_MAX_DEPTH_EXCEEDED for a schema that cannot be enforced,
//   - STREAMING_INTERFACE_MISMATCH for a module that is annotated as streaming
//     and cannot,
//   - DUPLICATE_MODULE_ID when the id is taken in this version, by a loading
//     module too; the error names both modules,
//   - the unchanged error of OnLoad.
func (r *Registry) Register(id string, module Module, opts RegisterOptions) error {
	if first, _, _ := strings.Cut(id, "."); slices.Contains(ReservedWords(), first) {
		return NewError(CodeInvalidModuleID, "module id %q begins with the reserved word %q: choose another first segment", cut(id, maxShownID), first).
			WithDetail("module_id", cut(id, MaxModuleIDLength))
	}
	return r.register(id, module, opts)
}

// RegisterInternal is [Registry.Register] for the framework's own modules: ids
// may begin with a reserved word, but not be ephemeral (INVALID_MODULE_ID).
func (r *Registry) RegisterInternal(id string, module Module, opts RegisterOptions) error {
	if isEphemeral(id) {
		return ephemeralRefused(id)
	}
	return r.register(id, module, opts)
}

func (r *Registry) register(id string, module Module, opts RegisterOptions) error {
	if err := ValidateModuleID(id); err != nil {
		return err
	}
	entry, err := newRegistration(id, module, opts)
	if err != nil {
		return err
	}
	if err := r.askValidator(id, module); err != nil {
		return err
	}
	if err := r.reserve(entry); err != nil {
		return err
	}
	defer r.release(entry.key())
	if err := load(module); err != nil {
		r.logger.Error("apcore: module failed to load", "module_id", id, "error_type", typeName(err), "error", outside.text(err.Error()))
		r.loadFailed(id, err)
		return err
	}
	if err := r.publish(entry); err != nil {
		r.unload(id, module)
		return err
	}
	r.warnOf(entry)
	r.tell(RegistryRegister, entry, opts.Caller)
	return nil
}

func (r *Registry) reserve(entry *registration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkSeal(entry.descriptor.ID); err != nil {
		return err
	}
	owner := r.loading[entry.key()]
	if owner == nil {
		owner = r.modules[entry.descriptor.ID].at(entry.version)
	}
	if owner != nil {
		return duplicate(owner, entry)
	}
	r.loading[entry.key()] = entry
	return nil
}

func duplicate(owner, refused *registration) *Error {
	d := &owner.descriptor
	return NewError(CodeDuplicateModuleID, "module id %q is taken in version %s by %s (%q), so %s (%q) is refused: unregister the first, or choose another id or version",
		d.ID, d.Version, typeName(owner.module), cut(d.Description, maxShownID), typeName(refused.module), cut(refused.descriptor.Description, maxShownID)).
		WithDetail("module_id", d.ID).WithDetail("version", d.Version)
}

func (r *Registry) release(keys ...versionKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range keys {
		delete(r.loading, key)
	}
}

// publish makes a module visible, unless the registry was sealed while it loaded.
func (r *Registry) publish(entry *registration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := entry.descriptor.ID
	if err := r.checkSeal(id); err != nil {
		return err
	}
	r.put(id, r.modules[id].with(entry))
	return nil
}

// put changes the versions of an id.
func (r *Registry) put(id string, all versions) {
	if len(all) == 0 {
		delete(r.modules, id)
		r.current.Delete(id)
		return
	}
	r.modules[id] = all
	r.current.Store(id, all)
}

func (r *Registry) checkSeal(id string) error {
	if r.sealed == "" {
		return nil
	}
	return NewError(CodeInvalidInput, "module %q comes too late: the registry is sealed since %s", id, r.sealed).WithDetail("module_id", id)
}

func (r *Registry) unload(id string, module Module) {
	if err := unload(module); err != nil {
		r.logger.Error("apcore: module failed to unload", "module_id", id, "error", outside.text(err.Error()))
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
		*err = panicked(what, cause)
	}
}

func panicked(what string, cause any) *Error {
	return NewError(CodeInternal, "%s panicked with a %s", what, typeName(cause)).WithRetryable(new(false))
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

// Sealed reports whether the registry takes no more modules.
func (r *Registry) Sealed() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.sealed != ""
}
