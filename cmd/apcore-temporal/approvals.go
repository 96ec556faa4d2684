package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

type approvalsCommand struct {
	List    listCommand    `cmd:"" help:"List the approvals of a workflow, or what waits in all of them."`
	Show    showCommand    `cmd:"" help:"Show one approval."`
	Approve approveCommand `cmd:"" help:"Approve a pending call, or say what became of one whose outcome is unknown."`
	Reject  rejectCommand  `cmd:"" help:"Reject a pending call."`
	Watch   watchCommand   `cmd:"" help:"Print what begins and ceases to wait, until interrupted."`
}

type showCommand struct {
	WorkflowID string `arg:"" help:"Workflow that waits."`
	ApprovalID string `arg:"" help:"Approval, as list shows it."`
	JSON       bool   `name:"json" help:"Print JSON."`
}

// Run prints everything an approver needs to know.
func (s *showCommand) Run(ctx context.Context, c *connection, out io.Writer) error {
	approvals, connected, err := c.approvals(ctx)
	if err != nil {
		return err
	}
	defer connected.Close()
	a, err := approvals.Get(ctx, s.WorkflowID, s.ApprovalID)
	if err != nil {
		return err
	}
	if s.JSON {
		return printJSON(out, a)
	}
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(table, "approval\t%s\nmodule\t%s %s\nwhat it does\t%s\narguments\t%s\nrequester\t%s\ncalled by\t%s\nasked\t%s\ndeadline\t%s\nstatus\t%s\n",
		a.ApprovalID, a.Module.ID, a.Module.Version, a.Description, arguments(a), requester(a), caller(a), a.RequestedAt.Format(time.RFC3339), deadline(a), a.Status)
	if q := quorum(a); q > 1 {
		fmt.Fprintf(table, "approvals\t%d of %d\n", len(a.Votes), q)
	}
	if a.Decision != nil {
		fmt.Fprintf(table, "decided by\t%s\nreason\t%s\n", a.Decision.ApprovedBy, a.Decision.Reason)
	}
	for _, ignored := range a.Ignored {
		fmt.Fprintf(table, "ignored\t%s by %s: %s\n", ignored.Decision.Status, ignored.Decision.ApprovedBy, ignored.Reason)
	}
	return table.Flush()
}

func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

func arguments(a *durable.Approval) string {
	text, err := apcore.EncodeJSON(a.Arguments)
	if err != nil {
		return "?"
	}
	return string(text)
}

func requester(a *durable.Approval) string { return orDash(a.Requester) }

func caller(a *durable.Approval) string { return orDash(a.CallerID) }

func quorum(a *durable.Approval) int {
	if a.Rules == nil {
		return 1
	}
	return a.Rules.Quorum
}

func deadline(a *durable.Approval) string {
	if a.Deadline.IsZero() {
		return "none"
	}
	return a.Deadline.Format(time.RFC3339)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
