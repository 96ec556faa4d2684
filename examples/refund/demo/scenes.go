package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

const card = "4242424242424242"

// approved: the refund waits, its worker is killed, a person approves from
// another process, and the money moves once.
func approved(s *stage) error {
	say("\n1. A refund that is approved")
	id, err := s.start("A-1001", "-card", card)
	if err != nil {
		return err
	}
	approval, err := s.pending(id)
	if err != nil {
		return err
	}
	say("Workflow %s has looked the order up and waits. An approver sees:\n", id)
	shown, err := s.command("apcore-temporal", "approvals", "show", id, approval.ApprovalID)
	if err != nil {
		return err
	}
	say("%s", indent(shown))
	if strings.Contains(shown, card) || !strings.Contains(shown, "maria") {
		return errors.New("the approver should see who asks, and not the card")
	}
	if err := s.replaceWorker(); err != nil {
		return err
	}
	if err := s.expectLines(0); err != nil {
		return err
	}
	out, err := s.command("apcore-temporal", "approvals", "approve", id, approval.ApprovalID, "--by", "ana", "--reason", "receipt is fine")
	if err != nil {
		return err
	}
	say("Another process approves: %s", strings.TrimSpace(out))
	receipt, err := s.receipt(id)
	if err != nil {
		return fmt.Errorf("the refund failed: %w", err)
	}
	text, err := json.Marshal(receipt)
	if err != nil {
		return err
	}
	say("Result: %s", text)
	if err := s.expectLines(1); err != nil {
		return err
	}
	return s.showHistory(id)
}

func (s *stage) replaceWorker() error {
	old := s.worker.cmd.Process.Pid
	s.worker.kill()
	if err := s.startWorker(); err != nil {
		return err
	}
	say("While it waits, worker process %d is killed (SIGKILL) and process %d takes its place.", old, s.worker.cmd.Process.Pid)
	return nil
}

// expectLines compares the ledger, which only the module itself writes.
func (s *stage) expectLines(want int) error {
	got, err := s.lines()
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("the ledger has %d lines, want %d", got, want)
	}
	say("The ledger has %d line(s).", got)
	return nil
}

func (s *stage) showHistory(id string) error {
	types, err := s.history(id)
	if err != nil {
		return err
	}
	say("The workflow's history: %s", strings.Join(types, ", "))
	for _, kind := range types {
		if kind == "ActivityTaskFailed" || kind == "ActivityTaskTimedOut" || kind == "WorkflowTaskFailed" {
			return fmt.Errorf("the history holds %s", kind)
		}
	}
	say("No activity failed in it: a pending approval is a result.")
	return nil
}

// rejected: the approver says no, and the workflow learns why.
func rejected(s *stage) error {
	say("\n2. A refund that is rejected")
	id, err := s.start("A-1002", "-card", card)
	if err != nil {
		return err
	}
	approval, err := s.pending(id)
	if err != nil {
		return err
	}
	out, err := s.command("apcore-temporal", "approvals", "reject", id, approval.ApprovalID, "--by", "ana", "--reason", "no receipt")
	if err != nil {
		return err
	}
	say("%s", strings.TrimSpace(out))
	e, err := s.denial(id, apcore.CodeApprovalDenied)
	if err != nil {
		return err
	}
	if e.Details["reason"] != "no receipt" {
		return fmt.Errorf("the reason did not arrive: %v", e.Details)
	}
	return s.expectLines(1)
}

// unanswered: silence is never consent.
func unanswered(s *stage) error {
	say("\n3. A refund that nobody answers")
	id, err := s.start("A-1003", "-card", card, "-approval-seconds", "3")
	if err != nil {
		return err
	}
	if _, err := s.pending(id); err != nil {
		return err
	}
	say("Workflow %s waits three seconds for somebody.", id)
	if _, err := s.denial(id, apcore.CodeApprovalTimeout); err != nil {
		return err
	}
	return s.expectLines(1)
}

// denial waits for a refund to end with the given code.
func (s *stage) denial(id string, want apcore.Code) (*apcore.Error, error) {
	_, err := s.receipt(id)
	e := temporal.AsError(err)
	if e == nil || e.Code != want {
		return nil, fmt.Errorf("workflow %s ended with %w, want %w", id, err, want)
	}
	say("The workflow ended with %s", e)
	return e, nil
}

func indent(text string) string {
	return "   " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n   ")
}
