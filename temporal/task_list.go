package temporal

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// taskPage is how many tasks the server is asked for at once; with heads of
// MaxTaskHeadBytes a page stays below 1 MiB.
const taskPage = 500

// List implements [apcore.TaskStore]. It is made of pages of the server's
// visibility and never asks for single records, so records larger than a head
// come with a reference in place of their result, see durable.TaskResultRef.
func (s *TaskStore) List(ctx context.Context, status *apcore.TaskStatus) ([]apcore.TaskInfo, error) {
	records, err := s.Records(ctx, status)
	return infosOf(records), err
}

// Records is List with all that is known of each task.
func (s *TaskStore) Records(ctx context.Context, status *apcore.TaskStatus) ([]durable.TaskRecord, error) {
	found, err := s.collect(ctx, s.statusFilter(status), func(info *apcore.TaskInfo) bool {
		return status == nil || info.Status == *status
	})
	return recordsOf(found), s.storeError(ctx, "list", "", err)
}

// ListExpired implements [apcore.TaskStore].
func (s *TaskStore) ListExpired(ctx context.Context, before float64) ([]apcore.TaskInfo, error) {
	found, err := s.listExpired(ctx, before)
	return infosOf(recordsOf(found)), s.storeError(ctx, "list_expired", "", err)
}

func (s *TaskStore) listExpired(ctx context.Context, before float64) ([]*foundTask, error) {
	return s.collect(ctx, expiryFilter(before), func(info *apcore.TaskInfo) bool { return isExpired(info, before) })
}

func isExpired(info *apcore.TaskInfo, before float64) bool {
	return info.Status.Terminal() && info.CompletedAt != nil && *info.CompletedAt < before
}

// Pages streams the records of a status (nil for all) a page at a time, newest
// first, for lists too long to hold. Unlike List it shows only what the server
// lists already, and a task that ends meanwhile may come twice.
func (s *TaskStore) Pages(ctx context.Context, status *apcore.TaskStatus) iter.Seq2[[]durable.TaskRecord, error] {
	return func(yield func([]durable.TaskRecord, error) bool) {
		for page, err := range s.pages(ctx, s.statusFilter(status)) {
			var records []durable.TaskRecord
			for _, found := range page {
				if !found.record.Deleted && (status == nil || found.record.Task.Status == *status) {
					records = append(records, found.record)
				}
			}
			if !yield(records, s.storeError(ctx, "list", "", err)) || err != nil {
				return
			}
		}
	}
}

// Count returns how many tasks of a status there are, nil for all, as the server
// counts them; its visibility lags.
func (s *TaskStore) Count(ctx context.Context, status *apcore.TaskStatus) (int64, error) {
	bounded, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	answer, err := s.client.CountWorkflow(bounded, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: s.opts.Namespace, Query: s.query(s.statusFilter(status)),
	})
	return answer.GetCount(), s.storeError(ctx, "list", "", err)
}

// statusFilter finds the rows of a status. A workflow that somebody ended from
// outside could not correct its search attribute, see settle.
func (s *TaskStore) statusFilter(status *apcore.TaskStatus) string {
	if status == nil {
		return ""
	}
	same := durable.SearchTaskStatus + " = '" + quoteless(string(*status)) + "'"
	runsTask := "WorkflowType = '" + s.opts.Namer.Task() + "'"
	unsettled := durable.SearchTaskStatus + " IN ('pending', 'running')"
	switch *status {
	case apcore.TaskPending, apcore.TaskRunning:
		return same + " AND (WorkflowType != '" + s.opts.Namer.Task() + "' OR CloseTime IS NULL)"
	case apcore.TaskFailed:
		return "(" + same + " OR " + runsTask + " AND " + unsettled + " AND ExecutionStatus IN ('Terminated', 'TimedOut', 'Failed', 'Completed'))"
	case apcore.TaskCancelled:
		return "(" + same + " OR " + runsTask + " AND " + unsettled + " AND ExecutionStatus = 'Canceled')"
	default:
		return same
	}
}

