package apcore

import (
	"slices"
	"strings"
	"sync"
)

// reservedCodePrefixes may not begin a module's own code (§8.4).
var reservedCodePrefixes = []string{
	"ACL_", "APPROVAL_", "BINDING_", "CALL_", "CIRCULAR_", "CONFIG_", "DEPENDENCY_",
	"ERROR_CODE_", "ERROR_FORMATTER_", "EXECUTION_", "FUNC_", "GENERAL_", "MIDDLEWARE_",
	"MODULE_", "RELOAD_", "SCHEMA_", "TASK_", "VERSION_",
}

// ErrorCodeRegistry keeps the codes that modules bring, so that no two modules
// and no module and the framework use one code for different things (§8.4).
// The zero value is ready; all methods may be called concurrently.
type ErrorCodeRegistry struct {
	mu     sync.Mutex
	owners map[Code]string
}

// Register claims codes for a module. Claiming one's own codes again is fine.
// It claims all or none; a code that belongs to the framework or to another
// module fails with ERROR_CODE_COLLISION.
func (r *ErrorCodeRegistry) Register(moduleID string, codes ...Code) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, code := range codes {
		if owner, taken := r.ownerOf(code); taken && owner != moduleID {
			return NewError(CodeErrorCodeCollision, "error code %s of module %q belongs to %s: choose another", code, moduleID, owner).
				WithDetail("module_id", moduleID).WithDetail("error_code", string(code))
		}
	}
	if r.owners == nil {
		r.owners = map[Code]string{}
	}
	for _, code := range codes {
		r.owners[code] = moduleID
	}
	return nil
}

func (r *ErrorCodeRegistry) ownerOf(code Code) (owner string, taken bool) {
	if code.IsFramework() {
		return "the framework", true
	}
	for _, prefix := range reservedCodePrefixes {
		if strings.HasPrefix(string(code), prefix) {
			return "the framework (prefix " + prefix + ")", true
		}
	}
	owner, taken = r.owners[code]
	return owner, taken
}

// Unregister frees every code of a module; it is a no-op for an unknown one.
func (r *ErrorCodeRegistry) Unregister(moduleID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for code, owner := range r.owners {
		if owner == moduleID {
			delete(r.owners, code)
		}
	}
}

// AllCodes returns the framework's and the registered codes, sorted.
func (r *ErrorCodeRegistry) AllCodes() []Code {
	r.mu.Lock()
	defer r.mu.Unlock()
	codes := FrameworkCodes()
	for code := range r.owners {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	return codes
}
