package apcore

import (
	"context"
	"log/slog"
	"time"
)

// The metrics of module calls (apcore §11), with their labels module_id, status
// ("success" or "error") and error_code.
const (
	MetricCalls    = "apcore_module_calls_total"      // module_id, status
	MetricDuration = "apcore_module_duration_seconds" // module_id
	MetricErrors   = "apcore_module_errors_total"     // module_id, error_code
)

var metricsStart = frame[time.Time]{"_apcore.mw.metrics.starts"}

// CallMeasurement is one finished module call.
type CallMeasurement struct {
	ModuleID string
	// Code is the error's, empty for a call that ended well.
	Code Code
	// Duration includes the middleware of lower priority and nested calls.
	Duration time.Duration
}

// Status is the label of [MetricCalls]: "success" or "error".
func (m CallMeasurement) Status() string {
	if m.Code == "" {
		return "success"
	}
	return "error"
}

// MetricsRecorder counts calls. It is called concurrently, must return soon, and
// cannot change a call.
type MetricsRecorder interface {
	RecordCall(ctx context.Context, call CallMeasurement)
}

// MetricsOptions configures a [MetricsMiddleware].
type MetricsOptions struct {
	// Recorder takes the measurements; nil means nobody does.
	Recorder MetricsRecorder
	// Priority is 1 to 1000; zero means 800, around middleware of priority 100.
	Priority int
	// Logger is told of a recorder that panics; nil means slog.Default().
	Logger *slog.Logger
}

// MetricsMiddleware measures every module call, every attempt of a retried one by
// itself; cancelled calls and those whose error other middleware took included.
type MetricsMiddleware struct{ opts MetricsOptions }

var (
	_ Middleware  = (*MetricsMiddleware)(nil)
	_ endObserver = (*MetricsMiddleware)(nil)
)

// NewMetricsMiddleware fails with GENERAL_INVALID_INPUT for a priority out of
// bounds.
func NewMetricsMiddleware(opts MetricsOptions) (*MetricsMiddleware, error) {
	opts.Priority = intOr(opts.Priority, defaultTracingPriority)
	if _, err := priorityOption("MetricsOptions", opts.Priority); err != nil {
		return nil, err
	}
	if isNil(opts.Recorder) {
		opts.Recorder = nil
	}
	opts.Logger = loggerOr(opts.Logger)
	return &MetricsMiddleware{opts: opts}, nil
}

// Priority places the middleware.
func (m *MetricsMiddleware) Priority() int { return m.opts.Priority }

// Before starts the clock.
func (m *MetricsMiddleware) Before(_ context.Context, call *MiddlewareCall) (map[string]any, error) {
	if m.opts.Recorder != nil {
		metricsStart.set(m, call.Context, time.Now())
	}
	return nil, nil
}

// After measures a call that ended well.
func (m *MetricsMiddleware) After(ctx context.Context, call *MiddlewareCall, _ map[string]any) (map[string]any, error) {
	m.callEnded(ctx, call, nil)
	return nil, nil
}

// OnError measures a call that failed.
func (m *MetricsMiddleware) OnError(ctx context.Context, call *MiddlewareCall, err *Error) (*Recovery, error) {
	m.callEnded(ctx, call, err)
	return nil, nil
}

func (m *MetricsMiddleware) callEnded(ctx context.Context, call *MiddlewareCall, failure *Error) {
	start, ok := metricsStart.take(m, call.Context)
	if !ok {
		return
	}
	measured := CallMeasurement{ModuleID: call.ModuleID, Duration: time.Since(start)}
	if failure != nil {
		measured.Code = failure.Code
	}
	var err error
	defer func() {
		if err != nil {
			m.opts.Logger.ErrorContext(ctx, "apcore: a call was not counted", "module_id", call.ModuleID, "error", err.Error())
		}
	}()
	defer recoverTo(&err, "metrics recorder")
	m.opts.Recorder.RecordCall(context.WithoutCancel(ctx), measured)
}
