package temporal

import (
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/durable"
)

// localChange begins the change ids of modules whose settings ask for local
// execution; the module id follows.
const localChange = "apcore-local/"

// runsLocally decides where the units of a module run. A local unit leaves another
// trace in the history than an activity, so the decision is a part of the run: what
// a caller says is workflow code and holds as it is, what a module says may change
// with any deploy and is remembered in the history.
//
// A module that asks for local execution gets it in runs that have not called it
// before. One that no longer does, and says "activity", still gets it in runs
// that have: while their history is replayed the recorded change says so, and from
// then on locals does.
func (s *state) runsLocally(ctx workflow.Context, moduleID string, caller, merged durable.Execution) bool {
	if caller != "" || merged == "" {
		return merged == durable.ExecutionLocal
	}
	local, decided := s.locals[moduleID]
	if decided {
		return local
	}
	if merged == durable.ExecutionLocal || workflow.IsReplaying(ctx) {
		local = workflow.GetVersion(ctx, localChange+moduleID, workflow.DefaultVersion, 1) == 1
	}
	s.locals[moduleID] = local
	return local
}
