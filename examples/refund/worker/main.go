// Command worker hosts the refund example. It connects as TEMPORAL_ADDRESS and
// the other variables of Temporal's client configuration say, and writes its
// ledger to REFUND_LEDGER (refunds.jsonl by default).
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdkworker "go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"github.com/apcore-temporal/apcore-temporal/examples/refund"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

func main() {
	logger := zap.Must(zap.NewProduction())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, logger)
	stop()
	if err != nil {
		logger.Fatal("worker failed", zap.Error(err))
	}
}

func run(ctx context.Context, logger *zap.Logger) error {
	ledger := os.Getenv("REFUND_LEDGER")
	if ledger == "" {
		ledger = "refunds.jsonl"
	}
	executor, err := refund.NewExecutor(ledger)
	if err != nil {
		return err
	}
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return err
	}
	options.Logger = worker.ClientLogger(logger)
	c, err := client.DialContext(ctx, options)
	if err != nil {
		return err
	}
	defer c.Close()
	w, err := worker.New(c, refund.TaskQueue, executor, worker.Options{
		Logger: logger,
		// A successor of a killed worker gets its tasks after a second, not five.
		SDK: sdkworker.Options{StickyScheduleToStartTimeout: time.Second},
	})
	if err != nil {
		return err
	}
	w.Registry().RegisterWorkflow(refund.Refund)
	return w.Run(ctx)
}
