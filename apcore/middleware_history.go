package apcore

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Bounds of an [ErrorHistory].
const (
	DefaultErrorHistoryLimit = 50
	maxErrorHistoryLimit     = 10_000
	maxErrorHistoryModules   = 1000
)

// ErrorHistory is a middleware that remembers the last errors of every module
// in their wire form, as copies, as the executor has cleaned them of secrets. Of more
// than 1000 modules it forgets the one that failed longest ago. It remembers
// what reaches it: cancellations and errors of access rules and approval do not,
// nor does an error that a middleware registered later recovers.
type ErrorHistory struct {
	BaseMiddleware
	limit int

	mu      sync.Mutex
	modules *recent[string, []map[string]any] // the newest error last
}

var _ Middleware = (*ErrorHistory)(nil)

// NewErrorHistory keeps up to limit errors per module, 10000 at most; zero means
// 50. A limit out of bounds fails with GENERAL_INVALID_INPUT.
func NewErrorHistory(limit int) (*ErrorHistory, error) {
	if limit < 0 || limit > maxErrorHistoryLimit {
		return nil, NewError(CodeInvalidInput, "the limit of an error history is %d: give 1 to %d, or zero for %d", limit, maxErrorHistoryLimit, DefaultErrorHistoryLimit)
	}
	return &ErrorHistory{
		limit:   intOr(limit, DefaultErrorHistoryLimit),
		modules: newRecent[string, []map[string]any](maxErrorHistoryModules),
	}, nil
}

// OnError remembers the error under the called module, whichever module below
// it the error comes from.
func (h *ErrorHistory) OnError(_ context.Context, call *MiddlewareCall, err *Error) (*Recovery, error) {
	entry := historyEntry(err)
	h.mu.Lock()
	defer h.mu.Unlock()
	errors, _ := h.modules.get(call.ModuleID)
	if len(errors) == h.limit {
		errors = slices.Delete(errors, 0, 1)
	}
	h.modules.put(call.ModuleID, append(errors, entry))
	return nil, nil
}

// historyEntry leaves out details that are no JSON: nobody could read them.
func historyEntry(err *Error) map[string]any {
	wire := err.Map()
	if details, ok := wire["details"].(map[string]any); ok {
		wire["details"] = copyObject(details)
	}
	return wire
}

// Errors returns copies of the last errors of a module, the newest last, never
// nil. [ErrorFromMap] makes errors of them again.
func (h *ErrorHistory) Errors(moduleID string) []map[string]any {
	h.mu.Lock()
	defer h.mu.Unlock()
	copies := []map[string]any{}
	if element, ok := h.modules.items[moduleID]; ok {
		for _, entry := range itemOf[string, []map[string]any](element).value {
			copies = append(copies, copyObject(entry))
		}
	}
	return copies
}

// Modules returns the ids of the modules with errors, sorted.
func (h *ErrorHistory) Modules() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.modules.items))
}

// Clear forgets the errors of a module.
func (h *ErrorHistory) Clear(moduleID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.modules.remove(moduleID)
}
