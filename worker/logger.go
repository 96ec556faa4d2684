package worker

import (
	"log/slog"

	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
)

// Logger makes a zap logger usable where log/slog is asked for, such as
// apcore.ExecutorOptions.Logger.
func Logger(logger *zap.Logger) *slog.Logger {
	return slog.New(zapslog.NewHandler(logger.Core(), zapslog.WithName(logger.Name())))
}

// ClientLogger makes a zap logger usable as client.Options.Logger, through which
// the SDK logs everything, workers included.
func ClientLogger(logger *zap.Logger) log.Logger {
	return log.NewStructuredLogger(Logger(logger))
}
