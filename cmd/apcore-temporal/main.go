// Command apcore-temporal works with running apcore workflows from the shell.
//
// It connects as TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and the other variables
// and profile files of Temporal's client configuration say; flags win. Exit
// codes: 0 done, 1 refused or failed, 2 wrong usage, 3 no such workflow,
// approval or task, 4 too late (run closed, expired, decided or ended before) or no
// result, 5 no worker answers.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// cli is the command line.
type cli struct {
	connection

	Approvals approvalsCommand `cmd:"" help:"See and decide pending approvals."`
	Tasks     tasksCommand     `cmd:"" help:"Submit, follow and cancel tasks."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const (
	exitFailed  = 1
	exitUsage   = 2
	exitUnknown = 3
	exitLate    = 4
	exitNobody  = 5
)

// run is main with its surroundings passed in.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	var c cli
	exited := -1
	parser, err := kong.New(&c, kong.Name("apcore-temporal"), kong.Description("Works with running apcore workflows."),
		kong.UsageOnError(), kong.Writers(stdout, stderr), kong.Exit(func(code int) { exited = code }))
	if err != nil {
		fmt.Fprintln(stderr, "apcore-temporal:", err)
		return exitUsage
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		fmt.Fprintln(stderr, "apcore-temporal:", err)
		return exitUsage
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	parsed.BindTo(stdout, (*io.Writer)(nil))
	if err := parsed.Run(&c.connection); err != nil {
		fmt.Fprintln(stderr, "apcore-temporal:", describe(err))
		return exitCode(err)
	}
	return 0
}

func describe(err error) string {
	e := apcore.AsError(err)
	if e == nil {
		return err.Error()
	}
	text := e.Error()
	if e.Suggestion != "" {
		text += "\n  what to do: " + e.Suggestion
	}
	return text
}

func exitCode(err error) int {
	codes := map[apcore.Code]int{
		durable.CodeRunNotFound: exitUnknown, durable.CodeDecisionUnknown: exitUnknown,
		durable.CodeRunClosed: exitLate, durable.CodeDecisionLate: exitLate,
		durable.CodeDecisionDuplicate: exitLate, durable.CodeDecisionClosed: exitLate,
		durable.CodeNoWorker: exitNobody, durable.CodeDecisionInvalid: exitUsage,
		apcore.CodeInvalidInput: exitUsage, codeTaskUnknown: exitUnknown, codeTaskNotCompleted: exitLate,
		durable.CodeTaskEnded: exitLate, durable.CodeTaskExpired: exitLate,
	}
	for code, exit := range codes {
		if errors.Is(err, code) {
			return exit
		}
	}
	return exitFailed
}
