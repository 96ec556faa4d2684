package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

func taskTable(out io.Writer, records []durable.TaskRecord) error {
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "TASK\tMODULE\tSTATUS\tSUBMITTED\tRETRIES\tNOTE")
	for i := range records {
		info := &records[i].Task
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d/%d\t%s\n", info.TaskID, info.ModuleID, info.Status, moment(&info.SubmittedAt), info.RetryCount, info.MaxRetries, taskNote(&records[i]))
	}
	return table.Flush()
}

func taskDetails(out io.Writer, found *durable.TaskRecord) error {
	info := &found.Task
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(table, "task\t%s\nmodule\t%s\nstatus\t%s\nsubmitted\t%s\nstarted\t%s\nended\t%s\nretries\t%d of %d\n",
		info.TaskID, info.ModuleID, info.Status, moment(&info.SubmittedAt), moment(info.StartedAt), moment(info.CompletedAt), info.RetryCount, info.MaxRetries)
	if note := taskNote(found); note != "" {
		fmt.Fprintf(table, "note\t%s\n", note)
	}
	if info.Result != nil {
		text, err := apcore.EncodeJSON(info.Result)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "result\t%s\n", text)
	}
	return table.Flush()
}

// taskNote is what a person wants to know beside the status.
func taskNote(found *durable.TaskRecord) string {
	switch {
	case found.Approval != nil:
		return "waits for approval " + found.Approval.ApprovalID + " of " + found.Approval.WorkflowID
	case found.NextAttemptAt != nil:
		return "next attempt at " + moment(found.NextAttemptAt)
	case found.Task.Error != nil:
		return *found.Task.Error
	case found.LateOutcome != "":
		return "its module ended after all: " + found.LateOutcome
	default:
		return ""
	}
}

func moment(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return time.UnixMicro(int64(*seconds * 1e6)).UTC().Format(time.RFC3339)
}
