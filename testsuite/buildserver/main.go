// Command buildserver builds the Temporal dev server that this repository's
// tests and demos run on, unless it is built already. Progress is on stderr; the
// path of the program is all that it prints on stdout.
//
//	go run ./testsuite/buildserver
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "buildserver: %v\n", err)
		os.Exit(1)
	}
}

// run builds the server until an interrupt.
func run() error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	path, err := testsuite.BuildServer(ctx, os.Stderr)
	if err != nil {
		return err
	}
	_, err = fmt.Println(path)
	return err
}
