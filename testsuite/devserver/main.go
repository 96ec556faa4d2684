// Command devserver is a whole Temporal server in one process: frontend,
// history, matching and worker services, a SQLite store and the web UI.
//
// It is made for tests and for development on one machine. It asks for no
// credentials, so it listens on the loopback address unless told otherwise.
//
//	devserver server start-dev --port 0 --headless
//
// Once everything it was asked for is served, it prints one JSON line on
// stdout and nothing else there, ever (see [readyLine]); logs go to stderr. It
// stops gracefully on SIGINT and SIGTERM, and, with --exit-with-parent, when
// its stdin is closed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// The exit codes of the process.
const (
	exitOK     = 0
	exitFailed = 1 // the server could not start, serve or stop
	exitUsage  = 2 // the command line is wrong
)

func main() {
	// Libraries of the server print to os.Stdout when they fail; that stream
	// belongs to the ready line alone.
	stdout := os.Stdout
	os.Stdout = os.Stderr
	os.Exit(run(os.Args[1:], os.Stdin, stdout, os.Stderr))
}

// run is main with its surroundings as arguments. It returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags, err := parseFlags(args, stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "devserver: %v\n", err)
		return exitUsage
	}
	opts, err := flags.options()
	if err != nil {
		fmt.Fprintf(stderr, "devserver: %v\n", err)
		return exitUsage
	}
	ctx, cancel := untilStopped(stdin, flags.ExitWithParent)
	defer cancel()
	if err := serve(ctx, opts, stdout); err != nil {
		fmt.Fprintf(stderr, "devserver: %v\n", err)
		return exitFailed
	}
	return exitOK
}

// untilStopped returns a context that ends at the first SIGINT or SIGTERM and,
// withParent, at the end of stdin. A second signal kills the process at once.
func untilStopped(stdin io.Reader, withParent bool) (context.Context, context.CancelFunc) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, cancel) // gives later signals their default effect back
	if withParent {
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			cancel()
		}()
	}
	return ctx, cancel
}

// serve runs a server until ctx ends. It writes the ready line to stdout.
func serve(ctx context.Context, opts options, stdout io.Writer) error {
	srv, err := newServer(opts)
	if err != nil {
		return err
	}
	if err := srv.start(); err != nil {
		return errors.Join(err, srv.stop())
	}
	err = srv.waitReady(ctx)
	if err == nil {
		err = writeReadyLine(stdout, srv)
	}
	if err == nil {
		<-ctx.Done()
	} else if ctx.Err() != nil {
		err = nil // told to stop before it was ready: not a failure
	}
	return errors.Join(err, srv.stop())
}
