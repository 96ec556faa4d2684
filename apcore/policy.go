package apcore

import (
	"bytes"
	"encoding/json"
	"io"
)

// ExecutionPolicy lets the host decide which calls need approval (apcore §7.9).
// It looks at the module id only, never at argument values. The zero value
// changes nothing.
type ExecutionPolicy struct {
	// Rules are tried by specificity of their pattern, see [Specificity]; among
	// equals the one that makes the module in question more restricted wins.
	Rules []PolicyRule `json:"rules"`
	// GateDestructive makes every destructive module need approval.
	GateDestructive bool `json:"gate_destructive"`
	// Strict denies a call that needs approval when there is no handler.
	Strict bool `json:"strict"`
}

// PolicyRule overrides a module's own annotations in both directions.
type PolicyRule struct {
	// Pattern selects modules, see [MatchPattern]. Required.
	Pattern string `json:"pattern"`
	// RequiresApproval replaces the annotation; nil leaves it.
	RequiresApproval *bool `json:"requires_approval,omitempty"`
	// Destructive replaces the annotation; nil leaves it.
	Destructive *bool `json:"destructive,omitempty"`
	// Reason is for the record.
	Reason string `json:"reason,omitempty"`
}

// ParseExecutionPolicy reads a policy from its wire form, {"rules": [{"pattern",
// "requires_approval", "destructive", "reason"}], "gate_destructive", "strict"}.
// Unknown keys, values of another type and a rule without a pattern fail with
// GENERAL_INVALID_INPUT: a misspelt rule must not pass as none.
func ParseExecutionPolicy(data []byte) (*ExecutionPolicy, error) {
	policy := &ExecutionPolicy{}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(policy); err != nil {
		return nil, NewError(CodeInvalidInput, "no execution policy: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, NewError(CodeInvalidInput, "more than one value where an execution policy should stand")
	}
	if err := policy.validate(); err != nil {
		return nil, err
	}
	return policy, nil
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

// requirement is what the policy makes of a module's own annotations, and by
// which rule, nil for none.
func (p *ExecutionPolicy) requirement(moduleID string, own Annotations) (needsApproval, destructive bool, applied *PolicyRule) {
	if p == nil {
		return own.RequiresApproval, own.Destructive, nil
	}
	needsApproval, destructive = p.apply(&PolicyRule{}, own)
	best := -1
	for i := range p.Rules {
		rule := &p.Rules[i]
		specificity := Specificity(rule.Pattern)
		if specificity < best || !MatchPattern(rule.Pattern, moduleID) {
			continue
		}
		needs, destroys := p.apply(rule, own)
		if specificity > best || stricter(needs, destroys, needsApproval, destructive) {
			best, applied, needsApproval, destructive = specificity, rule, needs, destroys
		}
	}
	return needsApproval, destructive, applied
}

func (p *ExecutionPolicy) apply(rule *PolicyRule, own Annotations) (needsApproval, destructive bool) {
	needsApproval, destructive = own.RequiresApproval, own.Destructive
	if rule.RequiresApproval != nil {
		needsApproval = *rule.RequiresApproval
	}
	if rule.Destructive != nil {
		destructive = *rule.Destructive
	}
	return needsApproval || p.GateDestructive && destructive, destructive
}

func stricter(needs, destroys, otherNeeds, otherDestroys bool) bool {
	if needs != otherNeeds {
		return needs
	}
	return destroys && !otherDestroys
}
