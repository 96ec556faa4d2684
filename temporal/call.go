package temporal

import (
	"bytes"
	"encoding/json"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// Call runs a module as an activity and returns its output. in becomes the
// module's inputs: a struct or map with JSON tags, nil for {}. When the module
// needs approval, Call waits for the decision and goes on with it.
//
// Errors carry a code. Before anything is scheduled: GENERAL_INVALID_INPUT for
// inputs that are no JSON object (NaN, a channel, a cycle), INVALID_MODULE_ID,
// PAYLOAD_TOO_LARGE, TOKEN_REFUSED for inputs with an approval token. After:
// the module's and the executor's own, APPROVAL_DENIED with the approver's
// reason, APPROVAL_TIMEOUT, OUTCOME_UNKNOWN for a lost at-most-once call, and
// EXECUTION_CANCELLED when the workflow is cancelled. An output that does not
// fit Out is GENERAL_INVALID_INPUT.
func Call[Out any](ctx workflow.Context, moduleID string, in any) (Out, error) {
	result, err := CallRaw(ctx, moduleID, in)
	if err != nil {
		var zero Out
		return zero, err
	}
	return decodeOutput[Out](ctx, result)
}

// CallRaw is [Call] with everything that came back: the output as JSON, and
// which build of the module ran.
func CallRaw(ctx workflow.Context, moduleID string, in any) (*durable.CallResult, error) {
	c, err := prepare(ctx, moduleID, in)
	if err != nil {
		return nil, local(ctx, err)
	}
	return c.run(ctx)
}

// Future is a call in flight.
type Future[Out any] struct {
	done   workflow.Future
	result *durable.CallResult
	err    error
}

// CallAsync starts a call and returns at once; everything else is as in [Call].
// Many calls in flight are the normal case: they wait for their approvals side
// by side.
func CallAsync[Out any](ctx workflow.Context, moduleID string, in any) *Future[Out] {
	done, settable := workflow.NewFuture(ctx)
	f := &Future[Out]{done: done}
	c, err := prepare(ctx, moduleID, in)
	if err != nil {
		f.err = local(ctx, err)
		settable.SetValue(true)
		return f
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		f.result, f.err = c.run(ctx)
		settable.SetValue(true)
	})
	return f
}

// Get blocks until the call is done. It may be called often.
func (f *Future[Out]) Get(ctx workflow.Context) (Out, error) {
	var zero Out
	if err := f.done.Get(ctx, nil); err != nil {
		return zero, err
	}
	if f.err != nil {
		return zero, f.err
	}
	return decodeOutput[Out](ctx, f.result)
}

// IsReady reports whether Get returns at once.
func (f *Future[Out]) IsReady() bool { return f.done.IsReady() }

// Done becomes ready with the call, for a workflow.Selector.
func (f *Future[Out]) Done() workflow.Future { return f.done }

// ContextData returns a copy of the public context data of this run: what it
// inherited and what its calls have returned so far. It is empty outside a
// prepared workflow.
func ContextData(ctx workflow.Context) map[string]any {
	s, err := stateOf(ctx)
	if err != nil {
		return map[string]any{}
	}
	data, err := apcore.DecodeObject(mustJSON(s.data))
	if err != nil {
		return map[string]any{}
	}
	return data
}

// call is one prepared module call.
type call struct {
	state    *state
	request  durable.CallRequest
	policy   durable.Policy
	settings durable.Settings
	local    bool
	summary  string
	// atRoot shows approvals at the root of the tree as well.
	atRoot bool
	// adopted is the call of a predecessor that this one continues.
	adopted *durable.Carried
}

// prepare does everything that can fail before anything is scheduled, and gives
// the call its number.
func prepare(ctx workflow.Context, moduleID string, in any) (*call, error) {
	c, err := prepareCall(ctx, moduleID, in)
	if err != nil {
		return nil, err
	}
	c.local = c.state.runsLocally(ctx, moduleID, callOptions(ctx).execution(), c.settings.Execution)
	c.request.CallID = c.state.nextCallID()
	c.adopted, err = c.state.adopt(c.request)
	return c, err
}

