package main

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"os"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// decideFlags are common to approve and reject.
type decideFlags struct {
	WorkflowID string   `arg:"" help:"Workflow that waits."`
	ApprovalID string   `arg:"" help:"Approval, as list shows it."`
	By         string   `required:"" help:"Who decides."`
	Role       []string `help:"Role of whoever decides; may be given often."`
	Reason     string   `help:"Why."`
	NoWait     bool     `help:"Send the decision without waiting for a worker to accept it."`
	SignKey    string   `help:"Sign with this Ed25519 private key, a PKCS #8 PEM file." type:"existingfile"`
	KeyID      string   `help:"Id under which workers know the key; the value of --by if left out."`
}

type approveCommand struct {
	decideFlags
	Set     map[string]string `help:"Replace an argument, as name=JSON; may be given often." placeholder:"NAME=JSON"`
	Verdict string            `help:"What became of a call whose outcome is unknown: retry or done."`
	Output  string            `help:"Output to go on with, as JSON; with --verdict done."`
}

// Run approves.
func (a *approveCommand) Run(ctx context.Context, c *connection, out io.Writer) error {
	decision := durable.Decision{Verdict: durable.OutcomeVerdict(a.Verdict)}
	if a.Output != "" {
		decision.Output = json.RawMessage(a.Output)
		if !json.Valid(decision.Output) {
			return apcore.NewError(apcore.CodeInvalidInput, "--output is no JSON: %s", a.Output)
		}
	}
	for name, text := range a.Set {
		value, err := apcore.DecodeObject([]byte(`{"v":` + text + `}`))
		if err != nil {
			return apcore.NewError(apcore.CodeInvalidInput, "--set %s: %s is no JSON; a text needs its quotes", name, text)
		}
		if decision.Changes == nil {
			decision.Changes = durable.Object{}
		}
		decision.Changes[name] = value["v"]
	}
	return a.decide(ctx, c, out, apcore.ApprovalApproved, decision)
}

type rejectCommand struct{ decideFlags }

// Run rejects.
func (r *rejectCommand) Run(ctx context.Context, c *connection, out io.Writer) error {
	return r.decide(ctx, c, out, apcore.ApprovalRejected, durable.Decision{})
}

func (d *decideFlags) decide(ctx context.Context, c *connection, out io.Writer, status apcore.ApprovalStatus, decision durable.Decision) error {
	approvals, connected, err := c.approvals(ctx)
	if err != nil {
		return err
	}
	defer connected.Close()
	decision.ApprovalID, decision.Status = d.ApprovalID, status
	decision.ApprovedBy, decision.Roles, decision.Reason = d.By, d.Role, d.Reason
	if decision, err = d.sign(ctx, approvals, decision); err != nil {
		return err
	}
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

func (d *decideFlags) deliver(ctx context.Context, approvals *temporal.Approvals, decision durable.Decision) error {
	if d.NoWait {
		return approvals.Send(ctx, d.WorkflowID, decision)
	}
	return approvals.Decide(ctx, d.WorkflowID, decision)
}

// sign needs to see the approval: the signature covers what is decided about.
func (d *decideFlags) sign(ctx context.Context, approvals *temporal.Approvals, decision durable.Decision) (durable.Decision, error) {
	if d.SignKey == "" {
		return decision, nil
	}
	key, err := readKey(d.SignKey)
	if err != nil {
		return decision, err
	}
	approval, err := approvals.Get(ctx, d.WorkflowID, d.ApprovalID)
	if err != nil {
		return decision, err
	}
	id := d.KeyID
	if id == "" {
		id = d.By
	}
	return durable.SignDecision(decision, *approval, id, key)
}

func readKey(path string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the caller names the own key
	if err != nil {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "--sign-key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "--sign-key %s is no PEM file", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "--sign-key %s is no PKCS #8 private key: %w", path, err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "--sign-key %s holds a %T, not an Ed25519 key", path, parsed)
	}
	return key, nil
}
