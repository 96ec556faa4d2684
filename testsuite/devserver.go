package testsuite

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

// Environment variables that say where servers come from.
const (
	// EnvAddress is the host:port of a running server for [DevServer] to use.
	EnvAddress = "TEMPORAL_ADDRESS"
	// EnvNamespace is the namespace on that server; "default" when unset.
	EnvNamespace = "TEMPORAL_NAMESPACE"
	// EnvBinary is the path of a built dev server, see [BuildServer].
	EnvBinary = "APCORE_DEVSERVER"
)

const (
	defaultNamespace = "default"
	// dialTimeout limits how long a server may take to answer. One that was
	// restarted on a busy machine needs many seconds.
	dialTimeout = 30 * time.Second
	// deadlineMargin is kept free before the test binary's own deadline, whose
	// panic would hide the reason of a failure.
	deadlineMargin = 5 * time.Second
)

// sharedSearchAttributes are the search attributes that this project's
// workflows set, by name and type.
var sharedSearchAttributes = map[string]string{
	"ApcoreModuleId":         "Keyword",
	"ApcoreTaskStatus":       "Keyword",
	"ApcoreTaskStore":        "Keyword",
	"ApcoreTaskCompletedAt":  "Double",
	"ApcorePendingApprovals": "Int",
	"ApcoreApproverGroup":    "Keyword",
	"ApcoreState":            "Keyword",
}

// A Server is a real Temporal server for tests. Its methods are safe for
// concurrent use.
type Server struct {
	address   string
	namespace string
	ui        string
	process   *serverProcess // nil when the server was not started here
	shared    bool           // by all tests of the process, which must not stop it
}

// shared is the server of [DevServer].
var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// DevServer returns the Temporal server that the tests of this process share.
// The first call starts it: in memory, without web UI, with the search
// attributes of this project's workflows in namespace "default". It ends with
// the process, however that ends. Tests keep apart by using task queues and
// workflow ids of their own.
//
// With TEMPORAL_ADDRESS set, it is the server at that host:port, in namespace
// TEMPORAL_NAMESPACE ("default" when unset), and none is started. That server
// is reached without TLS and must have the search attributes already.
//
// Where the program of the server comes from is said at [BuildServer]; building
// it for the first time takes minutes. Without a server the test fails. Under
// -short, which leaves such tests out, it is skipped.
func DevServer(tb testing.TB) *Server {
	tb.Helper()
	skipIfShort(tb)
	shared.once.Do(func() {
		ctx, cancel := deadlineOf(tb)
		defer cancel()
		shared.server, shared.err = newShared(ctx)
	})
	if shared.err != nil {
		tb.Fatalf("no Temporal server for this test: %v", shared.err)
	}
	return shared.server
}

// Address returns the host:port of the server.
func (s *Server) Address() string { return s.address }

// Namespace returns the namespace that the server was started for.
func (s *Server) Namespace() string { return s.namespace }

// UI returns the URL of the server's web UI. It is empty when the server has
// none, or was not started here.
func (s *Server) UI() string { return s.ui }

// PID returns the id of the server's process. It is 0 when the server was not
// started here.
func (s *Server) PID() int {
	if s.process == nil {
		return 0
	}
	return s.process.cmd.Process.Pid
}

// Client returns a client of the server and closes it at the end of the test.
// Empty HostPort and Namespace are filled in with the server's own, and a nil
// Logger with one that drops everything. When the server does not answer within
// 30 seconds, the test fails.
func (s *Server) Client(tb testing.TB, opts client.Options) client.Client {
	tb.Helper()
	if opts.HostPort == "" {
		opts.HostPort = s.address
	}
	if opts.Namespace == "" {
		opts.Namespace = s.namespace
	}
	if opts.Logger == nil {
		opts.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	}
	ctx, cancel := context.WithTimeout(tb.Context(), dialTimeout)
	defer cancel()
	c, err := client.DialContext(ctx, opts)
	if err != nil {
		tb.Fatalf("the Temporal server at %s does not answer: %v%s", opts.HostPort, err, s.lastWords())
	}
	tb.Cleanup(c.Close)
	return c
}

// lastWords is what the server's process left to say, for the end of a message.
func (s *Server) lastWords() string {
	if s.process == nil {
		return ""
	}
	return s.process.lastWords()
}

// newShared finds or starts the shared server.
func newShared(ctx context.Context) (*Server, error) {
	if address := os.Getenv(EnvAddress); address != "" {
		return useRunning(ctx, address)
	}
	server, err := startServer(ctx, ServerOptions{SearchAttributes: sharedSearchAttributes})
	if err != nil {
		return nil, fmt.Errorf("%w\n(to use a server that runs, set %s to its host:port)", err, EnvAddress)
	}
	server.shared = true
	return server, nil
}

// useRunning checks that a server that somebody else runs can be used.
func useRunning(ctx context.Context, address string) (*Server, error) {
	server := &Server{address: address, namespace: os.Getenv(EnvNamespace), shared: true}
	if server.namespace == "" {
		server.namespace = defaultNamespace
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := client.DialContext(ctx, client.Options{
		HostPort:  address,
		Namespace: server.namespace,
		Logger:    log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		return nil, fmt.Errorf("nothing answers at %s=%s, start a server there or unset it: %w", EnvAddress, address, err)
	}
	defer c.Close()
	_, err = c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: server.namespace})
	if err != nil {
		return nil, fmt.Errorf("the server at %s=%s does not serve %s=%s: %w", EnvAddress, address, EnvNamespace, server.namespace, err)
	}
	return server, nil
}

// skipIfShort leaves a test out that -short asks to leave out.
func skipIfShort(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs a Temporal server, which -short leaves out")
	}
}

// deadlineOf returns a context that ends shortly before the test binary gives
// up. It is not the test's own context: what is started may outlive the test.
func deadlineOf(tb testing.TB) (context.Context, context.CancelFunc) {
	tb.Helper()
	//nolint:usetesting // the server of the first test is there for later ones
	ctx := context.Background()
	if withDeadline, ok := tb.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := withDeadline.Deadline(); ok {
			return context.WithDeadline(ctx, deadline.Add(-deadlineMargin))
		}
	}
	return context.WithCancel(ctx)
}
