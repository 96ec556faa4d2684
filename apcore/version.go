package apcore

import (
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// constraintPattern is what the standard allows (D-85): a version or a part of
// one, alone or behind an operator. The library would take more.
var constraintPattern = regexp.MustCompile(`^(>=|<=|>|<|\^|~|=)?\s*\d+(\.\d+){0,2}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// MatchVersion reports whether a semantic version satisfies a constraint: exact
// (1.2.3), partial (1.2), >=, >, <=, <, caret (^1.2.3), tilde (~1.2), or several
// joined by commas, all of which must hold. A malformed constraint or version
// fails with VERSION_CONSTRAINT_INVALID.
func MatchVersion(constraint, version string) (bool, error) {
	for part := range strings.SplitSeq(constraint, ",") {
		if !constraintPattern.MatchString(strings.TrimSpace(part)) {
			return false, invalidConstraint(constraint, "it is no version, range, caret or tilde form")
		}
	}
	parsed, err := semver.NewConstraint(constraint)
	if err != nil {
		return false, invalidConstraint(constraint, err.Error())
	}
	candidate, err := semver.NewVersion(version)
	if err != nil {
		return false, invalidConstraint(constraint, "version "+version+" is no semantic version")
	}
	return parsed.Check(candidate), nil
}

func invalidConstraint(constraint, reason string) *Error {
	return NewError(CodeVersionConstraintInvalid, "version constraint %q is not valid: %s", constraint, reason).
		WithDetail("constraint", constraint).WithDetail("reason", reason)
}
