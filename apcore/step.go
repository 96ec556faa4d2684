package apcore

import (
	"context"
	"time"
)

// Step is one station of the pipeline (apcore §5.16). The eleven of the standard
// are in every preset's order; an application adds its own with
// [Strategy.InsertAfter] and [Strategy.InsertBefore]. A step value must not be
// changed once it is in a strategy, and its Run must be safe for concurrent use.
type Step struct {
	// Name is unique within a strategy.
	Name        string
	Description string
	// Removable and Replaceable say what [Strategy.Remove] and
	// [Strategy.Replace] may do with the step.
	Removable   bool
	Replaceable bool
	// MatchModules are patterns, see [MatchPattern]; the step is skipped for
	// modules that match none. Empty matches all.
	MatchModules []string
	// IgnoreErrors logs a failure and goes on.
	IgnoreErrors bool
	// Pure steps have no effect and take part in [Executor.Validate].
	Pure bool
	// Timeout bounds the step; its end is MODULE_TIMEOUT. Zero means none.
	Timeout time.Duration
	// Requires and Provides are tokens: what a step requires, an earlier one has
	// to provide. Checked when a step is inserted or put in another's place, not
	// when one is removed. The eleven steps provide context, module,
	// access_decision, approval, validated_inputs, output and validated_output.
	Requires, Provides []string
	// Run does the work. ctx carries the callee's context from the second step on.
	Run func(ctx context.Context, p *Pipeline) (StepResult, error)

	builtin bool // one of the eleven, not something in its place
}

// StepAction is what a step wants to happen next.
type StepAction string

// The three actions; the zero value continues.
const (
	StepContinue StepAction = "continue"
	StepSkipTo   StepAction = "skip_to"
	StepAbort    StepAction = "abort"
)

// StepResult is a step's answer; the zero value goes on with the next step.
type StepResult struct {
	Action StepAction
	// SkipTo names a later step, for StepSkipTo.
	SkipTo string
	// Explanation, Confidence (0 to 1) and Alternatives are for the trace.
	Explanation  string
	Confidence   float64
	Alternatives []string
}

func (r StepResult) decides() bool {
	return r.Action == StepSkipTo || r.Action == StepAbort || r.Confidence != 0 || len(r.Alternatives) > 0
}

// Pipeline is one call on its way through the steps. Steps and step middleware
// must not keep it.
type Pipeline struct{ run *run }

// ModuleID is the module called.
func (p *Pipeline) ModuleID() string { return p.run.moduleID }

// Context is the callee's context, nil before step context_creation.
func (p *Pipeline) Context() *Context { return p.run.callee }

// Module is the module found, nil before step module_lookup.
func (p *Pipeline) Module() Module {
	if p.run.entry == nil {
		return nil
	}
	return p.run.entry.module
}

// Inputs are the call's own; a step may change them.
func (p *Pipeline) Inputs() map[string]any {
	p.run.lent = true
	return p.run.ownInputs()
}

// SetInputs replaces the inputs.
func (p *Pipeline) SetInputs(inputs map[string]any) {
	p.run.inputs, p.run.inputsCaptured, p.run.lent = inputs, false, true
}

// Output is the module's, nil before step execute.
func (p *Pipeline) Output() map[string]any {
	p.run.fresh = false
	return p.run.ownOutput()
}

// SetOutput replaces the output.
func (p *Pipeline) SetOutput(output map[string]any) { p.run.setOutput(output) }

// DryRun reports whether this is [Executor.Validate].
func (p *Pipeline) DryRun() bool { return p.run.dryRun }

// StrategyName is the name of the strategy the call runs through.
func (p *Pipeline) StrategyName() string { return p.run.strategy.name }

// VersionHint is the caller's wish for a version, empty if there is none.
func (p *Pipeline) VersionHint() string { return p.run.hint }

// ArgumentKeys returns the names of the inputs, sorted, without the approval
// token: all that access rules may know about the arguments (§6.1).
func (p *Pipeline) ArgumentKeys() []string { return p.run.argumentKeys() }

// ApprovalDemanded reports whether access rules demand approval, whatever the
// module's annotations and the policy say.
func (p *Pipeline) ApprovalDemanded() bool { return p.run.aclAsks }

// DemandApproval makes the approval gate ask, as a rule of the access control
// does; a step in the place of acl_check uses it. It has no effect behind the
// gate.
func (p *Pipeline) DemandApproval() { p.run.aclAsks = true }

// Names of the eleven steps.
const (
	stepContext    = "context_creation"
	stepGuard      = "call_chain_guard"
	stepLookup     = "module_lookup"
	stepACL        = "acl_check"
	stepApproval   = "approval_gate"
	stepBefore     = "middleware_before"
	stepInputs     = "input_validation"
	stepExecute    = "execute"
	stepOutput     = "output_validation"
	stepAfter      = "middleware_after"
	stepReturn     = "return_result"
	standardPreset = "standard"
)

// builtin makes a step of a method of run.
func builtin(do func(*run, context.Context) error) func(context.Context, *Pipeline) (StepResult, error) {
	return func(ctx context.Context, p *Pipeline) (StepResult, error) { return StepResult{}, do(p.run, ctx) }
}

// standardSteps is the pipeline of §5.16 with its table of flags.
func standardSteps() []*Step {
	steps := []*Step{
		{Name: stepContext, Pure: true, Description: "derives the callee's context", Provides: []string{"context"}, Run: builtin((*run).createContext)},
		{Name: stepGuard, Pure: true, Removable: true, Replaceable: true, Description: "bounds the call chain", Run: builtin((*run).guardCallChain)},
		{Name: stepLookup, Pure: true, Description: "finds the module", Provides: []string{"module"}, Run: builtin((*run).lookUpModule)},
		{Name: stepACL, Pure: true, Removable: true, Replaceable: true, Description: "asks the access rules", Provides: []string{"access_decision"}, Run: builtin((*run).checkAccess)},
		{Name: stepApproval, Removable: true, Replaceable: true, Description: "asks for approval", Provides: []string{"approval"}, Run: builtin((*run).passApprovalGate)},
		{Name: stepBefore, Removable: true, Description: "runs Before of the middleware", Run: builtin((*run).middlewareBefore)},
		{Name: stepInputs, Pure: true, Removable: true, Replaceable: true, Description: "validates the inputs", Provides: []string{"validated_inputs"}, Run: builtin((*run).validateInputs)},
		{Name: stepExecute, Replaceable: true, Description: "runs the module", Provides: []string{"output"}, Run: builtin((*run).execute)},
		{Name: stepOutput, Pure: true, Removable: true, Replaceable: true, Description: "validates the output", Provides: []string{"validated_output"}, Run: builtin((*run).validateOutput)},
		{Name: stepAfter, Removable: true, Description: "runs After of the middleware", Run: builtin((*run).middlewareAfter)},
		{Name: stepReturn, Pure: true, Description: "returns the output", Run: builtin((*run).returnResult)},
	}
	for _, step := range steps {
		step.builtin = true
	}
	return steps
}

// StepNames returns the names of the eleven steps in their order (§5.16).
func StepNames() []string {
	names := []string{}
	for _, s := range standardSteps() {
		names = append(names, s.Name)
	}
	return names
}