// prepareCall does what calls and previews have in common.
func prepareCall(ctx workflow.Context, moduleID string, in any) (*call, error) {
	s, err := stateOf(ctx)
	if err != nil {
		return nil, err
	}
	if err := apcore.ValidateModuleID(moduleID); err != nil {
		return nil, err
	}
	opts := callOptions(ctx)
	entry := s.opts.Catalog.entry(moduleID)
	if err := opts.check(moduleID, entry.base.Class); err != nil {
		return nil, err
	}
	inputs, err := encodeInputs(moduleID, in, s.limits.MaxInputBytes)
	if err != nil {
		return nil, err
	}
	contextWire, err := s.contextText()
	if err != nil {
		return nil, err
	}
	if err := durable.CheckSize(moduleID, "context", durable.EncodedSize(contextWire), s.limits.MaxContextBytes); err != nil {
		return nil, err
	}
	settings := opts.over(entry.settings)
	return &call{
		state: s,
		request: durable.CallRequest{
			V: durable.WireVersion, ModuleID: moduleID, Inputs: inputs, Context: contextWire,
			IdempotencyKey: opts.IdempotencyKey, VersionHint: opts.VersionHint, Fingerprint: entry.fingerprint,
			AcceptRepeatedEffects: opts.AcceptRepeatedEffects, Ask: entry.gated && !entry.base.Class.Repeats(),
			ApprovalTimeoutMS: opts.approvalTimeoutMS(),
		},
		policy:   opts.policy(entry.base, settings),
		settings: settings,
		atRoot:   opts.ApproveAtRoot,
		summary:  shorten(entry.description),
	}, nil
}

// encodeInputs writes inputs as a JSON object, so that what cannot be written
// is an ordinary error here and never a panic in the scheduler.
func encodeInputs(moduleID string, in any, limit int) (json.RawMessage, error) {
	text, err := apcore.EncodeJSON(in)
	if err != nil {
		return nil, apcore.AsError(err).WithDetail("module_id", moduleID)
	}
	if bytes.Equal(text, []byte("null")) {
		text = []byte("{}")
	}
	if err := durable.CheckSize(moduleID, "inputs", durable.EncodedSize(text), limit); err != nil {
		return nil, err
	}
	if text[0] == '{' && !mayHoldToken(text) {
		return text, nil // reading it once more would take time on every replay
	}
	object, err := apcore.DecodeObject(text)
	if err != nil {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "inputs of module %q are no JSON object: pass a struct or a map", moduleID).
			WithDetail("module_id", moduleID)
	}
	if _, brought := object[apcore.ApprovalTokenKey]; brought {
		return nil, apcore.NewError(durable.CodeTokenRefused, "inputs of module %q bring their own %s: approvals are waited for by the call itself", moduleID, apcore.ApprovalTokenKey).
			WithDetail("module_id", moduleID)
	}
	return text, nil
}

// mayHoldToken is false for JSON in which no key can be the approval token's.
func mayHoldToken(text []byte) bool {
	return bytes.Contains(text, []byte(apcore.ApprovalTokenKey)) || bytes.Contains(text, []byte(`\u`))
}

func (c *call) run(ctx workflow.Context) (*durable.CallResult, error) {
	result, err := c.durable(&engine{ctx: ctx, call: c, rejoin: c.adopted != nil})
	c.state.ends(c.request, result, err)
	if err != nil {
		return nil, err
	}
	if err := c.state.merge(result.Data); err != nil {
		return nil, local(ctx, err)
	}
	return &result, nil
}

func (c *call) durable(e *engine) (durable.CallResult, error) {
	if c.adopted != nil {
		return durable.Resume(e, c.request, *c.adopted, c.policy)
	}
	return durable.Run(e, c.request, c.policy)
}

// engine is Temporal for one call.
type engine struct {
	ctx  workflow.Context
	call *call
	// rejoin says that the next approval is one that a predecessor opened.
	rejoin bool
}

