package main

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// What waits anywhere is listed without naming a workflow, and a change of
// arguments reaches the module.
func TestListEverywhereAndChange(t *testing.T) {
	d := newDesk(t)
	started := d.start()
	id := d.pending(started.GetID())
	filter := "WorkflowId = '" + started.GetID() + "'"
	listed := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && !strings.Contains(listed, id); time.Sleep(20 * time.Millisecond) {
		_, listed, _ = d.cli("approvals", "list", "--query", filter)
	}
	if !strings.Contains(listed, id) || strings.Contains(listed, "4242424242424242") {
		t.Fatalf("listed:\n%s", listed)
	}
	if _, out, _ := d.cli("approvals", "list", "--query", filter, "--module", "other.module", "--json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("another module lists %s", out)
	}
	if code, _, errs := d.cli("approvals", "approve", started.GetID(), id, "--by", "ana", "--set", `card="0000"`); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	must(t, started.Get(t.Context(), nil))
	approvals, err := temporal.NewApprovals(d.client, temporal.ApprovalsOptions{})
	must(t, err)
	got, err := approvals.Get(t.Context(), started.GetID(), id)
	must(t, err)
	if got.Decision == nil || got.Decision.Changes["card"] != "0000" {
		t.Errorf("decided %+v", got.Decision)
	}
}

// Watch prints an approval when it begins to wait and when it no longer does.
func TestWatch(t *testing.T) {
	d := newDesk(t)
	started := d.start()
	id := d.pending(started.GetID())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	read, write := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"--address", d.server.Address(), "--namespace", d.server.Namespace(), "approvals", "watch", "--interval", "200ms", "--query", "WorkflowId = '" + started.GetID() + "'"}, write, io.Discard)
		_ = write.Close()
	}()
	lines := bufio.NewScanner(read)
	for _, sign := range []string{"+ ", "- "} {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), sign) || !strings.Contains(lines.Text(), id) {
			t.Fatalf("line %q, want %s%s", lines.Text(), sign, id)
		}
		if sign == "+ " {
			must(t, d.client.TerminateWorkflow(t.Context(), started.GetID(), "", "test"))
		}
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("exit %d after an interrupt", code)
	}
}

// A signature made on the command line counts on a worker that knows the key.
func TestSign(t *testing.T) {
	d := newDesk(t)
	started := d.start()
	id := d.pending(started.GetID())
	public, private, err := ed25519.GenerateKey(nil)
	must(t, err)
	text, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	path := filepath.Join(t.TempDir(), "key.pem")
	must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}), 0o600))
	if code, _, errs := d.cli("approvals", "approve", started.GetID(), id, "--by", "ana", "--role", "finance", "--sign-key", path); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	approvals, err := temporal.NewApprovals(d.client, temporal.ApprovalsOptions{})
	must(t, err)
	got, err := approvals.Get(t.Context(), started.GetID(), id)
	must(t, err)
	decision := *got.Decision
	if decision.Signature == nil || decision.Signature.KeyID != "ana" {
		t.Fatalf("decision %+v", decision)
	}
	want, err := durable.SignDecision(durable.Decision{ApprovalID: id, Status: decision.Status, ApprovedBy: "ana", Roles: []string{"finance"}}, *got, "ana", private)
	must(t, err)
	if string(want.Signature.Value) != string(decision.Signature.Value) || len(public) == 0 {
		t.Error("the signature is not over this decision")
	}
	for name, content := range map[string]string{"empty": "", "no key": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		bad := filepath.Join(t.TempDir(), "bad.pem")
		must(t, os.WriteFile(bad, []byte(content), 0o600))
		if code, _, errs := d.cli("approvals", "approve", started.GetID(), id, "--by", "ana", "--sign-key", bad); code != exitUsage || !strings.Contains(errs, "--sign-key") {
			t.Errorf("%s: exit %d, %s", name, code, errs)
		}
	}
}
