package temporal

import (
	"context"
	"fmt"
	"iter"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// PendingRun is a run that waits for decisions, as a list over many runs shows
// it.
type PendingRun struct {
	WorkflowID   string                 `json:"workflow_id"`
	WorkflowType string                 `json:"workflow_type"`
	Approvals    []durable.ApprovalHead `json:"approvals"`
}

// PendingOptions narrows [Approvals.Pending]; the zero value lists everything.
type PendingOptions struct {
	// Namespace to look in; empty means "default".
	Namespace string
	// Query is a further condition in the server's list filter syntax.
	Query string
	// PageSize is how many runs one request asks for; zero means 100.
	PageSize int
	// Module keeps only approvals of this module.
	Module string
}

const defaultPageSize = 100

// Pending lists the runs that wait for decisions, page by page, from the
// server's visibility alone: no worker is asked, and nothing is asked for each
// run. The server lists a run some time after it began to wait. It needs the
// search attributes that [SearchAttributes] names; without them it fails with
// CONFIG_INVALID.
func (a *Approvals) Pending(ctx context.Context, opts PendingOptions) iter.Seq2[PendingRun, error] {
	return func(yield func(PendingRun, error) bool) {
		request := &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: opts.Namespace, PageSize: int32(opts.PageSize), Query: opts.query(), //nolint:gosec // the server bounds it
		}
		if request.Namespace == "" {
			request.Namespace = "default"
		}
		if request.PageSize <= 0 {
			request.PageSize = defaultPageSize
		}
		for {
			page, err := a.client.ListWorkflow(ctx, request)
			if err != nil {
				yield(PendingRun{}, notListed(err))
				return
			}
			for _, info := range page.GetExecutions() {
				run := PendingRun{WorkflowID: info.GetExecution().GetWorkflowId(), WorkflowType: info.GetType().GetName()}
				if err := run.read(a.opts.DataConverter, info.GetMemo().GetFields()[durable.MemoApprovals], opts.Module); !yield(run, err) {
					return
				}
			}
			if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
				return
			}
		}
	}
}

func (o PendingOptions) query() string {
	query := fmt.Sprintf("ExecutionStatus = 'Running' AND %s > 0", durable.SearchPendingApprovals)
	if o.Query != "" {
		query += " AND (" + o.Query + ")"
	}
	return query
}

func (r *PendingRun) read(dc converter.DataConverter, memo *commonpb.Payload, module string) error {
	if memo == nil {
		return nil
	}
	var heads []durable.ApprovalHead
	if err := dc.FromPayload(memo, &heads); err != nil {
		return apcore.NewError(apcore.CodeInternal, "memo %s of workflow %q cannot be read: %w", durable.MemoApprovals, r.WorkflowID, err)
	}
	for _, head := range heads {
		if module == "" || head.ModuleID == module {
			r.Approvals = append(r.Approvals, head)
		}
	}
	return nil
}

func notListed(err error) error {
	return apcore.NewError(apcore.CodeConfigInvalid, "the server cannot list pending approvals: %w", err).
		WithSuggestion("register the search attributes " + durable.SearchPendingApprovals + ", " + durable.SearchState + ", " + durable.SearchModuleID + " and " + durable.SearchApproverGroup)
}

// SearchAttributes are what lists of approvals and tasks need in a namespace, by
// name; register them once, see [SetUpSearchAttributes]. They stay within what a
// namespace on SQL visibility has room for (10 Keyword, 3 of each other type) and
// leave room for an application's own.
func SearchAttributes() map[string]enumspb.IndexedValueType {
	return map[string]enumspb.IndexedValueType{
		durable.SearchPendingApprovals: enumspb.INDEXED_VALUE_TYPE_INT,
		durable.SearchState:            enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		durable.SearchModuleID:         enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		durable.SearchApproverGroup:    enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		durable.SearchTaskStatus:       enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		durable.SearchTaskStore:        enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		durable.SearchTaskEnd:          enumspb.INDEXED_VALUE_TYPE_DOUBLE,
	}
}
