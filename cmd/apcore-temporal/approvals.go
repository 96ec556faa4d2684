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
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

type approvalsCommand struct {
	List    listCommand   `cmd:"" help:"List the approvals of a workflow."`
	Show    showCommand   `cmd:"" help:"Show one approval."`
	Approve decideCommand `cmd:"" help:"Approve a pending call."`
	Reject  rejectCommand `cmd:"" help:"Reject a pending call."`
}

type listCommand struct {
	WorkflowID string `arg:"" help:"Workflow that waits."`
	JSON       bool   `name:"json" help:"Print JSON."`
}

// Run prints a table, or JSON for programs.
func (l *listCommand) Run(ctx context.Context, c *connection, out io.Writer) error {
	approvals, connected, err := c.approvals(ctx)
	if err != nil {
		return err
	}
	defer connected.Close()
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
	if a.Decision != nil {
		fmt.Fprintf(table, "decided by\t%s\nreason\t%s\n", a.Decision.ApprovedBy, a.Decision.Reason)
	}
	for _, ignored := range a.Ignored {
		fmt.Fprintf(table, "ignored\t%s by %s: %s\n", ignored.Decision.Status, ignored.Decision.ApprovedBy, ignored.Reason)
	}
	return table.Flush()
}

type decideCommand struct {
	WorkflowID string `arg:"" help:"Workflow that waits."`
	ApprovalID string `arg:"" help:"Approval, as list shows it."`
	By         string `required:"" help:"Who decides."`
	Reason     string `help:"Why."`
	NoWait     bool   `help:"Send the decision without waiting for a worker to accept it."`
}

type rejectCommand struct{ decideCommand }

// Run approves.
func (d *decideCommand) Run(ctx context.Context, c *connection, out io.Writer) error {
	return d.decide(ctx, c, out, apcore.ApprovalApproved)
}

// Run rejects.
func (r *rejectCommand) Run(ctx context.Context, c *connection, out io.Writer) error {
	return r.decide(ctx, c, out, apcore.ApprovalRejected)
}

func (d *decideCommand) decide(ctx context.Context, c *connection, out io.Writer, status apcore.ApprovalStatus) error {
	approvals, connected, err := c.approvals(ctx)
	if err != nil {
		return err
	}
	defer connected.Close()
	decision := durable.Decision{ApprovalID: d.ApprovalID, Status: status, ApprovedBy: d.By, Reason: d.Reason}
	if err := d.deliver(ctx, approvals, decision); err != nil {
		return err
	}
	word := string(status)
	if d.NoWait {
		word = "sent as " + word
	}
	_, err = fmt.Fprintf(out, "%s %s by %s\n", d.ApprovalID, word, d.By)
	return err
}

func (d *decideCommand) deliver(ctx context.Context, approvals *temporal.Approvals, decision durable.Decision) error {
	if d.NoWait {
		return approvals.Send(ctx, d.WorkflowID, decision)
	}
	return approvals.Decide(ctx, d.WorkflowID, decision)
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
