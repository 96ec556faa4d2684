package apcore

import (
	"slices"
	"time"
)

// Strategy is an order of steps (apcore §5.16). Start with [NewStrategy], change
// it, then give it to an executor, which takes a copy. It must not be changed
// from two goroutines at once.
type Strategy struct {
	name        string
	description string
	steps       []*Step
	index       map[string]int
	middleware  []StepMiddleware
}

// preset is what a strategy leaves out of the standard one.
type preset struct {
	description string
	without     []string
}

var presets = map[string]preset{
	standardPreset: {"all eleven steps", nil},
	"internal":     {"without access rules and approval", []string{stepACL, stepApproval}},
	"testing":      {"without access rules, approval and call-chain guard", []string{stepACL, stepApproval, stepGuard}},
	"performance":  {"without middleware", []string{stepBefore, stepAfter}},
	"minimal": {"the four steps that cannot be removed", []string{
		stepGuard, stepACL, stepApproval, stepBefore, stepInputs, stepOutput, stepAfter,
	}},
}

// NewStrategy makes one of the presets: standard (all eleven steps), internal
// (without access rules and approval), testing (also without the call-chain
// guard), performance (without middleware) or minimal (the four steps that
// cannot be removed). Another name fails with STRATEGY_NOT_FOUND.
//
// A preset without a gate switches that gate off, even where an access control
// or approval handler is attached.
func NewStrategy(name string) (*Strategy, error) {
	chosen, known := presets[name]
	if !known {
		return nil, NewError(CodeStrategyNotFound, "no strategy %q: there are standard, internal, testing, performance and minimal", name)
	}
	s := &Strategy{name: name, description: chosen.description}
	for _, step := range standardSteps() {
		if !slices.Contains(chosen.without, step.Name) {
			s.steps = append(s.steps, step)
		}
	}
	s.reindex()
	return s, nil
}

// Named returns a copy under another name.
func (s *Strategy) Named(name string) *Strategy {
	renamed := s.clone()
	renamed.name = name
	return renamed
}

// Described returns a copy with another description.
func (s *Strategy) Described(description string) *Strategy {
	described := s.clone()
	described.description = description
	return described
}

// Name is the strategy's name.
func (s *Strategy) Name() string { return s.name }

// StepNames returns the names of the steps in their order.
func (s *Strategy) StepNames() []string {
	names := make([]string, len(s.steps))
	for i, step := range s.steps {
		names[i] = step.Name
	}
	return names
}

// StrategyInfo describes a strategy. Names of steps prove nothing about gates:
// ask [Executor.GovernanceState].
type StrategyInfo struct {
	Name        string   `json:"name"`
	StepCount   int      `json:"step_count"`
	StepNames   []string `json:"step_names"`
	Description string   `json:"description"`
}

// Info describes the strategy.
func (s *Strategy) Info() StrategyInfo {
	return StrategyInfo{Name: s.name, StepCount: len(s.steps), StepNames: s.StepNames(), Description: s.description}
}

// InsertAfter puts a step behind another one. It fails with STEP_NOT_FOUND for
// an unknown anchor, STEP_NAME_DUPLICATE for a name that is taken,
// PIPELINE_DEPENDENCY_ERROR when nothing before provides what it requires, and
// GENERAL_INVALID_INPUT for a step without name or Run.
func (s *Strategy) InsertAfter(anchor string, step Step) error { return s.insert(anchor, 1, step) }

// InsertBefore puts a step in front of another one; errors as [Strategy.InsertAfter].
func (s *Strategy) InsertBefore(anchor string, step Step) error { return s.insert(anchor, 0, step) }

func (s *Strategy) insert(anchor string, offset int, step Step) error {
	at, known := s.index[anchor]
	switch {
	case !known:
		return NewError(CodeStepNotFound, "strategy %q has no step %q to put %q beside", s.name, anchor, step.Name)
	case step.Name == "" || step.Run == nil:
		return NewError(CodeInvalidInput, "a step needs Name and Run")
	}
	if _, taken := s.index[step.Name]; taken {
		return NewError(CodeStepNameDuplicate, "strategy %q has a step %q already", s.name, step.Name)
	}
	if err := s.provided(step, s.steps[:at+offset]); err != nil {
		return err
	}
	if err := hardened(step); err != nil {
		return err
	}
	step.builtin = false
	s.steps = slices.Insert(s.steps, at+offset, &step)
	s.reindex()
	return nil
}

func (s *Strategy) provided(step Step, before []*Step) error {
	for _, token := range step.Requires {
		if !slices.ContainsFunc(before, func(earlier *Step) bool { return slices.Contains(earlier.Provides, token) }) {
			return NewError(CodePipelineDependency, "step %q requires %q, which no step before it provides", step.Name, token)
		}
	}
	return nil
}

