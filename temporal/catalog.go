package temporal

import (
	"maps"
	"slices"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// Catalog tells workflow code how modules want to be called. It is immutable. A
// module that is not in it is called at most once.
type Catalog struct {
	entries map[string]catalogEntry
}

type catalogEntry struct {
	base        durable.Policy // without the settings
	settings    durable.Settings
	description string
	gated       bool
	fingerprint durable.Fingerprint
}

// NewCatalog reads the modules of an executor. Settings under the key x-temporal
// that do not make sense fail with CONFIG_INVALID naming module and field.
func NewCatalog(executor *apcore.Executor) (*Catalog, error) {
	catalog := &Catalog{entries: map[string]catalogEntry{}}
	for _, id := range executor.Registry().IDs() {
		definition := executor.Registry().Definition(id)
		if definition == nil {
			continue
		}
		settings, err := durable.SettingsOf(definition)
		if err != nil {
			return nil, err
		}
		class := mostCautious(executor.Registry().Versions(id))
		if !class.Repeats() && settings.Execution == durable.ExecutionLocal {
			settings.Execution = durable.ExecutionActivity // another version runs at most once
		}
		policy := durable.PolicyFor(class, executor.ModuleTimeout(id))
		catalog.entries[id] = catalogEntry{
			base: policy, settings: settings,
			description: definition.Description, gated: executor.NeedsApproval(id),
			fingerprint: durable.FingerprintOf(definition),
		}
	}
	return catalog, nil
}

// mostCautious is the class for every version of a module: which one runs is
// decided by the worker.
func mostCautious(definitions []*apcore.Descriptor) durable.Class {
	if len(definitions) == 0 {
		return durable.ClassAtMostOnce
	}
	class := durable.ClassSafe
	for _, definition := range definitions {
		switch own := durable.ClassOf(&definition.Annotations); own {
		case durable.ClassAtMostOnce:
			return own
		case durable.ClassIdempotent:
			class = own
		case durable.ClassSafe:
		}
	}
	return class
}

// WithAliases returns a catalog that also knows modules by their old ids. What
// an alias means is said at [durable.Aliases].
func (c *Catalog) WithAliases(aliases durable.Aliases) *Catalog {
	if len(aliases) == 0 {
		return c
	}
	with := &Catalog{entries: maps.Clone(c.entries)}
	for alias, target := range aliases {
		if entry, ok := c.entries[target]; ok {
			with.entries[alias] = entry
		}
	}
	return with
}

// ModuleIDs returns the ids of the catalog, sorted.
func (c *Catalog) ModuleIDs() []string {
	if c == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(c.entries))
}

// Policy returns how a module is called; for an unknown one that is at most
// once.
func (c *Catalog) Policy(moduleID string) durable.Policy {
	entry := c.entry(moduleID)
	return entry.settings.Apply(entry.base)
}

func (c *Catalog) entry(moduleID string) catalogEntry {
	if c != nil {
		if entry, ok := c.entries[moduleID]; ok {
			return entry
		}
	}
	return catalogEntry{base: durable.PolicyFor(durable.ClassAtMostOnce, unknownModuleTimeout)}
}

// unknownModuleTimeout bounds a module that only the other side knows.
const unknownModuleTimeout = 10 * time.Minute
