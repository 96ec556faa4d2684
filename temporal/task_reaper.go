package temporal

import (
	"context"
	"errors"
	"sync/atomic"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// Sweep deletes one page of the terminal records that ended before a time, in
// seconds since 1970, exclusive. It never deletes a pending or running one,
// whatever the server's list says.
func (s *TaskStore) Sweep(ctx context.Context, before float64) (durable.TaskSwept, error) {
	expired := func(info *apcore.TaskInfo) bool { return isExpired(info, before) }
	answer, err := s.page(ctx, expiryFilter(before), nil)
	if err != nil {
		return durable.TaskSwept{}, s.storeError(ctx, "list_expired", "", err)
	}
	rows, err := s.readRows(answer.GetExecutions())
	if err != nil {
		return durable.TaskSwept{}, err
	}
	swept := durable.TaskSwept{Pages: 1, More: len(answer.GetNextPageToken()) > 0}
	var found []*foundTask
	for _, row := range rows {
		if !row.record.Deleted && expired(&row.record.Task) {
			found = append(found, row)
		}
	}
	swept.Expired = len(found)
	swept.Deleted, err = s.deleteAll(ctx, found, expired)
	return swept, s.storeError(ctx, "delete", "", err)
}

// deleteAll deletes what still is as expected and counts it. It goes on after an
// error and returns the first one.
func (s *TaskStore) deleteAll(ctx context.Context, found []*foundTask, expected func(*apcore.TaskInfo) bool) (int, error) {
	var deleted atomic.Int64
	errs := make([]error, len(found))
	parallel(len(found), func(i int) {
		bounded, cancel := context.WithTimeout(ctx, s.opts.Timeout)
		defer cancel()
		done, err := s.deleteWhere(bounded, found[i].record.Task.TaskID, expected)
		if errs[i] = err; done {
			deleted.Add(1)
		}
	})
	for _, err := range errs {
		if err != nil {
			return int(deleted.Load()), err
		}
	}
	return int(deleted.Load()), nil
}

// StartReaper starts the reaper of a store, which has none by default: a Temporal
// schedule that outlives this process. Every sweep is a workflow of its own whose
// result says how many records were deleted; a worker of the task queue does it.
// It fails with REAPER_ALREADY_RUNNING while the store has one, whoever started
// it, and with GENERAL_INVALID_INPUT for negative options.
func (m *TaskManager) StartReaper(ctx context.Context, opts apcore.ReaperOptions) error {
	if opts.TTL < 0 || opts.SweepInterval < 0 {
		return apcore.NewError(apcore.CodeInvalidInput, "the reaper's TTL is %v and its interval %v: give positive ones, or zero for the defaults", opts.TTL, opts.SweepInterval)
	}
	if opts.TTL == 0 {
		opts.TTL = apcore.DefaultTaskTTL
	}
	if opts.SweepInterval == 0 {
		opts.SweepInterval = apcore.DefaultSweepInterval
	}
	s := m.store
	bounded, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	id := s.opts.Namer.TaskReaperID(s.opts.Name)
	_, err := s.client.ScheduleClient().Create(bounded, client.ScheduleOptions{
		ID:      id,
		Spec:    client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: opts.SweepInterval}}},
		Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
		// What was missed while the server was down, one sweep makes up for.
		CatchupWindow: opts.SweepInterval,
		Action: &client.ScheduleWorkflowAction{
			ID: id, Workflow: s.opts.Namer.TaskReaper(), TaskQueue: s.opts.TaskQueue,
			Args: []any{durable.TaskSweep{Store: s.opts.Name, TaskQueue: s.opts.TaskQueue, TTLSeconds: opts.TTL.Seconds()}},
		},
	})
	if errors.Is(err, sdktemporal.ErrScheduleAlreadyRunning) {
		return apcore.NewError(apcore.CodeReaperAlreadyRunning, "the reaper of store %q runs already: stop it first", s.opts.Name).WithDetail("schedule_id", id)
	}
	return s.storeError(ctx, "save", "", err)
}

// StopReaper stops the reaper of the store, whoever started it; a sweep that runs
// ends by itself. Without a reaper it does nothing.
func (m *TaskManager) StopReaper(ctx context.Context) error {
	s := m.store
	bounded, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	err := s.client.ScheduleClient().GetHandle(bounded, s.opts.Namer.TaskReaperID(s.opts.Name)).Delete(bounded)
	return s.storeError(ctx, "delete", "", unlessNotFound(err))
}