// expiryFilter finds the rows that may have expired. SQL visibility rounds the
// end to five decimals, so the exact comparison is made with the record.
func expiryFilter(before float64) string {
	if math.IsNaN(before) || math.IsInf(before, 0) {
		return "CloseTime IS NOT NULL"
	}
	return "(" + durable.SearchTaskEnd + " < " + strconv.FormatFloat(math.Ceil(before)+1, 'f', -1, 64) +
		" OR " + durable.SearchTaskEnd + " IS NULL AND CloseTime IS NOT NULL)"
}

// quoteless keeps a status from a caller from becoming a part of the query.
func quoteless(text string) string { return strings.NewReplacer("'", "", `\`, "").Replace(text) }

func (s *TaskStore) query(filter string) string {
	query := durable.SearchTaskStore + " = '" + s.opts.Name + "' AND ExecutionStatus != 'ContinuedAsNew'"
	if filter != "" {
		query += " AND " + filter
	}
	return query
}

// collect gathers the wanted tasks in order of their places.
func (s *TaskStore) collect(ctx context.Context, filter string, wanted func(*apcore.TaskInfo) bool) ([]*foundTask, error) {
	overlay := s.overlay.snapshot()
	shown := map[string]*foundTask{}
	for page, err := range s.pages(ctx, filter) {
		if err != nil {
			return nil, err
		}
		for _, found := range page {
			id := found.record.Task.TaskID
			if other := shown[id]; other == nil || found.record.Newer(&other.record) {
				shown[id] = found
			}
		}
	}
	if err := s.laid(ctx, shown, overlay, wanted); err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(slices.Collect(maps.Values(shown)), func(found *foundTask) bool {
		return found.record.Deleted || !wanted(&found.record.Task)
	})
	slices.SortFunc(list, func(a, b *foundTask) int {
		return cmp.Or(cmp.Compare(a.record.Place, b.record.Place), cmp.Compare(a.record.Task.TaskID, b.record.Task.TaskID))
	})
	return list, nil
}

// pages asks visibility page by page.
func (s *TaskStore) pages(ctx context.Context, filter string) iter.Seq2[[]*foundTask, error] {
	return func(yield func([]*foundTask, error) bool) {
		var token []byte
		for {
			answer, err := s.page(ctx, filter, token)
			if err != nil {
				yield(nil, err)
				return
			}
			found, err := s.readRows(answer.GetExecutions())
			if !yield(found, err) || err != nil {
				return
			}
			if token = answer.GetNextPageToken(); len(token) == 0 {
				return
			}
		}
	}
}

// page asks for one page. The server allows few visibility calls a second (10 by
// default); the SDK waits for its turn, but not longer than 10 s.
func (s *TaskStore) page(ctx context.Context, filter string, token []byte) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	for {
		answer, err := s.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: s.opts.Namespace, PageSize: taskPage, NextPageToken: token, Query: s.query(filter),
		})
		if err == nil || ctx.Err() != nil || !isTimeoutOrCancel(err) {
			return answer, err
		}
	}
}

func (s *TaskStore) readRows(executions []*workflowpb.WorkflowExecutionInfo) ([]*foundTask, error) {
	found := make([]*foundTask, 0, len(executions))
	for _, execution := range executions {
		row := taskRow{
			workflowType: execution.GetType().GetName(), runID: execution.GetExecution().GetRunId(),
			status: execution.GetStatus(), started: execution.GetStartTime().AsTime(), memo: execution.GetMemo(),
		}
		if execution.GetCloseTime().IsValid() {
			row.closed = execution.GetCloseTime().AsTime()
		}
		task, err := s.read(&row)
		if err != nil {
			return nil, err
		}
		found = append(found, task)
	}
	return found, nil
}

func recordsOf(found []*foundTask) []durable.TaskRecord {
	records := make([]durable.TaskRecord, len(found))
	for i := range found {
		records[i] = found[i].record
	}
	return records
}

func infosOf(records []durable.TaskRecord) []apcore.TaskInfo {
	infos := make([]apcore.TaskInfo, len(records))
	for i := range records {
		infos[i] = records[i].Task
	}
	return infos
}

// isClosed reports that a save met a workflow that has ended.
func isClosed(err error) bool {
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	var notFound *serviceerror.NotFound
	var aborted *serviceerror.Aborted
	return errors.As(err, &started) || errors.As(err, &notFound) || errors.As(err, &aborted)
}
