// Command starter starts one refund and prints its workflow id; with -wait it
// prints the receipt as well. It connects as TEMPORAL_ADDRESS and the other
// variables of Temporal's client configuration say.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"

	"log/slog"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/examples/refund"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

func main() {
	var request refund.Request
	flag.StringVar(&request.OrderID, "order", "A-1001", "order to pay back")
	flag.StringVar(&request.Card, "card", "4242424242424242", "card it was paid with")
	flag.IntVar(&request.ApprovalSeconds, "approval-seconds", 0, "how long the approver has; 0 leaves it to the worker")
	user := flag.String("user", "maria", "who asks for the refund")
	wait := flag.Bool("wait", false, "wait for the receipt")
	flag.Parse()
	if err := run(context.Background(), request, *user, *wait); err != nil {
		fmt.Fprintln(os.Stderr, "starter:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, request refund.Request, user string, wait bool) error {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return err
	}
	options.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	options.Interceptors = []interceptor.ClientInterceptor{temporal.NewClientInterceptor()}
	c, err := client.DialContext(ctx, options)
	if err != nil {
		return err
	}
	defer c.Close()
	caller := apcore.NewContext(apcore.ContextOptions{Identity: apcore.NewIdentity(user, apcore.IdentityUser, []string{"clerk"}, nil)})
	run, err := c.ExecuteWorkflow(temporal.WithContext(ctx, caller), client.StartWorkflowOptions{
		ID: "refund-" + request.OrderID, TaskQueue: refund.TaskQueue,
	}, refund.Refund, request)
	if err != nil {
		return err
	}
	fmt.Println(run.GetID())
	if !wait {
		return nil
	}
	var receipt refund.Receipt
	if err := run.Get(ctx, &receipt); err != nil {
		return temporal.AsError(err)
	}
	return json.NewEncoder(os.Stdout).Encode(receipt)
}
