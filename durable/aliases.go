package durable

import (
	"maps"
	"slices"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Aliases maps ids that modules had to the ids they have now. Runs that were
// written against the old id go on working: the worker serves the old unit
// beside the new one, and both run the same module. An approval stays bound to
// the id that the call used. nil means that nothing was renamed.
//
// An alias may go when no open run refers to its old id any more; a worker can
// check that, see package worker.
type Aliases map[string]string

// Target is the id under which a module is registered now.
func (a Aliases) Target(moduleID string) string {
	if target, ok := a[moduleID]; ok {
		return target
	}
	return moduleID
}

// Of returns the old ids of a module, sorted.
func (a Aliases) Of(moduleID string) []string {
	var old []string
	for _, alias := range a.sorted() {
		if a[alias] == moduleID {
			old = append(old, alias)
		}
	}
	return old
}

// Validate checks the aliases against the modules that are registered. It fails
// with CONFIG_INVALID, naming both ids, for an alias that is no module id, that
// is a registered module's own id, that leads to another alias, or whose target
// is not registered. nil for registered leaves the modules out of the check.
func (a Aliases) Validate(registered func(moduleID string) bool) error {
	for _, alias := range a.sorted() {
		target := a[alias]
		if why := a.wrong(alias, target, registered); why != "" {
			return newError(apcore.CodeConfigInvalid, "alias %q of module %q: %s", alias, target, why).
				WithDetail("alias", alias).WithDetail("module_id", target)
		}
	}
	return nil
}

func (a Aliases) wrong(alias, target string, registered func(string) bool) string {
	_, chain := a[target]
	switch {
	case apcore.ValidateModuleID(alias) != nil:
		return "the alias is no module id"
	case alias == target:
		return "a module needs no alias for its own id"
	case chain:
		return "the target is an alias itself, of module " + a[target] + ": name that one"
	case registered == nil:
		return ""
	case registered(alias):
		return "the alias is the id of another registered module: calls of " + alias + " would have two owners"
	case !registered(target):
		return "no such module is registered"
	}
	return ""
}

func (a Aliases) sorted() []string { return slices.Sorted(maps.Keys(a)) }
