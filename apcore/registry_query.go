package apcore

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// Get returns the latest version of a module, nil for an unknown id.
func (r *Registry) Get(id string) Module {
	if entry := r.lookup(id); entry != nil {
		return entry.module
	}
	return nil
}

// Definition describes the latest version of a module, nil for an unknown id. A
// module whose metadata has x-deprecation is warned of, once for each version
// and text of the deprecation.
func (r *Registry) Definition(id string) *Descriptor {
	entry := r.lookup(id)
	if entry == nil {
		return nil
	}
	r.warnDeprecated(entry)
	return entry.describe()
}

// Resolve finds the version of a module that a call with this hint runs: the
// highest that satisfies the hint, which is a version or a constraint, see
// [MatchVersion]. An empty hint means the latest. It fails with MODULE_NOT_FOUND
// for an unknown id, and for a known one of which no version fits;
// details.versions then lists those there are. A malformed hint fails with
// VERSION_CONSTRAINT_INVALID. Deprecations are warned of as by
// [Registry.Definition].
func (r *Registry) Resolve(id, hint string) (Module, *Descriptor, error) {
	entry, err := r.pick(id, hint)
	if err != nil {
		return nil, nil, err
	}
	r.warnDeprecated(entry)
	return entry.module, entry.describe(), nil
}

// Versions describes all versions of a module, the lowest first; empty for an
// unknown id.
func (r *Registry) Versions(id string) []*Descriptor {
	all := r.all(id)
	descriptors := make([]*Descriptor, len(all))
	for i, entry := range all {
		descriptors[i] = entry.describe()
	}
	return descriptors
}

// Describer is a module that describes itself to people, in Markdown, instead of
// being described from its parts.
type Describer interface{ Describe() string }

// Describe returns a text in Markdown about the latest version of a module: its
// own if it is a [Describer], else one made of its description, documentation,
// tags and fields. An unknown id fails with MODULE_NOT_FOUND (D-77).
func (r *Registry) Describe(id string) (text string, err error) {
	entry, err := r.pick(id, "")
	if err != nil {
		return "", err
	}
	if own, ok := entry.module.(Describer); ok {
		defer recoverTo(&err, "Describe")
		return own.Describe(), nil
	}
	return entry.markdown(), nil
}

// Has reports whether a module is visible, in any version.
func (r *Registry) Has(id string) bool { return len(r.all(id)) > 0 }

// Len counts the visible ids.
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

// Visibility says whether a module is shown: "public" or "hidden". Hidden are
// those whose annotation discoverable is false; they can be called all the same.
type Visibility string

// The two visibilities.
const (
	VisibilityPublic Visibility = "public"
	VisibilityHidden Visibility = "hidden"
)

// ListOptions narrows [Registry.List] and [Registry.All]; the zero value lists
// every public module. The latest version of a module decides.
type ListOptions struct {
	// Tags must all be present.
	Tags []string
	// Prefix is a plain text prefix of the id.
	Prefix string
	// Visibility lists what is included; empty means public only.
	Visibility []Visibility
}

func (o *ListOptions) shows(hidden bool) bool {
	if hidden {
		return slices.Contains(o.Visibility, VisibilityHidden)
	}
	return len(o.Visibility) == 0 || slices.Contains(o.Visibility, VisibilityPublic)
}

// List returns ids, sorted.
func (r *Registry) List(opts ListOptions) []string {
	ids := []string{}
	for id := range r.All(opts) {
		ids = append(ids, id)
	}
	return ids
}

// All yields the latest version of each module, sorted by id: those of one
// moment, whatever is registered or taken out meanwhile.
func (r *Registry) All(opts ListOptions) iter.Seq2[string, Module] {
	return func(yield func(string, Module) bool) {
		for _, entry := range r.snapshot(opts) {
			if !yield(entry.descriptor.ID, entry.module) {
				return
			}
		}
	}
}

func (r *Registry) snapshot(opts ListOptions) []*registration {
	r.mu.RLock()
	found := make([]*registration, 0, len(r.modules))
	for _, all := range r.modules {
		if entry := all.latest(); entry.matches(opts) {
			found = append(found, entry)
		}
	}
	r.mu.RUnlock()
	slices.SortFunc(found, func(a, b *registration) int { return strings.Compare(a.descriptor.ID, b.descriptor.ID) })
	return found
}

func (r *Registry) all(id string) versions {
	stored, _ := r.current.Load(id)
	all, _ := stored.(versions)
	return all
}

// lookup finds the latest version, nil for an unknown id.
func (r *Registry) lookup(id string) *registration {
	return r.all(id).latest()
}

// pick finds the version that a hint asks for.
func (r *Registry) pick(id, hint string) (*registration, error) {
	if hint == "" {
		if entry := r.lookup(id); entry != nil {
			return entry, nil
		}
		return nil, NewError(CodeModuleNotFound, "no module %q is registered", cut(id, maxShownID)).WithDetail("module_id", cut(id, MaxModuleIDLength))
	}
	return r.all(id).satisfying(id, hint)
}
