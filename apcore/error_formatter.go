package apcore

import (
	"maps"
	"sync"
)

// ErrorFormatter writes errors in the form that one adapter needs, such as a
// problem document for HTTP (apcore §8.8).
type ErrorFormatter interface {
	// FormatError returns an object, never nil. context is the adapter's own and
	// may be nil; err is the formatter's own copy. It is called concurrently.
	FormatError(err *Error, context map[string]any) map[string]any
}

// ErrorFormatterFunc makes a function an [ErrorFormatter].
type ErrorFormatterFunc func(err *Error, context map[string]any) map[string]any

// FormatError calls the function.
func (f ErrorFormatterFunc) FormatError(err *Error, context map[string]any) map[string]any {
	return f(err, context)
}

// ErrorFormatterRegistry keeps the formatters by the name of their adapter. The
// zero value is ready; all methods may be called concurrently.
type ErrorFormatterRegistry struct {
	mu         sync.RWMutex
	formatters map[string]ErrorFormatter
}

// processFormatters is the registry that the standard wants.
var processFormatters ErrorFormatterRegistry

// ErrorFormatters is the registry that adapters of one process share (§8.8). A
// host that keeps its adapters apart makes registries of its own.
func ErrorFormatters() *ErrorFormatterRegistry { return &processFormatters }

// Register adds the formatter of an adapter. It fails with
// ERROR_FORMATTER_DUPLICATE when the adapter has one, the same one included, and
// with GENERAL_INVALID_INPUT for an empty name and a nil formatter.
func (r *ErrorFormatterRegistry) Register(adapter string, formatter ErrorFormatter) error {
	if adapter == "" || isNil(formatter) {
		return NewError(CodeInvalidInput, "the error formatter of adapter %q is a %s: give a name and a formatter", adapter, typeName(formatter))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.formatters[adapter]; taken {
		return NewError(CodeErrorFormatterDuplicate, "adapter %q has an error formatter: unregister it first", adapter).
			WithDetail("adapter_name", adapter)
	}
	if r.formatters == nil {
		r.formatters = map[string]ErrorFormatter{}
	}
	r.formatters[adapter] = formatter
	return nil
}

// Unregister takes the formatter of an adapter out and reports whether there was
// one.
func (r *ErrorFormatterRegistry) Unregister(adapter string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, there := r.formatters[adapter]
	delete(r.formatters, adapter)
	return there
}

// Get returns the formatter of an adapter, nil if it has none.
func (r *ErrorFormatterRegistry) Get(adapter string) ErrorFormatter {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.formatters[adapter]
}

// FormatError writes an error for an adapter; nil gives nil. An adapter without
// formatter, and one whose formatter panics or returns nil, gets the wire form of
// [Error.Map]. An error that holds no *Error is wrapped first, with its [CodeOf]
// and without its text, which nobody has cleaned of secrets.
func (r *ErrorFormatterRegistry) FormatError(err error, adapter string, context map[string]any) map[string]any {
	if err == nil {
		return nil
	}
	e := AsError(err)
	if e == nil {
		e = NewError(CodeOf(err), "the call failed with %s", typeName(err))
	}
	if formatter := r.Get(adapter); formatter != nil {
		if formatted := formatSafely(formatter, e.clone(), context); formatted != nil {
			return formatted
		}
	}
	return e.Map()
}

func formatSafely(formatter ErrorFormatter, err *Error, context map[string]any) (formatted map[string]any) {
	defer func() { _ = recover() }() // the wire form says what happened
	return formatter.FormatError(err, maps.Clone(context))
}
