package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/examples/refund"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// stage is what the scenes play on.
type stage struct {
	ctx                 context.Context
	binaries, directory string
	ledger              string
	keep                bool

	server, worker *process
	alive          io.Closer
	address, ui    string
	client         client.Client
	approvals      *temporal.Approvals
}

// patience bounds every wait of the demo, on slow machines too.
const patience = 2 * time.Minute

func (s *stage) open() error {
	if err := s.startServer(); err != nil {
		return err
	}
	say("A Temporal server runs at %s, its state in a SQLite file.", s.address)
	var err error
	s.client, err = client.DialContext(s.ctx, client.Options{HostPort: s.address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		return fmt.Errorf("connect to the dev server: %w", err)
	}
	if s.approvals, err = temporal.NewApprovals(s.client, temporal.ApprovalsOptions{}); err != nil {
		return err
	}
	if err := s.startWorker(); err != nil {
		return err
	}
	say("The refund worker runs as process %d.", s.worker.cmd.Process.Pid)
	return nil
}

func (s *stage) close() {
	if s.client != nil {
		s.client.Close()
	}
	s.worker.stop()
	s.server.stop()
	if s.alive != nil {
		_ = s.alive.Close() // the server has ended
	}
}

// start starts a refund and returns its workflow id.
func (s *stage) start(order string, args ...string) (string, error) {
	out, err := s.command("refund-starter", append([]string{"-order", order}, args...)...)
	return strings.TrimSpace(out), err
}

// pending waits until the refund asks for approval.
func (s *stage) pending(workflowID string) (*durable.Approval, error) {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	for {
		list, err := s.approvals.List(ctx, workflowID)
		for i := range list {
			if list[i].Status == durable.ApprovalIsPending {
				return &list[i], nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("no approval came up: %w\n%s", errors.Join(err, ctx.Err()), s.workerLog())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// receipt waits for the end of a refund.
func (s *stage) receipt(workflowID string) (*refund.Receipt, error) {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	var receipt refund.Receipt
	err := s.client.GetWorkflow(ctx, workflowID, "").Get(ctx, &receipt)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("workflow %s did not end in time\n%s", workflowID, s.workerLog())
	}
	return &receipt, err
}

// lines counts the refunds that really happened.
func (s *stage) lines() (int, error) {
	text, err := os.ReadFile(s.ledger)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return bytes.Count(text, []byte("\n")), err
}

// history returns the types of a workflow's events.
func (s *stage) history(workflowID string) ([]string, error) {
	var types []string
	events := s.client.GetWorkflowHistory(s.ctx, workflowID, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("history of %s: %w", workflowID, err)
		}
		types = append(types, event.GetEventType().String())
	}
	return types, nil
}

func (s *stage) workerLog() string {
	text, err := os.ReadFile(filepath.Join(s.directory, "worker.log"))
	if err != nil {
		return ""
	}
	return "the worker's log:\n" + string(text)
}
