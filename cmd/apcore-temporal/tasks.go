package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

type tasksCommand struct {
	TaskQueue string `default:"apcore" help:"Queue of the workers that run the tasks."`
	Store     string `default:"tasks" help:"Name of the task store."`

	Submit  taskSubmitCommand  `cmd:"" help:"Start a task and print its id."`
	List    taskListCommand    `cmd:"" help:"List tasks in order of submission."`
	Get     taskGetCommand     `cmd:"" help:"Show one task."`
	Result  taskResultCommand  `cmd:"" help:"Print the result of a completed task."`
	Cancel  taskCancelCommand  `cmd:"" help:"Cancel a task and its running module."`
	Cleanup taskCleanupCommand `cmd:"" help:"Remove tasks that have ended."`
	Watch   taskWatchCommand   `cmd:"" help:"Follow a task until it ends."`
}

// Codes of the command line alone, for its exit codes.
const (
	codeTaskUnknown      apcore.Code = "TASK_UNKNOWN"
	codeTaskNotCompleted apcore.Code = "TASK_NOT_COMPLETED"
)

// manager connects to the tasks of a store; close the returned client.
func (t *tasksCommand) manager(ctx context.Context, c *connection) (*temporal.TaskManager, client.Client, error) {
	options, err := c.options()
	if err != nil {
		return nil, nil, err
	}
	connected, err := c.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	manager, err := temporal.NewTaskManager(connected, temporal.TaskManagerOptions{
		TaskStoreOptions: temporal.TaskStoreOptions{TaskQueue: t.TaskQueue, Name: t.Store, Namespace: options.Namespace},
	})
	if err != nil {
		connected.Close()
	}
	return manager, connected, err
}

// record reads a task; an unknown one is an error here.
func record(ctx context.Context, manager *temporal.TaskManager, id string) (*durable.TaskRecord, error) {
	found, err := manager.Store().Record(ctx, id)
	if err == nil && found == nil {
		err = apcore.NewError(codeTaskUnknown, "there is no task %s in this store", id).WithDetail("task_id", id)
	}
	return found, err
}

type taskSubmitCommand struct {
	ModuleID   string        `arg:"" help:"Module to run."`
	Inputs     string        `default:"{}" help:"Inputs as a JSON object."`
	Key        string        `help:"Request key: a second submission with it starts nothing."`
	MaxRetries int           `help:"Retries of a failed attempt, instead of those by annotation."`
	RetryDelay time.Duration `default:"1s" help:"First pause between attempts; it doubles up to a minute."`
	Wait       bool          `help:"Follow the task until it ends."`
	JSON       bool          `name:"json" help:"Print JSON."`
}

// Run prints the id of the task, or with --wait how it went.
func (s *taskSubmitCommand) Run(ctx context.Context, t *tasksCommand, c *connection, out io.Writer) error {
	inputs, err := apcore.DecodeObject([]byte(s.Inputs))
	if err != nil {
		return apcore.NewError(apcore.CodeInvalidInput, "--inputs is no JSON object: %w", err)
	}
	manager, connected, err := t.manager(ctx, c)
	if err != nil {
		return err
	}
	defer connected.Close()
	submission := temporal.TaskSubmission{ModuleID: s.ModuleID, Inputs: inputs, RequestKey: s.Key}
	if s.MaxRetries != 0 {
		retry := apcore.DefaultRetryConfig()
		retry.MaxRetries, retry.RetryDelayMS = s.MaxRetries, float64(s.RetryDelay)/float64(time.Millisecond)
		submission.Retry = &retry
	}
	id, err := manager.Start(ctx, submission)
	switch {
	case err != nil:
		return err
	case s.Wait:
		return follow(ctx, manager, id, s.JSON, out)
	case s.JSON:
		return printJSON(out, map[string]string{"task_id": id})
	}
	_, err = fmt.Fprintln(out, id)
	return err
}

