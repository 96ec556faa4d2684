package apcore

import (
	"maps"
	"slices"
)

// Dependent names the modules that a module needs (apcore §5.3).
type Dependent interface{ Dependencies() []Dependency }

// Dependency is one needed module.
type Dependency struct {
	ModuleID string `json:"module_id"`
	// Version is a constraint, see [MatchVersion]; empty allows every version.
	Version string `json:"version,omitempty"`
	// Optional modules may be absent.
	Optional bool `json:"optional,omitempty"`
}

// Candidate is a module that is about to be loaded.
type Candidate struct {
	ModuleID     string
	Version      string
	Dependencies []Dependency
}

// LoadOrder sorts candidates so that each comes after what it needs; among equals
// the ids decide. It fails with DEPENDENCY_NOT_FOUND for a needed module that is
// not among them, DEPENDENCY_VERSION_MISMATCH for one of another version,
// CIRCULAR_DEPENDENCY with the cycle, VERSION_CONSTRAINT_INVALID and
// DUPLICATE_MODULE_ID.
func LoadOrder(candidates []Candidate) ([]string, error) {
	byID := map[string]Candidate{}
	for _, c := range candidates {
		if _, twice := byID[c.ModuleID]; twice {
			return nil, NewError(CodeDuplicateModuleID, "module %q is to be loaded twice", c.ModuleID).WithDetail("module_id", c.ModuleID)
		}
		byID[c.ModuleID] = c
	}
	o := &loadOrder{byID: byID, state: map[string]int{}}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		if err := o.visit(id); err != nil {
			return nil, err
		}
	}
	return o.order, nil
}

const (
	visiting = 1
	visited  = 2
)

type loadOrder struct {
	byID  map[string]Candidate
	state map[string]int
	path  []string
	order []string
}

func (o *loadOrder) visit(id string) error {
	switch o.state[id] {
	case visited:
		return nil
	case visiting:
		cycle := append(slices.Clone(o.path[slices.Index(o.path, id):]), id)
		return NewError(CodeCircularDependency, "modules need each other: %v", cycle).WithDetail("cycle_path", anySlice(cycle))
	}
	o.state[id] = visiting
	o.path = append(o.path, id)
	for _, dependency := range sortedDependencies(o.byID[id]) {
		if err := o.need(id, dependency); err != nil {
			return err
		}
	}
	o.path = o.path[:len(o.path)-1]
	o.state[id] = visited
	o.order = append(o.order, id)
	return nil
}

func sortedDependencies(c Candidate) []Dependency {
	sorted := slices.Clone(c.Dependencies)
	slices.SortStableFunc(sorted, func(a, b Dependency) int {
		if a.ModuleID < b.ModuleID {
			return -1
		}
		if a.ModuleID > b.ModuleID {
			return 1
		}
		return 0
	})
	return sorted
}

func (o *loadOrder) need(id string, d Dependency) error {
	found, known := o.byID[d.ModuleID]
	if !known {
		if d.Optional {
			return nil
		}
		return NewError(CodeDependencyNotFound, "module %q needs module %q, which is not there", id, d.ModuleID).
			WithDetail("module_id", id).WithDetail("dependency_id", d.ModuleID)
	}
	if d.Version != "" {
		version := found.Version
		if version == "" {
			version = defaultVersion
		}
		fits, err := MatchVersion(d.Version, version)
		if err != nil {
			return err
		}
		if !fits {
			return NewError(CodeDependencyVersionMismatch, "module %q needs module %q in version %s, which has %s", id, d.ModuleID, d.Version, version).
				WithDetail("module_id", id).WithDetail("dependency_id", d.ModuleID).WithDetail("required", d.Version).WithDetail("actual", version)
		}
	}
	return o.visit(d.ModuleID)
}
