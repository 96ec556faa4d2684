package worker

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
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
	// Deployment makes the worker a version of a deployment; the zero value leaves
	// versioning off.
	Deployment Deployment
	// CheckNames lets Start fail when an open run of the task queue has called a
	// module that this worker neither has nor knows by an alias, see [CheckNames].
	CheckNames bool
	// MonitorAddress is the host:port at which the worker serves [HealthPath],
	// [ReadyPath] and [MetricsPath] from Start to the end of Stop; port 0 takes a
	// free one. Empty serves nothing. Whoever reaches it may read all of it.
	MonitorAddress string
	// Metrics is what [MetricsPath] serves, such as that of [Metrics.Handler]; nil
	// means not found.
	Metrics http.Handler
	// SDK is handed to the SDK as it is, with the plugin and the stop timeout
	// added.
	SDK sdkworker.Options
}

// Worker hosts the modules of an executor on a task queue.
type Worker struct {
	sdk      sdkworker.Worker
	registry *guard
	check    func(context.Context) error
	logger   *zap.Logger
	queue    string
	ids      []string
	fatal    chan error

	sealed       func() bool // nil when the registry is left open
	startMonitor func() (*monitor, error)
	monitor      atomic.Pointer[monitor]
	mu           sync.Mutex
	state        state
	broken       error
}

// state is how far a worker has come.
type state int

const (
	stateNew state = iota
	statePolling
	stateDraining
	stateStopped
)

// New makes a worker that does not poll yet. Beside the errors of [NewPlugin] it
// fails with GENERAL_INVALID_INPUT for a nil client, an empty queue, a negative
// timeout, half a [Deployment], or options that the SDK does not take.
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
	hosted, err := newHost(executor, opts.PluginOptions)
	if err != nil {
		return nil, err
	}
	w := &Worker{logger: opts.Logger, queue: queue, ids: executor.Registry().IDs(), fatal: make(chan error, 1)}
	if w.logger == nil {
		w.logger = zap.NewNop()
	}
	w.warnContradictions(executor)
	if opts.CheckNames {
		w.check = func(ctx context.Context) error {
			return CheckNames(ctx, c, queue, executor, CheckOptions{Aliases: opts.Invoker.Aliases, Namer: opts.Namer})
		}
	}
	w.startMonitor = func() (*monitor, error) { return startMonitor(opts.MonitorAddress, w, opts.Metrics) }
	if !opts.LeaveUnsealed {
		w.sealed = executor.Registry().Sealed
	}
	sdk, err := w.sdkOptions(hosted, opts)
	if err != nil {
		return nil, err
	}
	if w.sdk, err = newSDKWorker(c, queue, sdk); err != nil {
		return nil, err
	}
	w.registry = &guard{sdk: w.sdk, conflict: hosted.conflict}
	return w, nil
}

// sdkOptions puts what this package adds over what the application gave.
func (w *Worker) sdkOptions(hosted *host, opts Options) (sdkworker.Options, error) {
	sdk := opts.SDK
	plugin, err := hosted.plugin()
	if err != nil {
		return sdk, err
	}
	if err := opts.Deployment.apply(&sdk); err != nil {
		return sdk, err
	}
	sdk.Plugins = append(slices.Clone(sdk.Plugins), plugin)
	sdk.WorkerStopTimeout = cmp.Or(opts.StopTimeout, DefaultStopTimeout)
	sdk.OnFatalError = w.onFatal(sdk.OnFatalError)
	return sdk, nil
}

// newSDKWorker turns the SDK's panic over its options into an error.
func newSDKWorker(c client.Client, queue string, opts sdkworker.Options) (made sdkworker.Worker, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = apcore.NewError(apcore.CodeInvalidInput, "the SDK does not take Options.SDK: %s", fmt.Sprint(cause))
		}
	}()
	return sdkworker.New(c, queue, opts), nil
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
		w.mu.Lock()
		w.broken = err
		w.mu.Unlock()
		select {
		case w.fatal <- err:
		default:
		}
		if next != nil {
			next(err)
		}
	}
}

// Registry registers workflows and further activities; call it before Run. A
// registration that the SDK does not take makes Start fail, with NAME_TAKEN.
func (w *Worker) Registry() sdkworker.Registry { return w.registry }

// Start begins to poll and returns. It fails with NAME_TAKEN when a name has two
// owners, with the error of [CheckNames] when that was asked for, and with
// GENERAL_INVALID_INPUT after Stop: make a new worker then, the same executor
// will do.
func (w *Worker) Start() error { return w.start(context.Background()) }

func (w *Worker) start(ctx context.Context) error {
	if w.in(stateDraining, stateStopped) {
		return apcore.NewError(apcore.CodeInvalidInput, "the worker of task queue %q was stopped: make a new one", w.queue)
	}
	if err := w.registry.failure(); err != nil {
		return err
	}
	if w.check != nil {
		if err := w.check(ctx); err != nil {
			return err
		}
	}
	if w.monitor.Load() == nil {
		m, err := w.startMonitor()
		if err != nil {
			return err
		}
		w.monitor.Store(m)
	}
	if err := w.sdk.Start(); err != nil {
		w.monitor.Swap(nil).stop()
		return err
	}
	w.advance(statePolling)
	w.logger.Info("worker started", zap.String("task_queue", w.queue), zap.Strings("modules", w.ids), zap.String("monitor", w.MonitorAddress()))
	return nil
}

// Stop takes no new work, waits for running modules up to the stop timeout, then
// interrupts them. From its beginning the worker is not ready. Later calls do
// nothing.
func (w *Worker) Stop() {
	if !w.advance(stateDraining) {
		return
	}
	w.sdk.Stop()
	w.advance(stateStopped)
	w.monitor.Swap(nil).stop()
	w.logger.Info("worker stopped", zap.String("task_queue", w.queue))
}

// advance moves to a later state and reports whether it was one.
func (w *Worker) advance(to state) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if to <= w.state {
		return false
	}
	w.state = to
	return true
}

func (w *Worker) in(states ...state) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(states, w.state)
}

// Run starts the worker and stops it when ctx ends or the worker breaks down; it
// returns the reason of a break-down, nil otherwise.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.start(ctx); err != nil {
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
