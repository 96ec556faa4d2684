// Command demo runs the refund example from end to end on a real Temporal
// server: a refund that a person approves while its worker is killed, one that
// is rejected, and one that nobody answers. It expects the programs that make
// builds beside itself, and exits with 1 when anything is not as it should be.
//
// With KEEP=1 it leaves the server and its web interface running until Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo failed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	binaries, err := ownDirectory()
	if err != nil {
		return err
	}
	directory, err := os.MkdirTemp("", "refund-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	s := &stage{
		ctx: ctx, binaries: binaries, directory: directory,
		ledger: filepath.Join(directory, "refunds.jsonl"), keep: os.Getenv("KEEP") != "",
	}
	defer s.close()
	if err := s.open(); err != nil {
		return err
	}
	for _, scene := range []func(*stage) error{approved, rejected, unanswered} {
		if err := scene(s); err != nil {
			return err
		}
	}
	say("\nAll three endings are as they should be.")
	if s.keep {
		say("The web interface is at %s (namespace %s). Stop with Ctrl-C.", s.ui, "default")
		<-ctx.Done()
	}
	return nil
}

// ownDirectory is where make puts the programs of the demo.
func ownDirectory() (string, error) {
	path, err := os.Executable()
	return filepath.Dir(path), err
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }
