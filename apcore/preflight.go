package apcore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// Preflighter warns about a call before it is made, without effect (apcore
// §12.8). It is asked by [Executor.Validate] only.
type Preflighter interface {
	Preflight(ctx context.Context, inputs map[string]any, c *Context) ([]string, error)
}

// Previewer foretells what a call would change, without effect. nil means it
// cannot say.
type Previewer interface {
	Preview(ctx context.Context, inputs map[string]any, c *Context) ([]Change, error)
}

// Change is one foretold change.
type Change struct {
	Action  string `json:"action"`
	Target  string `json:"target"`
	Summary string `json:"summary"`
	Before  any    `json:"before,omitempty"`
	After   any    `json:"after,omitempty"`
	// Extra holds further keys, all of which begin with "x-".
	Extra map[string]any `json:"-"`
}

// Map returns the wire form; extra keys that do not begin with "x-" are left out.
func (c Change) Map() map[string]any {
	wire := map[string]any{"action": c.Action, "target": c.Target, "summary": c.Summary}
	if c.Before != nil {
		wire["before"] = c.Before
	}
	if c.After != nil {
		wire["after"] = c.After
	}
	for key, value := range c.Extra {
		if strings.HasPrefix(key, "x-") {
			wire[key] = value
		}
	}
	return wire
}

// MarshalJSON writes the wire form.
func (c Change) MarshalJSON() ([]byte, error) { return jsonvalue.Encode(c.Map()) }

// UnmarshalJSON reads the wire form; keys beside the five that do not begin with
// "x-" are left out. It fails with GENERAL_INVALID_INPUT when action, target or
// summary is missing or no text.
func (c *Change) UnmarshalJSON(data []byte) error {
	wire, err := decodeObject(data)
	if err != nil {
		return err
	}
	read := Change{Before: wire["before"], After: wire["after"]}
	for key, text := range map[string]*string{"action": &read.Action, "target": &read.Target, "summary": &read.Summary} {
		value, ok := wire[key].(string)
		if !ok {
			return NewError(CodeInvalidInput, "a predicted change needs the text %q", key)
		}
		*text = value
	}
	for key, value := range wire {
		if strings.HasPrefix(key, "x-") {
			if read.Extra == nil {
				read.Extra = map[string]any{}
			}
			read.Extra[key] = value
		}
	}
	*c = read
	return nil
}

// PreflightResult is what [Executor.Validate] found.
type PreflightResult struct {
	// Valid holds when every check passed.
	Valid bool `json:"valid"`
	// Checks stand in the order of the pipeline.
	Checks []PreflightCheck `json:"checks"`
	// RequiresApproval says that the call would need approval.
	RequiresApproval bool `json:"requires_approval"`
	// PredictedChanges is never nil.
	PredictedChanges []Change `json:"predicted_changes"`
	// Errors are those of the failed checks.
	Errors []*Error `json:"errors"`
}

// PreflightCheck is one check.
type PreflightCheck struct {
	Check    string   `json:"check"`
	Passed   bool     `json:"passed"`
	Error    *Error   `json:"error"`
	Warnings []string `json:"warnings"`
}

// checkNames translates steps into checks; a custom pure step keeps its name.
var checkNames = map[string]string{
	stepContext: "context", stepGuard: "call_chain", stepLookup: "module_lookup", stepACL: "acl", stepInputs: "schema",
}

// Validate checks a call without making it (apcore §12.8): it runs the pure
// steps, collects every failure and says whether approval would be needed. The
// module does not run, nobody is asked, and the caller's inputs stay as they are.
// To a caller whom the access rules deny, the module tells nothing.
func (e *Executor) Validate(ctx context.Context, moduleID string, inputs map[string]any, c *Context) *PreflightResult {
	p := &preflight{result: &PreflightResult{Valid: true, Checks: []PreflightCheck{}, PredictedChanges: []Change{}, Errors: []*Error{}}}
	if c == nil {
		c = NewContext(ContextOptions{Logger: e.logger})
	}
	if err := c.bindable(e); err != nil {
		p.record("executor_binding", err)
	}
	if err := ValidateModuleID(moduleID); err != nil {
		p.record("module_id", err)
		return p.result
	}
	p.record("module_id", nil)
	copied, err := jsonvalue.CloneObject(inputs)
	if err != nil {
		p.record("schema", NewError(CodeInvalidInput, "inputs of module %q are no JSON object: %w", moduleID, err))
		return p.result
	}
	delete(copied, ApprovalTokenKey)
	// Not the caller's own context: a validation binds nobody to this executor.
	p.run = newRun(e, c.boundTo(e), Request{ModuleID: moduleID}, copied, &Outcome{})
	p.run.dryRun = true
	p.contained(ctx)
	return p.result
}

// preflight is one validation.
type preflight struct {
	run    *run
	result *PreflightResult
	failed map[string]bool
}

// contained survives hooks that end their goroutine.
func (p *preflight) contained(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { p.run.token.release() }()
		var err error
		defer func() {
			if err != nil {
				p.record("pipeline", err)
			}
		}()
		defer recoverTo(&err, "validation")
		p.check(ctx)
	}()
	<-done
}

