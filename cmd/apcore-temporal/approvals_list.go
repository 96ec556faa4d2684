package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

type listCommand struct {
	WorkflowID string `arg:"" optional:"" help:"Workflow to list; without it, everything that waits in the namespace."`
	Query      string `help:"Further condition in the server's list filter syntax, without a workflow." placeholder:"FILTER"`
	Module     string `help:"Only approvals of this module, without a workflow."`
	Limit      int    `help:"List at most so many runs, without a workflow." default:"100"`
	JSON       bool   `name:"json" help:"Print JSON."`
}

// Run prints a table, or JSON for programs.
func (l *listCommand) Run(ctx context.Context, c *connection, out io.Writer) error {
	approvals, connected, err := c.approvals(ctx)
	if err != nil {
		return err
	}
	defer connected.Close()
	if l.WorkflowID == "" {
		return l.everywhere(ctx, c, approvals, out)
	}
	list, err := approvals.List(ctx, l.WorkflowID)
	if err != nil {
		return err
	}
	if l.JSON {
		return printJSON(out, list)
	}
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "APPROVAL\tMODULE\tSTATUS\tREQUESTER\tDEADLINE\tARGUMENTS")
	for i := range list {
		a := &list[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", a.ApprovalID, a.Module.ID, a.Status, requester(a), deadline(a), arguments(a))
	}
	return table.Flush()
}

func (l *listCommand) everywhere(ctx context.Context, c *connection, approvals *temporal.Approvals, out io.Writer) error {
	runs, err := c.pending(ctx, approvals, temporal.PendingOptions{Query: l.Query, Module: l.Module}, l.Limit)
	if err != nil {
		return err
	}
	if l.JSON {
		return printJSON(out, runs)
	}
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "WORKFLOW\tAPPROVAL\tMODULE\tREQUESTER\tWAITS\tDEADLINE\tARGUMENTS")
	for _, run := range runs {
		for _, head := range run.Approvals {
			fmt.Fprintln(table, strings.Join(headRow(run.WorkflowID, head), "\t"))
		}
	}
	return table.Flush()
}

func headRow(workflowID string, head durable.ApprovalHead) []string {
	a := durable.Approval{Grant: durable.Grant{Deadline: head.Deadline, Requester: head.Requester}, Arguments: head.Arguments}
	shown := "-"
	if head.Arguments != nil {
		shown = arguments(&a)
	}
	return []string{workflowID, head.ApprovalID, head.ModuleID, requester(&a), time.Since(head.RequestedAt).Round(time.Second).String(), deadline(&a), shown}
}

// pending collects what waits, up to limit runs; zero means all.
func (c *connection) pending(ctx context.Context, approvals *temporal.Approvals, opts temporal.PendingOptions, limit int) ([]temporal.PendingRun, error) {
	options, err := c.options()
	if err != nil {
		return nil, err
	}
	opts.Namespace = options.Namespace
	runs := []temporal.PendingRun{}
	for run, err := range approvals.Pending(ctx, opts) {
		if err != nil {
			return nil, err
		}
		if len(run.Approvals) > 0 {
			runs = append(runs, run)
		}
		if limit > 0 && len(runs) == limit {
			break
		}
	}
	return runs, nil
}

type watchCommand struct {
	Query    string        `help:"Further condition in the server's list filter syntax." placeholder:"FILTER"`
	Module   string        `help:"Only approvals of this module."`
	Interval time.Duration `help:"How often to look, at least 200ms." default:"2s"`
}

const minWatchInterval = 200 * time.Millisecond

// Run prints one line for each approval that begins to wait (+) or no longer does
// (-), until it is interrupted.
func (w *watchCommand) Run(ctx context.Context, c *connection, out io.Writer) error {
	if w.Interval < minWatchInterval {
		return apcore.NewError(apcore.CodeInvalidInput, "--interval is %v: give at least %v", w.Interval, minWatchInterval)
	}
	approvals, connected, err := c.approvals(ctx)
	if err != nil {
		return err
	}
	defer connected.Close()
	ticker := time.NewTicker(w.Interval)
	defer ticker.Stop()
	known := map[string]string{}
	for {
		runs, err := c.pending(ctx, approvals, temporal.PendingOptions{Query: w.Query, Module: w.Module}, 0)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := report(out, known, runs); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// report prints what changed since known, and brings known up to date.
func report(out io.Writer, known map[string]string, runs []temporal.PendingRun) error {
	seen := map[string]bool{}
	for _, run := range runs {
		for _, head := range run.Approvals {
			key := run.WorkflowID + " " + head.ApprovalID
			seen[key] = true
			if _, old := known[key]; old {
				continue
			}
			known[key] = strings.Join(headRow(run.WorkflowID, head)[:4], "  ")
			if _, err := fmt.Fprintln(out, "+ "+known[key]); err != nil {
				return err
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(known)) {
		if seen[key] {
			continue
		}
		if _, err := fmt.Fprintln(out, "- "+known[key]); err != nil {
			return err
		}
		delete(known, key)
	}
	return nil
}
