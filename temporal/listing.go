package temporal

import (
	"encoding/json"

	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/durable"
)

// Search attributes and memo that show a run's pending approvals, when the
// worker says that they are registered. The worker's word travels with each
// approval, so that replay does the same whatever is registered by then.
var (
	searchPending  = sdktemporal.NewSearchAttributeKeyInt64(durable.SearchPendingApprovals)
	searchState    = sdktemporal.NewSearchAttributeKeyKeyword(durable.SearchState)
	searchModuleID = sdktemporal.NewSearchAttributeKeyKeyword(durable.SearchModuleID)
	searchGroup    = sdktemporal.NewSearchAttributeKeyKeyword(durable.SearchApproverGroup)
)

// States of a run for a search.
const (
	stateWaiting = "waiting"
	stateRunning = "running"
)

// publish brings the run's search attributes and memo up to date, if anything
// changed.
func (d *desk) publish(ctx workflow.Context) {
	heads := d.inbox.Heads()
	text, err := json.Marshal(heads)
	if err != nil || string(text) == d.shown || (d.shown == "" && len(heads) == 0) {
		return
	}
	d.shown = string(text)
	if err := workflow.UpsertTypedSearchAttributes(ctx, attributesOf(heads)...); err != nil {
		workflow.GetLogger(ctx).Warn("apcore: search attributes cannot be set", "error", err)
		return
	}
	if err := workflow.UpsertMemo(ctx, map[string]any{durable.MemoApprovals: heads}); err != nil {
		workflow.GetLogger(ctx).Warn("apcore: the memo cannot be set", "error", err)
	}
}

func attributesOf(heads []durable.ApprovalHead) []sdktemporal.SearchAttributeUpdate {
	updates := []sdktemporal.SearchAttributeUpdate{searchPending.ValueSet(int64(len(heads)))}
	if len(heads) == 0 {
		return append(updates, searchState.ValueSet(stateRunning), searchModuleID.ValueUnset(), searchGroup.ValueUnset())
	}
	updates = append(updates, searchState.ValueSet(stateWaiting), searchModuleID.ValueSet(heads[0].ModuleID))
	if len(heads[0].Approvers) > 0 {
		return append(updates, searchGroup.ValueSet(heads[0].Approvers[0]))
	}
	return append(updates, searchGroup.ValueUnset())
}
