package temporal

import (
	"encoding/json"
	"strconv"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// state belongs to one workflow execution. It is touched by its coroutines only.
type state struct {
	opts  Options
	info  *workflow.Info
	calls int
	// context is the run's own apcore context in wire form, the caller of every
	// call; data is its public part and grows with what calls return.
	context map[string]any
	data    map[string]any
	// text is the context as JSON, nil when it has changed since.
	text   json.RawMessage
	desk   *desk
	limits Limits
	budget *budget
	// locals remembers for this run where the units of modules run.
	locals map[string]bool
	audit  *auditor
	// running counts units under way, waiting are the calls that wait for a
	// decision, in the order in which they began to.
	running int
	waiting []*waiting
	// inherited are calls that the predecessor left waiting and that this run has
	// not made again yet.
	inherited []durable.Carried
	// leaving says that the run is going over to a successor, ended are calls that
	// came to their end since.
	leaving bool
	sending int // signals on their way to other runs
	ended   []durable.Carried
}

type stateKey struct{}

func stateOf(ctx workflow.Context) (*state, error) {
	if s, ok := ctx.Value(stateKey{}).(*state); ok {
		return s, nil
	}
	return nil, apcore.NewError(apcore.CodeConfigInvalid, "this worker does not prepare workflows for apcore: make it with package worker, or add temporal.NewInterceptor to its interceptors")
}

// newState builds the run's context from the caller's header, or a fresh one
// in the trace of the client's span, or else in one with the run id as its id.
func newState(ctx workflow.Context, opts Options, inherited *carried) *state {
	s := &state{opts: opts, limits: opts.Limits, budget: newBudget(ctx, opts.Limits), info: workflow.GetInfo(ctx), data: map[string]any{}, locals: map[string]bool{}}
	s.context = inherited.context
	if s.context == nil {
		s.context = fresh(freshTraceID(interceptor.WorkflowHeader(ctx), s.info))
	}
	mendTrace(ctx, s.context, s.info)
	if data, ok := s.context["data"].(map[string]any); ok {
		s.data = data
	}
	s.inherited = inherited.carry.Calls
	s.audit = &auditor{state: s}
	s.desk = newDesk(ctx, s, inherited.carry.InboxState)
	return s
}

// runID is the id that survives a reset.
func (s *state) runID() string { return runIDOf(s.info) }

func runIDOf(info *workflow.Info) string {
	if info.OriginalRunID != "" {
		return info.OriginalRunID
	}
	return info.WorkflowExecution.RunID
}

// nextCallID must be taken in the order of the workflow's code.
func (s *state) nextCallID() string {
	s.calls++
	return s.info.WorkflowExecution.ID + "/" + s.runID() + "/" + strconv.Itoa(s.calls)
}

// contextWire leaves out what readers take for absent anyway, since it goes with
// every call.
func (s *state) contextWire() map[string]any {
	if s.context["data"] = s.data; len(s.data) == 0 {
		delete(s.context, "data")
	}
	if s.context["caller_id"] == nil {
		delete(s.context, "caller_id")
	}
	return s.context
}

// contextText is the context as JSON. Requests share it: nobody may write to it.
func (s *state) contextText() (json.RawMessage, error) {
	if s.text == nil {
		text, err := apcore.EncodeJSON(s.contextWire())
		if err != nil {
			return nil, err
		}
		s.text = text
	}
	return s.text, nil
}

// merge takes over the data a call returned. Calls merge workflow task by workflow
// task, and within one in the order in which they were made; replay repeats both.
func (s *state) merge(changed map[string]json.RawMessage) error {
	for _, key := range workflow.DeterministicKeys(changed) {
		value, err := apcore.DecodeObject(wrap(changed[key]))
		if err != nil {
			return err
		}
		s.data[key], s.text = value["v"], nil
	}
	return nil
}

func wrap(text json.RawMessage) []byte { return []byte(`{"v":` + string(text) + `}`) }

// carried is what a run takes over from its client or its predecessor.
type carried struct {
	context map[string]any
	carry   durable.Carry
}
