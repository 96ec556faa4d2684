package worker

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// DefaultStopTimeout is how long a stopping worker waits for running modules.
const DefaultStopTimeout = 30 * time.Second

// Options configures [New]; the zero value is the default.
type Options struct {
	PluginOptions
	// StopTimeout is how long Stop waits for running modules before it interrupts
	// them; zero means 30 s.
	StopTimeout time.Duration
	// Logger takes what the worker itself has to say; nil drops it. For the SDK's
	// own lines give [ClientLogger] to the client.
	Logger *zap.Logger
	// SDK is handed to the SDK as it is, with the plugin and the stop timeout
	// added.
	SDK sdkworker.Options
}

// Worker hosts the modules of an executor on a task queue.
type Worker struct {
	sdk    sdkworker.Worker
	logger *zap.Logger
	queue  string
	ids    []string
	fatal  chan error
}

// New makes a worker that does not poll yet. Beside the errors of [NewPlugin] it
// fails with GENERAL_INVALID_INPUT for a nil client, an empty queue or a
// negative timeout.
func New(c client.Client, queue string, executor *apcore.Executor, opts Options) (*Worker, error) {
	switch {
	case c == nil:
		return nil, apcore.NewError(apcore.CodeInvalidInput, "a worker needs a client")
	case queue == "":
		return nil, apcore.NewError(apcore.CodeInvalidInput, "a worker needs a task queue")
	case opts.StopTimeout < 0:
		return nil, apcore.NewError(apcore.CodeInvalidInput, "Options.StopTimeout is %v: give zero for %v or a positive one", opts.StopTimeout, DefaultStopTimeout)
	}
	if opts.Client == nil {
		opts.Client = c
	}
	plugin, err := NewPlugin(executor, opts.PluginOptions)
	if err != nil {
		return nil, err
	}
	w := &Worker{logger: opts.Logger, queue: queue, ids: executor.Registry().IDs(), fatal: make(chan error, 1)}
	if w.logger == nil {
		w.logger = zap.NewNop()
	}
	w.warnContradictions(executor)
	sdk := opts.SDK
	sdk.Plugins = append(append([]sdkworker.Plugin(nil), sdk.Plugins...), plugin)
	sdk.WorkerStopTimeout = opts.StopTimeout
	if opts.StopTimeout == 0 {
		sdk.WorkerStopTimeout = DefaultStopTimeout
	}
	sdk.OnFatalError = w.onFatal(sdk.OnFatalError)
	w.sdk = sdkworker.New(c, queue, sdk)
	return w, nil
}

func (w *Worker) warnContradictions(executor *apcore.Executor) {
	for _, id := range w.ids {
		definition := executor.Registry().Definition(id)
		if definition == nil {
			continue
		}
		if why := durable.Contradiction(definition.Annotations); why != "" {
			w.logger.Warn("annotations contradict each other", zap.String("module_id", id), zap.String("reason", why))
		}
	}
}

func (w *Worker) onFatal(next func(error)) func(error) {
	return func(err error) {
		select {
		case w.fatal <- err:
		default:
		}
		if next != nil {
			next(err)
		}
	}
}

// Registry registers workflows and further activities; call it before Run.
func (w *Worker) Registry() sdkworker.Registry { return w.sdk }

// Start begins to poll and returns.
func (w *Worker) Start() error {
	if err := w.sdk.Start(); err != nil {
		return err
	}
	w.logger.Info("worker started", zap.String("task_queue", w.queue), zap.Strings("modules", w.ids))
	return nil
}

// Stop takes no new work, waits for running modules up to the stop timeout, then
// interrupts them. It may be called once after Start.
func (w *Worker) Stop() {
	w.sdk.Stop()
	w.logger.Info("worker stopped", zap.String("task_queue", w.queue))
}

// Run starts the worker and stops it when ctx ends or the worker breaks down; it
// returns the reason of a break-down, nil otherwise.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	select {
	case <-ctx.Done():
		return nil
	case err := <-w.fatal:
		return err
	}
}
