package temporal

import "github.com/apcore-temporal/apcore-temporal/durable"

// NewApprovalHandler makes the approval handler of workers that host gated
// modules: it sends every call that needs approval back to its workflow to wait,
// and reads the decision when the call comes again. Give it to the executor.
func NewApprovalHandler() *durable.ApprovalHandler { return durable.NewApprovalHandler() }