type taskListCommand struct {
	Status string `enum:",pending,running,completed,failed,cancelled" default:"" help:"Only tasks of this status."`
	Limit  int    `help:"Only the last so many; zero lists all."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run prints a table, or JSON for programs.
func (l *taskListCommand) Run(ctx context.Context, t *tasksCommand, c *connection, out io.Writer) error {
	manager, connected, err := t.manager(ctx, c)
	if err != nil {
		return err
	}
	defer connected.Close()
	var status *apcore.TaskStatus
	if l.Status != "" {
		status = new(apcore.TaskStatus(l.Status))
	}
	records, err := manager.Store().Records(ctx, status)
	if err != nil {
		return err
	}
	if l.Limit > 0 && len(records) > l.Limit {
		records = records[len(records)-l.Limit:]
	}
	if l.JSON {
		return printJSON(out, records)
	}
	return taskTable(out, records)
}

type taskGetCommand struct {
	TaskID string `arg:"" help:"Task, as submit or list shows it."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run prints all that is known of a task.
func (g *taskGetCommand) Run(ctx context.Context, t *tasksCommand, c *connection, out io.Writer) error {
	manager, connected, err := t.manager(ctx, c)
	if err != nil {
		return err
	}
	defer connected.Close()
	found, err := record(ctx, manager, g.TaskID)
	if err != nil {
		return err
	}
	if g.JSON {
		return printJSON(out, found)
	}
	return taskDetails(out, found)
}

type taskResultCommand struct {
	TaskID string `arg:"" help:"Task, as submit or list shows it."`
}

// Run prints the result as JSON; a task without one has its own exit code.
func (r *taskResultCommand) Run(ctx context.Context, t *tasksCommand, c *connection, out io.Writer) error {
	manager, connected, err := t.manager(ctx, c)
	if err != nil {
		return err
	}
	defer connected.Close()
	found, err := record(ctx, manager, r.TaskID)
	if err != nil {
		return err
	}
	if found.Task.Status != apcore.TaskCompleted {
		return apcore.NewError(codeTaskNotCompleted, "task %s is not completed (status=%s)", r.TaskID, found.Task.Status)
	}
	return printJSON(out, found.Task.Result)
}

type taskCancelCommand struct {
	TaskID string `arg:"" help:"Task, as submit or list shows it."`
}

// Run cancels, and says so only if it was this call that did.
func (x *taskCancelCommand) Run(ctx context.Context, t *tasksCommand, c *connection, out io.Writer) error {
	manager, connected, err := t.manager(ctx, c)
	if err != nil {
		return err
	}
	defer connected.Close()
	cancelled, err := manager.Cancel(ctx, x.TaskID)
	if err != nil {
		return err
	}
	if cancelled {
		_, err = fmt.Fprintln(out, x.TaskID, "cancelled")
		return err
	}
	found, err := record(ctx, manager, x.TaskID)
	if err != nil {
		return err
	}
	return apcore.NewError(durable.CodeTaskEnded, "task %s has ended before: %s", x.TaskID, found.Task.Status)
}

type taskCleanupCommand struct {
	MaxAge time.Duration `default:"1h" help:"How long ended tasks are kept."`
	JSON   bool          `name:"json" help:"Print JSON."`
}

// Run prints how many tasks were removed.
func (x *taskCleanupCommand) Run(ctx context.Context, t *tasksCommand, c *connection, out io.Writer) error {
	manager, connected, err := t.manager(ctx, c)
	if err != nil {
		return err
	}
	defer connected.Close()
	removed, err := manager.Cleanup(ctx, x.MaxAge)
	if err != nil {
		return err
	}
	if x.JSON {
		return printJSON(out, map[string]int{"removed": removed})
	}
	_, err = fmt.Fprintln(out, removed, "removed")
	return err
}

type taskWatchCommand struct {
	TaskID string `arg:"" help:"Task, as submit or list shows it."`
	JSON   bool   `name:"json" help:"Print JSON, one record a line."`
}

// Run prints every change until the task ends.
func (w *taskWatchCommand) Run(ctx context.Context, t *tasksCommand, c *connection, out io.Writer) error {
	manager, connected, err := t.manager(ctx, c)
	if err != nil {
		return err
	}
	defer connected.Close()
	return follow(ctx, manager, w.TaskID, w.JSON, out)
}

const watchInterval = 250 * time.Millisecond

// follow prints a task whenever it has changed, until it has ended.
func follow(ctx context.Context, manager *temporal.TaskManager, id string, asJSON bool, out io.Writer) error {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	seen := durable.TaskSaved{}
	for {
		found, err := record(ctx, manager, id)
		if err != nil {
			return err
		}
		if found.Saved() != seen {
			if err := printProgress(out, found, asJSON); err != nil {
				return err
			}
		}
		if seen = found.Saved(); found.Task.Status.Terminal() {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func printProgress(out io.Writer, found *durable.TaskRecord, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(found)
	}
	_, err := fmt.Fprintf(out, "%s  %s  %s\n", found.Task.TaskID, found.Task.Status, taskNote(found))
	return err
}
