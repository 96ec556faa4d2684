package apcore

// Disable refuses later calls of a module, in every version, with
// MODULE_DISABLED until [Executor.Enable]. It affects this executor only, and
// stays when the module is unregistered and registered again.
func (e *Executor) Disable(moduleID, reason string) {
	e.disabled.Store(moduleID, reason)
}

// Enable allows calls of a module again.
func (e *Executor) Enable(moduleID string) { e.disabled.Delete(moduleID) }

// Disabled reports whether calls of a module are refused here, and why.
func (e *Executor) Disabled(moduleID string) (reason string, disabled bool) {
	stored, disabled := e.disabled.Load(moduleID)
	reason, _ = stored.(string)
	return reason, disabled
}
