package apcore

import (
	"context"
	"log/slog"
	"time"
)

var loggingStart = frame[time.Time]{"_apcore.mw.logging.start_time"}

// LoggingOptions configures a [LoggingMiddleware]; the zero value is the
// default.
type LoggingOptions struct {
	// Logger takes the records; nil means slog.Default().
	Logger *slog.Logger
	// Level is that of start and completion; zero is slog.LevelInfo. Failures have
	// slog.LevelError.
	Level slog.Level
	// OmitValues leaves inputs and outputs out; by default their redacted copies
	// are logged.
	OmitValues bool
	// Priority is 1 to 1000; zero means 100.
	Priority int
}

// LoggingMiddleware logs the start, the completion and the failure of calls,
// with the fields trace_id, module_id and caller_id, and duration_ms at the end.
// Inputs and outputs appear as redaction left them, never raw (apcore D-131); the
// executor has taken secrets out of errors before.
//
// It hears of what happens inside of it. Registered last, it logs every attempt
// of a retry; registered first, one start per attempt and the last end. A call
// that was cancelled, or whose error another middleware recovered first, has a
// start only.
type LoggingMiddleware struct {
	opts LoggingOptions
}

var _ Middleware = (*LoggingMiddleware)(nil)

// NewLoggingMiddleware fails with GENERAL_INVALID_INPUT for a priority out of
// bounds.
func NewLoggingMiddleware(opts LoggingOptions) (*LoggingMiddleware, error) {
	priority, err := priorityOption("LoggingOptions", opts.Priority)
	if err != nil {
		return nil, err
	}
	opts.Priority = priority
	opts.Logger = loggerOr(opts.Logger)
	return &LoggingMiddleware{opts: opts}, nil
}

// Priority places the middleware.
func (m *LoggingMiddleware) Priority() int { return m.opts.Priority }

// Before logs the start.
func (m *LoggingMiddleware) Before(ctx context.Context, call *MiddlewareCall) (map[string]any, error) {
	loggingStart.set(m, call.Context, time.Now())
	attrs := callAttrs(call)
	if !m.opts.OmitValues {
		attrs = append(attrs, slog.Any("inputs", call.Context.RedactedInputs()))
	}
	m.opts.Logger.LogAttrs(ctx, m.opts.Level, "apcore: call started", attrs...)
	return nil, nil
}

// After logs the completion.
func (m *LoggingMiddleware) After(ctx context.Context, call *MiddlewareCall, _ map[string]any) (map[string]any, error) {
	attrs := append(callAttrs(call), m.duration(call)...)
	if !m.opts.OmitValues {
		attrs = append(attrs, slog.Any("output", call.Context.RedactedOutput()))
	}
	m.opts.Logger.LogAttrs(ctx, m.opts.Level, "apcore: call completed", attrs...)
	return nil, nil
}

// OnError logs the failure, also one that comes after the completion of the
// module from another middleware; that one has no duration.
func (m *LoggingMiddleware) OnError(ctx context.Context, call *MiddlewareCall, err *Error) (*Recovery, error) {
	attrs := append(callAttrs(call), m.duration(call)...)
	attrs = append(attrs, slog.String("error_code", string(err.Code)), slog.String("error", err.Message))
	m.opts.Logger.LogAttrs(ctx, slog.LevelError, "apcore: call failed", attrs...)
	return nil, nil
}

func callAttrs(call *MiddlewareCall) []slog.Attr {
	return []slog.Attr{
		slog.String("trace_id", call.Context.traceID),
		slog.String("module_id", call.ModuleID),
		slog.String("caller_id", call.Context.callerID),
	}
}

func (m *LoggingMiddleware) duration(call *MiddlewareCall) []slog.Attr {
	start, ok := loggingStart.take(m, call.Context)
	if !ok {
		return nil
	}
	return []slog.Attr{slog.Int64("duration_ms", millis(time.Since(start)))}
}
