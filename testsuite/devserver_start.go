package testsuite

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"testing"
)

// ServerOptions say which server [StartServer] starts. The zero value is one in
// memory, with namespace "default" and no web UI, on a free port.
type ServerOptions struct {
	// DBFile is the SQLite file that keeps the state. A server started later on
	// the same file has it all; never run two at once. In memory when empty.
	DBFile string
	// Namespace is created beside "default", and is the one that clients get.
	// It is "default" when empty.
	Namespace string
	// SearchAttributes are created in the namespaces: name to type, which is
	// one of Text, Keyword, Int, Double, Bool, Datetime, KeywordList.
	SearchAttributes map[string]string
	// DynamicConfig are settings of the server: key to value in JSON, such as
	// "limit.maxIDLength" to "255".
	DynamicConfig map[string]string
	// UI turns the web UI on, see [Server.UI].
	UI bool
	// Address is the host:port to listen on: that of an earlier server, for its
	// clients and workers to find this one. A free loopback port when empty.
	Address string
}

// StartServer starts a server of the test's own, for tests that stop it, kill
// it or configure it; others use [DevServer]. It is killed at the end of the
// test. A server that ended by itself before fails the test.
//
// To restart a server, call Stop or Kill, then StartServer with the same DBFile
// and the Address of the first. Clients and workers reconnect by themselves.
//
// Where the program comes from is said at [BuildServer]. When the server cannot
// be started the test fails; under -short it is skipped. TEMPORAL_ADDRESS has no
// effect here.
func StartServer(tb testing.TB, opts ServerOptions) *Server {
	tb.Helper()
	skipIfShort(tb)
	ctx, cancel := deadlineOf(tb)
	defer cancel()
	server, err := startServer(ctx, opts)
	if err != nil {
		tb.Fatalf("start a Temporal server for this test: %v", err)
	}
	tb.Cleanup(func() {
		if server.process.endedByItself() {
			tb.Errorf("the Temporal server ended by itself%s", server.lastWords())
		} else if words := server.lastWords(); tb.Failed() && words != "" {
			tb.Logf("the Temporal server at %s%s", server.address, words)
		}
		server.Kill()
	})
	return server
}

// Stop stops the server gracefully, which takes it about a second, and waits for
// its end. On a server that has ended, that [DevServer] returned, or that runs
// elsewhere, it does nothing.
func (s *Server) Stop() {
	if s.process != nil && !s.shared {
		s.process.stop()
	}
}

// Kill ends the server's process at once, as a crash does, and waits for its
// end. What it confirmed to clients is in its file, if it has one. Kill does
// nothing where [Server.Stop] does nothing.
func (s *Server) Kill() {
	if s.process != nil && !s.shared {
		s.process.kill()
	}
}

// readyLine is what the dev server prints once it serves.
type readyLine struct {
	Address   string `json:"address"`
	UI        string `json:"ui"`
	Namespace string `json:"namespace"`
}

// startServer builds the program if needed and starts it.
func startServer(ctx context.Context, opts ServerOptions) (*Server, error) {
	args, err := opts.args()
	if err != nil {
		return nil, err
	}
	//nolint:forbidigo // go test shows a test's own log too late for a wait of minutes
	path, err := BuildServer(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	process, line, err := launch(ctx, path, args)
	if err != nil {
		return nil, err
	}
	var ready readyLine
	if err := json.Unmarshal(line, &ready); err != nil {
		process.kill()
		return nil, fmt.Errorf("%s printed %q, not the ready line of a dev server: %w", path, line, err)
	}
	return &Server{address: ready.Address, namespace: ready.Namespace, ui: ready.UI, process: process}, nil
}

// args returns the dev server's command line.
func (o ServerOptions) args() ([]string, error) {
	host, port := "127.0.0.1", "0"
	if o.Address != "" {
		var err error
		if host, port, err = net.SplitHostPort(o.Address); err != nil {
			return nil, fmt.Errorf("ServerOptions.Address is not host:port: %w", err)
		}
	}
	args := []string{"server", "start-dev", "--exit-with-parent", "--ip", host, "--port", port}
	if !o.UI {
		args = append(args, "--headless")
	}
	if o.DBFile != "" {
		args = append(args, "--db-filename", o.DBFile)
	}
	if o.Namespace != "" {
		args = append(args, "--namespace", o.Namespace)
	}
	for _, name := range slices.Sorted(maps.Keys(o.SearchAttributes)) {
		args = append(args, "--search-attribute", name+"="+o.SearchAttributes[name])
	}
	for _, key := range slices.Sorted(maps.Keys(o.DynamicConfig)) {
		args = append(args, "--dynamic-config-value", key+"="+o.DynamicConfig[key])
	}
	return args, nil
}
