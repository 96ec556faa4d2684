package apcore

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// ModuleValidator looks at a module before it is registered; what it finds keeps
// the module out.
type ModuleValidator interface {
	ValidateModule(id string, module Module) (findings []string)
}

// SetValidator adds a validator for later registrations; nil takes it away.
func (r *Registry) SetValidator(validator ModuleValidator) {
	if isNil(validator) {
		validator = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.validate = validator
}

func (r *Registry) askValidator(id string, module Module) (err error) {
	r.mu.RLock()
	validator := r.validate
	r.mu.RUnlock()
	if validator == nil {
		return nil
	}
	defer recoverTo(&err, "module validator")
	if findings := validator.ValidateModule(id, module); len(findings) > 0 {
		return NewError(CodeInvalidInput, "module %q is refused: %s", id, strings.Join(findings, "; ")).WithDetail("module_id", id)
	}
	return nil
}

// SpanExporter takes finished spans of module calls from a [TracingMiddleware].
// It is called concurrently, within the call, so it must return soon.
type SpanExporter interface {
	// ExportSpan never changes a call; its error is logged once until it works again.
	ExportSpan(ctx context.Context, span Span) error
}

// ExtensionPoint names a place where a host is extended (apcore §11).
type ExtensionPoint string

// The six points; middleware and span_exporter take several, the others one.
const (
	PointDiscoverer      ExtensionPoint = "discoverer"
	PointMiddleware      ExtensionPoint = "middleware"
	PointACL             ExtensionPoint = "acl"
	PointSpanExporter    ExtensionPoint = "span_exporter"
	PointModuleValidator ExtensionPoint = "module_validator"
	PointApprovalHandler ExtensionPoint = "approval_handler"
)

// fits says what may stand at each point.
var fits = map[ExtensionPoint]func(any) bool{
	PointDiscoverer:      is[Discoverer],
	PointMiddleware:      is[Middleware],
	PointACL:             is[AccessControl],
	PointSpanExporter:    is[SpanExporter],
	PointModuleValidator: is[ModuleValidator],
	PointApprovalHandler: is[ApprovalHandler],
}

func is[T any](extension any) bool {
	_, ok := extension.(T)
	return ok && !isNil(extension)
}

func (p ExtensionPoint) several() bool { return p == PointMiddleware || p == PointSpanExporter }

// ExtensionManager collects extensions by the name of their point and puts them
// in place. The zero value is ready; all methods may be called concurrently.
type ExtensionManager struct {
	mu    sync.Mutex
	store map[ExtensionPoint][]any
}

// Points returns the six points, sorted.
func (m *ExtensionManager) Points() []ExtensionPoint {
	points := make([]ExtensionPoint, 0, len(fits))
	for point := range fits {
		points = append(points, point)
	}
	slices.Sort(points)
	return points
}

// Register adds an extension; at a point that takes one it replaces the earlier.
// An unknown point and an extension that does not fit fail with
// GENERAL_INVALID_INPUT.
func (m *ExtensionManager) Register(point ExtensionPoint, extension any) error {
	if err := known(point); err != nil {
		return err
	}
	if !fits[point](extension) {
		return NewError(CodeInvalidInput, "a %s cannot stand at extension point %q", typeName(extension), point)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.store == nil {
		m.store = map[ExtensionPoint][]any{}
	}
	if !point.several() {
		m.store[point] = nil
	}
	m.store[point] = append(m.store[point], extension)
	return nil
}

func known(point ExtensionPoint) error {
	if fits[point] == nil {
		return NewError(CodeInvalidInput, "there is no extension point %q", point)
	}
	return nil
}

// Get returns the first extension at a point, nil if there is none. An unknown
// point fails with GENERAL_INVALID_INPUT.
func (m *ExtensionManager) Get(point ExtensionPoint) (any, error) {
	all, err := m.GetAll(point)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// GetAll returns all extensions at a point, never nil. An unknown point fails
// with GENERAL_INVALID_INPUT.
func (m *ExtensionManager) GetAll(point ExtensionPoint) ([]any, error) {
	if err := known(point); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]any{}, m.store[point]...), nil
}

// Unregister takes an extension out, by identity, and reports whether it was
// there. An unknown point fails with GENERAL_INVALID_INPUT.
func (m *ExtensionManager) Unregister(point ExtensionPoint, extension any) (bool, error) {
	if err := known(point); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := slices.IndexFunc(m.store[point], func(other any) bool { return identical(other, extension) })
	if at < 0 {
		return false, nil
	}
	m.store[point] = slices.Delete(slices.Clone(m.store[point]), at, at+1)
	return true, nil
}

// spanExporting is a middleware that hands spans to exporters.
type spanExporting interface {
	SetSpanExporters(exporters []SpanExporter)
}

// Apply puts everything in place, in the standard's order: the discoverer, which
// [Registry.Discover] asks, the module validator, access control, the approval
// handler, middleware in the order of registration, and span exporters into a
// tracing middleware that is in the chain; without one they are skipped with a
// warning. The manager keeps its extensions. Applying twice adds the middleware
// twice.
func (m *ExtensionManager) Apply(registry *Registry, executor *Executor) error {
	m.mu.Lock()
	store := make(map[ExtensionPoint][]any, len(m.store))
	for point, extensions := range m.store {
		store[point] = slices.Clone(extensions)
	}
	m.mu.Unlock()
	for _, extension := range store[PointDiscoverer] {
		registry.SetDiscoverer(extension.(Discoverer)) //nolint:forcetypeassert // checked by Register
	}
	for _, extension := range store[PointModuleValidator] {
		registry.SetValidator(extension.(ModuleValidator)) //nolint:forcetypeassert // checked by Register
	}
	for _, extension := range store[PointACL] {
		executor.SetAccessControl(extension.(AccessControl)) //nolint:forcetypeassert // checked by Register
	}
	for _, extension := range store[PointApprovalHandler] {
		executor.SetApprovalHandler(extension.(ApprovalHandler)) //nolint:forcetypeassert // checked by Register
	}
	for _, extension := range store[PointMiddleware] {
		if err := executor.Use(extension.(Middleware)); err != nil { //nolint:forcetypeassert // checked by Register
			return err
		}
	}
	executor.exportSpans(store[PointSpanExporter])
	return nil
}

func (e *Executor) exportSpans(extensions []any) {
	if len(extensions) == 0 {
		return
	}
	exporters := make([]SpanExporter, 0, len(extensions))
	for _, extension := range extensions {
		exporters = append(exporters, extension.(SpanExporter)) //nolint:forcetypeassert // checked by Register
	}
	for _, middleware := range e.parts.Load().middleware {
		if tracing, ok := middleware.(spanExporting); ok {
			tracing.SetSpanExporters(exporters)
			return
		}
	}
	e.logger.Warn("apcore: span exporters are skipped: no tracing middleware is in the chain", "exporters", len(exporters))
}
