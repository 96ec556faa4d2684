package apcore

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// constraintPattern is what the standard allows (D-85): a version or a part of
// one, alone or behind an operator. The library would take more.
var constraintPattern = regexp.MustCompile(`^(>=|<=|>|<|\^|~|=)?\s*\d+(\.\d+){0,2}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// MatchVersion reports whether a semantic version satisfies a constraint: exact
// (1.2.3), partial (1.2), >=, >, <=, <, caret (^1.2.3), tilde (~1.2), or several
// joined by commas, all of which must hold. A pre-release satisfies only
// constraints that name one. A malformed constraint or version fails with
// VERSION_CONSTRAINT_INVALID.
func MatchVersion(constraint, version string) (bool, error) {
	parsed, err := parseConstraint(constraint)
	if err != nil {
		return false, err
	}
	candidate, err := semver.NewVersion(version)
	if err != nil {
		return false, invalidConstraint(constraint, "version "+version+" is no semantic version")
	}
	return parsed.Check(candidate), nil
}

func parseConstraint(constraint string) (*semver.Constraints, error) {
	for part := range strings.SplitSeq(constraint, ",") {
		if !constraintPattern.MatchString(strings.TrimSpace(part)) {
			return nil, invalidConstraint(constraint, "it is no version, range, caret or tilde form")
		}
	}
	parsed, err := semver.NewConstraint(constraint)
	if err != nil {
		return nil, invalidConstraint(constraint, err.Error())
	}
	return parsed, nil
}

func invalidConstraint(constraint, reason string) *Error {
	return NewError(CodeVersionConstraintInvalid, "version constraint %q is not valid: %s", constraint, reason).
		WithDetail("constraint", constraint).WithDetail("reason", reason)
}

// versions are the registrations of one id, the lowest version first. The list is
// never changed, only replaced; an id without versions is not in the registry.
type versions []*registration

// versionKey names one version of a module. Build metadata is no part of it:
// versions that differ in nothing else have no order.
type versionKey struct{ id, version string }

func (e *registration) key() versionKey {
	v := e.version
	return versionKey{e.descriptor.ID, fmt.Sprintf("%d.%d.%d-%s", v.Major(), v.Minor(), v.Patch(), v.Prerelease())}
}

// at finds a version, nil if it is not there.
func (v versions) at(version *semver.Version) *registration {
	for _, entry := range v {
		if entry.version.Equal(version) {
			return entry
		}
	}
	return nil
}

// latest is the highest version that is no pre-release, or else the highest. One
// that is being drained counts only if there is no other.
func (v versions) latest() *registration {
	if len(v) <= 1 {
		return v.first()
	}
	return v.best(func(entry *registration) bool { return entry.version.Prerelease() == "" }).or(v.best(anyVersion)).or(v.first())
}

func anyVersion(*registration) bool { return true }

func (v versions) first() *registration {
	if len(v) == 0 {
		return nil
	}
	return v[0]
}

func (e *registration) or(other *registration) *registration {
	if e != nil {
		return e
	}
	return other
}

// best is the highest version that fits and is not being drained.
func (v versions) best(fits func(*registration) bool) *registration {
	for _, entry := range slices.Backward(v) {
		if fits(entry) && !entry.usage.draining.Load() {
			return entry
		}
	}
	return nil
}

// satisfying finds the highest version that a hint allows.
func (v versions) satisfying(id, hint string) (*registration, error) {
	constraint, err := parseConstraint(hint)
	if err != nil {
		return nil, AsError(err).WithDetail("module_id", id)
	}
	fits := func(entry *registration) bool {
		return entry.descriptor.Version == hint || constraint.Check(entry.version)
	}
	if entry := v.best(fits); entry != nil {
		return entry, nil
	}
	if len(v) == 0 {
		return nil, NewError(CodeModuleNotFound, "no module %q is registered", id).WithDetail("module_id", id)
	}
	return nil, NewError(CodeModuleNotFound, "module %q has no version that satisfies %q: there are %s", id, hint, strings.Join(v.texts(), ", ")).
		WithDetail("module_id", id).WithDetail("version_hint", hint).WithDetail("versions", anySlice(v.texts()))
}

func (v versions) texts() []string {
	texts := make([]string, len(v))
	for i, entry := range v {
		texts[i] = entry.descriptor.Version
	}
	return texts
}

func (v versions) with(added *registration) versions {
	list := append(slices.Clone(v), added)
	slices.SortFunc(list, func(a, b *registration) int { return a.version.Compare(b.version) })
	return list
}

func (v versions) without(gone *registration) versions {
	return slices.DeleteFunc(slices.Clone(v), func(entry *registration) bool { return entry == gone })
}
