package apcore

import "strings"

// controlPrefix begins the ids of modules that change the host itself.
const controlPrefix = "system.control."

// GovernanceState says which controls are really in place (apcore §6.6). Gates
// count only if they are the standard's own steps, whatever the names say.
type GovernanceState struct {
	ControlModulesRegistered         bool `json:"control_modules_registered"`
	ReadModulesRegistered            bool `json:"read_modules_registered"`
	ACLConfigured                    bool `json:"acl_configured"`
	BuiltinACLGateWired              bool `json:"builtin_acl_gate_wired"`
	ApprovalHandlerConfigured        bool `json:"approval_handler_configured"`
	BuiltinApprovalGateWired         bool `json:"builtin_approval_gate_wired"`
	PolicyStrict                     bool `json:"policy_strict"`
	AllControlModulesRequireApproval bool `json:"all_control_modules_require_approval"`
	UnprotectedControlSurface        bool `json:"unprotected_control_surface"`
}

// GovernanceState reads the controls of this executor; it changes nothing.
func (e *Executor) GovernanceState() GovernanceState {
	policy := e.executionPolicy()
	s := GovernanceState{
		ACLConfigured: e.accessControl() != nil, BuiltinACLGateWired: e.strategy.wired(stepACL),
		ApprovalHandlerConfigured: e.HasApprovalHandler(), BuiltinApprovalGateWired: e.strategy.wired(stepApproval),
		PolicyStrict: policy != nil && policy.Strict, AllControlModulesRequireApproval: true,
	}
	for _, id := range e.registry.IDs() {
		switch {
		case strings.HasPrefix(id, controlPrefix):
			s.ControlModulesRegistered = true
			s.AllControlModulesRequireApproval = s.AllControlModulesRequireApproval && e.NeedsApproval(id)
		case strings.HasPrefix(id, "system."):
			s.ReadModulesRegistered = true
		}
	}
	byACL := s.ACLConfigured && s.BuiltinACLGateWired
	byApproval := s.BuiltinApprovalGateWired && s.AllControlModulesRequireApproval && (s.ApprovalHandlerConfigured || s.PolicyStrict)
	s.UnprotectedControlSurface = s.ControlModulesRegistered && !byACL && !byApproval
	return s
}
