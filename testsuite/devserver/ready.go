package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const (
	readyTimeout  = 60 * time.Second
	readyInterval = 10 * time.Millisecond
	// probeTimeout limits one question to the server.
	probeTimeout = 5 * time.Second
)

// readyLine is what the process prints on stdout, as one line of JSON, once it
// serves.
type readyLine struct {
	Address   string `json:"address"`   // host:port of the gRPC frontend
	UI        string `json:"ui"`        // URL of the web UI, empty when headless
	Namespace string `json:"namespace"` // the first one asked for
	PID       int    `json:"pid"`       // of this process
}

// writeReadyLine prints the ready line of a server.
func writeReadyLine(w io.Writer, s *server) error {
	line := readyLine{Address: s.address(), Namespace: s.opts.namespaces[0], PID: os.Getpid()}
	if s.ui != nil {
		line.UI = s.ui.url
	}
	if err := json.NewEncoder(w).Encode(line); err != nil {
		return fmt.Errorf("tell on stdout that the server is ready: %w", err)
	}
	return nil
}

// waitReady waits until the frontend answers for every namespace, the search
// attributes can be queried, workflows can be looked up, and the UI serves.
func (s *server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	conn, err := grpc.NewClient(s.address(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy())
	if err != nil {
		return fmt.Errorf("connect to the frontend at %s: %w", s.address(), err)
	}
	defer func() { _ = conn.Close() }()
	frontend := workflowservice.NewWorkflowServiceClient(conn)
	for _, namespace := range s.opts.namespaces {
		if err := poll(ctx, func(ctx context.Context) error { return s.probe(ctx, frontend, namespace) }); err != nil {
			return fmt.Errorf("namespace %q is not served: %w", namespace, err)
		}
	}
	if s.ui != nil {
		if err := poll(ctx, s.ui.check); err != nil {
			return fmt.Errorf("the web UI is not served: %w", err)
		}
	}
	return nil
}

// probe asks a question that needs the visibility store and every search
// attribute, then one that needs a history shard.
func (s *server) probe(ctx context.Context, frontend workflowservice.WorkflowServiceClient, namespace string) error {
	var clauses []string
	for _, name := range slices.Sorted(maps.Keys(s.opts.searchAttributes)) {
		clauses = append(clauses, "`"+name+"` IS NOT NULL")
	}
	_, err := frontend.CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: namespace,
		Query:     strings.Join(clauses, " AND "),
	})
	if err != nil {
		return err
	}
	_, err = frontend.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: namespace,
		Execution: &commonpb.WorkflowExecution{WorkflowId: "no-such-workflow"},
	})
	if status.Code(err) == codes.NotFound {
		return nil // the expected answer
	}
	return err
}

// poll calls check until it reports no error, or ctx ends; then it returns the
// last one.
func poll(ctx context.Context, check func(context.Context) error) error {
	for {
		probeCtx, cancel := context.WithTimeout(ctx, probeTimeout)
		err := check(probeCtx)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(readyInterval):
		}
	}
}