func (p *preflight) check(ctx context.Context) {
	p.failed = map[string]bool{}
	for _, step := range p.run.strategy.steps {
		if p.leavesOut(step) || p.run.skips(step) != "" {
			continue
		}
		_, err := p.run.body(p.run.within(ctx), step)
		p.record(nameOfCheck(step), err)
		if step.Name == stepACL && p.run.entry != nil {
			p.sayApproval()
		}
	}
	if _, asked := p.run.strategy.index[stepACL]; !asked && p.run.entry != nil {
		p.sayApproval()
	}
	p.askModule(p.run.within(ctx))
}

// leavesOut names the steps that make no sense without what went before: after a
// failed lookup nothing that needs the module, and never the module, its hooks,
// the gate that asks people, or what follows the module, even if somebody has
// declared them pure.
func (p *preflight) leavesOut(step *Step) bool {
	switch step.Name {
	case stepApproval, stepBefore, stepExecute, stepOutput, stepAfter, stepReturn:
		return true
	case stepContext, stepGuard, stepLookup:
		return p.failed["context"]
	case stepACL:
		return p.failed["context"]
	default:
		return p.failed["context"] || p.failed["module_lookup"]
	}
}

func nameOfCheck(step *Step) string {
	if name, known := checkNames[step.Name]; known {
		return name
	}
	return step.Name
}

func (p *preflight) record(check string, err error) {
	if err == nil {
		p.result.Checks = append(p.result.Checks, PreflightCheck{Check: check, Passed: true, Warnings: []string{}})
		return
	}
	e := AsError(err)
	if p.run != nil {
		e = AsError(p.run.propagate(err))
		p.failed[check] = true
	}
	p.result.Valid = false
	p.result.Errors = append(p.result.Errors, e)
	p.result.Checks = append(p.result.Checks, PreflightCheck{Check: check, Error: e, Warnings: []string{}})
}

// sayApproval reports the requirement; the handler is not asked.
func (p *preflight) sayApproval() {
	needed, _ := p.run.approvalNeeded()
	p.result.RequiresApproval = needed
	p.record("approval", nil)
}

// askModule runs the module's own hooks, which advise only, and only a caller
// whom the access rules let through.
func (p *preflight) askModule(ctx context.Context) {
	if p.run.entry == nil || p.failed["acl"] || p.failed["module_lookup"] {
		return
	}
	if module, ok := p.run.entry.module.(Preflighter); ok {
		var warnings []string
		err := p.advice(ctx, func(ctx context.Context, inputs map[string]any) (err error) {
			warnings, err = module.Preflight(ctx, inputs, p.run.callee)
			return err
		})
		p.advise("module_preflight", "preflight", warnings, err)
	}
	if module, ok := p.run.entry.module.(Previewer); ok {
		var changes []Change
		err := p.advice(ctx, func(ctx context.Context, inputs map[string]any) (err error) {
			changes, err = module.Preview(ctx, inputs, p.run.callee)
			return err
		})
		if changes != nil || err != nil {
			p.advise("module_preview", "preview", p.predict(p.clean(changes)), err)
		}
	}
}

// predict takes over the changes that say what they change, and warns about the
// others.
func (p *preflight) predict(changes []Change) (warnings []string) {
	for i, change := range changes {
		if change.Action == "" || change.Target == "" || change.Summary == "" {
			warnings = append(warnings, fmt.Sprintf("preview() change %d is left out: it needs action, target and summary", i))
			continue
		}
		p.result.PredictedChanges = append(p.result.PredictedChanges, change)
	}
	return warnings
}

// advice gives a hook its own copy of the inputs and survives its panic.
func (p *preflight) advice(ctx context.Context, ask func(context.Context, map[string]any) error) (err error) {
	inputs, err := jsonvalue.CloneObject(p.run.inputs)
	if err != nil {
		return err
	}
	defer recoverTo(&err, "the module's advice")
	return ask(ctx, inputs)
}

func (p *preflight) advise(check, hook string, warnings []string, err error) {
	clean := p.run.cleaner()
	warnings = slices.Clone(warnings)
	for i, warning := range warnings {
		warnings[i] = clean.text(warning)
	}
	if warnings == nil {
		warnings = []string{}
	}
	if err != nil {
		warnings = append(warnings, fmt.Sprintf("%s() raised %s: %s", hook, typeName(err), clean.cause(err).Error()))
	}
	p.result.Checks = append(p.result.Checks, PreflightCheck{Check: check, Passed: true, Warnings: warnings})
}

// clean takes secrets of the call out of what a module foretells; what it would
// change has names, too.
func (p *preflight) clean(changes []Change) []Change {
	clean, c := make([]Change, len(changes)), p.run.cleaner()
	for i, change := range changes {
		extra, _ := c.value(change.Extra).(map[string]any)
		clean[i] = Change{
			Action: c.text(change.Action), Target: c.text(change.Target), Summary: c.text(change.Summary),
			Before: c.value(change.Before), After: c.value(change.After), Extra: extra,
		}
	}
	return clean
}