// Remove takes a step out; it fails with STEP_NOT_FOUND or STEP_NOT_REMOVABLE.
// What the step provided is not looked for.
func (s *Strategy) Remove(name string) error {
	at, known := s.index[name]
	switch {
	case !known:
		return NewError(CodeStepNotFound, "strategy %q has no step %q", s.name, name)
	case !s.steps[at].Removable:
		return NewError(CodeStepNotRemovable, "step %q cannot be removed", name)
	}
	s.steps = slices.Delete(s.steps, at, at+1)
	s.reindex()
	return nil
}

// Replace puts another step in a step's place, under the same name; it fails with
// STEP_NOT_FOUND or STEP_NOT_REPLACEABLE, and otherwise as [Strategy.InsertAfter].
// What may be done with the place stays, and so does what it provides unless the
// new step says otherwise.
func (s *Strategy) Replace(name string, step Step) error {
	at, known := s.index[name]
	switch {
	case !known:
		return NewError(CodeStepNotFound, "strategy %q has no step %q", s.name, name)
	case !s.steps[at].Replaceable:
		return NewError(CodeStepNotReplaceable, "step %q cannot be replaced", name)
	case step.Run == nil:
		return NewError(CodeInvalidInput, "a step needs Run")
	}
	step.Name, step.Removable, step.Replaceable, step.builtin = name, s.steps[at].Removable, true, false
	if step.Provides == nil {
		step.Provides = s.steps[at].Provides
	}
	if err := s.provided(step, s.steps[:at]); err != nil {
		return err
	}
	if err := hardened(step); err != nil {
		return err
	}
	s.steps[at] = &step
	return nil
}

// StepConfig changes how a step is run; nil fields stay as they are.
type StepConfig struct {
	MatchModules []string
	IgnoreErrors *bool
	Pure         *bool
	Timeout      *time.Duration
}

// Configure changes a step in place; doing it again changes nothing more. It
// fails with PIPELINE_STEP_NOT_FOUND, and with PIPELINE_CONFIGURATION_ERROR for
// what would hollow out a gate: ignored errors or a module filter on acl_check or
// approval_gate, or a pure approval_gate (D-130).
func (s *Strategy) Configure(name string, config StepConfig) error {
	at, known := s.index[name]
	if !known {
		return NewError(CodePipelineStepNotFound, "strategy %q has no step %q to configure", s.name, name)
	}
	step := *s.steps[at]
	if isGate(name) && config.MatchModules != nil {
		return errLimitedGate(name)
	}
	if config.MatchModules != nil {
		step.MatchModules = slices.Clone(config.MatchModules)
	}
	if config.IgnoreErrors != nil {
		step.IgnoreErrors = *config.IgnoreErrors
	}
	if config.Pure != nil {
		step.Pure = *config.Pure
	}
	if config.Timeout != nil {
		step.Timeout = *config.Timeout
	}
	if err := hardened(step); err != nil {
		return err
	}
	s.steps[at] = &step
	return nil
}

// hardened checks what no step may be, and what a gate may not be.
func hardened(step Step) error {
	if step.Timeout < 0 {
		return NewError(CodeInvalidInput, "the timeout of step %q is %v: give a positive one, or zero for none", step.Name, step.Timeout)
	}
	if !isGate(step.Name) {
		return nil
	}
	switch {
	case step.IgnoreErrors:
		return NewError(CodePipelineConfiguration, "errors of step %q cannot be ignored: it is a gate", step.Name)
	case len(step.MatchModules) > 0:
		return errLimitedGate(step.Name)
	case step.Name == stepApproval && step.Pure:
		return NewError(CodePipelineConfiguration, "step %q is not pure: it asks people", step.Name)
	}
	return nil
}

func errLimitedGate(name string) *Error {
	return NewError(CodePipelineConfiguration, "step %q cannot be limited to some modules: it is a gate", name)
}

// AddStepMiddleware adds hooks around every step, in this order.
func (s *Strategy) AddStepMiddleware(middleware StepMiddleware) error {
	if isNil(middleware) {
		return NewError(CodeInvalidInput, "the step middleware is nil")
	}
	s.middleware = append(s.middleware, middleware)
	return nil
}

// wired reports whether the standard's own step stands under its name.
func (s *Strategy) wired(name string) bool {
	at, known := s.index[name]
	return known && s.steps[at].builtin
}

func (s *Strategy) clone() *Strategy {
	copied := &Strategy{name: s.name, description: s.description, steps: slices.Clone(s.steps), middleware: slices.Clone(s.middleware)}
	copied.reindex()
	return copied
}

func (s *Strategy) reindex() {
	s.index = make(map[string]int, len(s.steps))
	for i, step := range s.steps {
		s.index[step.Name] = i
	}
}