func (e *engine) Do(request durable.CallRequest) (durable.CallResult, error) {
	s := e.call.state
	s.running++
	defer func() { s.running-- }()
	result, err := e.unit(request)
	if request.Decision != nil && result.Status != durable.StatusDecisionRefused {
		if approval, ok := s.desk.inbox.Get(request.Decision.ApprovalID); ok {
			s.audit.record(e.ctx, durable.AuditExecution(approval, result, err, e.Now()))
		}
	}
	return result, err
}

func (e *engine) unit(request durable.CallRequest) (durable.CallResult, error) {
	policy := e.call.policy.For(request)
	var result durable.CallResult
	size, err := e.call.state.limits.checkRequest(request)
	if err != nil {
		return result, local(e.ctx, err)
	}
	if e.call.local { // the history keeps its result instead
		size = maxLocalResultBytes
	}
	if err := e.call.state.budget.admit(e.ctx, size); err != nil {
		return result, cancelledBeforeStart(e.ctx, request.ModuleID, err)
	}
	if err := e.schedule(request, policy).Get(e.ctx, &result); err != nil {
		return result, callFailure(request, policy, err, e.Now())
	}
	return result, nil
}

func (e *engine) schedule(request durable.CallRequest, policy durable.Policy) workflow.Future {
	unit := e.call.state.opts.Namer.Unit(durable.OperationCall, request.ModuleID)
	if e.call.local {
		ctx := workflow.WithLocalActivityOptions(e.ctx, localOptions(policy, e.call.summary))
		return workflow.ExecuteLocalActivity(ctx, unit, request)
	}
	ctx := workflow.WithActivityOptions(e.ctx, activityOptions(policy, e.call.settings, e.call.summary))
	return workflow.ExecuteActivity(ctx, unit, request)
}

func (e *engine) AwaitDecision(request durable.CallRequest, approval durable.Approval) (durable.Decision, error) {
	s, rejoin := e.call.state, e.rejoin
	e.rejoin = false
	w := s.wait(request, approval.ApprovalID)
	defer s.waited(w)
	defer observed(e.ctx, &approval)()
	return s.desk.await(e.ctx, approval, awaitOptions{rejoin: rejoin, atRoot: e.call.atRoot})
}

func (e *engine) Sleep(d time.Duration) error {
	if err := workflow.Sleep(e.ctx, d); err != nil {
		e := &apcore.Error{Code: apcore.CodeExecutionCancelled, Message: "the call was cancelled between two attempts", Timestamp: e.Now()}
		return &callError{&durable.Failure{Err: e, NotStarted: true}, err}
	}
	return nil
}

func (e *engine) Now() time.Time { return workflow.Now(e.ctx) }

var _ durable.Engine = (*engine)(nil)

// local gives an error that arose in workflow code the run's time, so that it
// is the same on replay.
func local(ctx workflow.Context, err error) error {
	found := apcore.AsError(err)
	if found == nil {
		return err
	}
	stamped := *found
	stamped.Timestamp = workflow.Now(ctx)
	return &stamped
}

func decodeOutput[Out any](ctx workflow.Context, result *durable.CallResult) (Out, error) {
	var out Out
	decoder := json.NewDecoder(bytes.NewReader(result.Output))
	decoder.UseNumber()
	if err := decoder.Decode(&out); err != nil {
		return out, local(ctx, apcore.NewError(apcore.CodeInvalidInput, "output of module %q does not fit %T", result.Module.ID, out).
			WithDetail("module_id", result.Module.ID))
	}
	return out, nil
}

const maxSummary = 100

func shorten(text string) string {
	runes := []rune(text)
	if len(runes) > maxSummary {
		return string(runes[:maxSummary-1]) + "…"
	}
	return text
}

// mustJSON encodes what came as JSON; it cannot fail.
func mustJSON(value any) []byte {
	text, err := apcore.EncodeJSON(value)
	if err != nil {
		return []byte("{}")
	}
	return text
}
