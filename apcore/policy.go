package apcore

// ExecutionPolicy lets the host decide which calls need approval (apcore §7.9).
// It looks at the module id only, never at argument values. The zero value
// changes nothing.
type ExecutionPolicy struct {
	// Rules are tried by specificity of their pattern; among equals the more
	// restrictive one wins.
	Rules []PolicyRule
	// GateDestructive makes every destructive module need approval.
	GateDestructive bool
	// Strict denies a call that needs approval when there is no handler.
	Strict bool
}

// PolicyRule overrides a module's own annotations in both directions.
type PolicyRule struct {
	// Pattern selects modules, see [MatchPattern]. Required.
	Pattern string
	// RequiresApproval replaces the annotation; nil leaves it.
	RequiresApproval *bool
	// Destructive replaces the annotation; nil leaves it.
	Destructive *bool
	// Reason is for the record.
	Reason string
}

func (p *ExecutionPolicy) validate() error {
	if p == nil {
		return nil
	}
	for i, rule := range p.Rules {
		if rule.Pattern == "" {
			return NewError(CodeInvalidInput, "policy rule %d has no pattern: give one, \"*\" matches every module", i)
		}
	}
	return nil
}

// ruleFor returns the rule that applies to a module, nil if none does.
func (p *ExecutionPolicy) ruleFor(moduleID string) *PolicyRule {
	if p == nil {
		return nil
	}
	var best *PolicyRule
	for i := range p.Rules {
		rule := &p.Rules[i]
		if !MatchPattern(rule.Pattern, moduleID) {
			continue
		}
		if best == nil || rule.beats(best) {
			best = rule
		}
	}
	return best
}

func (r *PolicyRule) beats(other *PolicyRule) bool {
	mine, theirs := Specificity(r.Pattern), Specificity(other.Pattern)
	if mine != theirs {
		return mine > theirs
	}
	return r.restriction() > other.restriction()
}

// restriction orders rules of equal specificity: what demands most comes first.
func (r *PolicyRule) restriction() int {
	score := 0
	for _, flag := range []*bool{r.RequiresApproval, r.Destructive} {
		switch {
		case flag == nil:
		case *flag:
			score += 2
		default:
			score--
		}
	}
	return score
}

// requirement is what the policy makes of a module's own annotations.
func (p *ExecutionPolicy) requirement(moduleID string, own Annotations) (needsApproval, destructive bool, applied *PolicyRule) {
	needsApproval, destructive = own.RequiresApproval, own.Destructive
	if applied = p.ruleFor(moduleID); applied != nil {
		if applied.RequiresApproval != nil {
			needsApproval = *applied.RequiresApproval
		}
		if applied.Destructive != nil {
			destructive = *applied.Destructive
		}
	}
	if p != nil && p.GateDestructive && destructive {
		needsApproval = true
	}
	return needsApproval, destructive, applied
}
