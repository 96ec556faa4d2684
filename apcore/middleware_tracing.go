package apcore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"math"
	"sync/atomic"
	"time"
)

// defaultTracingPriority puts the span around the other middleware.
const defaultTracingPriority = 800

var tracingSpan = frame[openSpan]{"_apcore.mw.tracing.spans"}

// SamplingStrategy says which call trees are traced (apcore §11).
type SamplingStrategy string

// The four strategies.
const (
	// SamplingFull exports every span; the zero value means the same.
	SamplingFull SamplingStrategy = "full"
	// SamplingProportional exports the given share of the call trees.
	SamplingProportional SamplingStrategy = "proportional"
	// SamplingErrorFirst is proportional and exports every failed span besides.
	SamplingErrorFirst SamplingStrategy = "error_first"
	// SamplingOff exports nothing.
	SamplingOff SamplingStrategy = "off"
)

// TracingOptions configures a [TracingMiddleware]; the zero value is the default.
type TracingOptions struct {
	// Exporters take finished spans; nil means nobody does until
	// [TracingMiddleware.SetSpanExporters].
	Exporters []SpanExporter
	// Sampling is one of the four strategies; empty means SamplingFull.
	Sampling SamplingStrategy
	// Rate is the share of call trees, 0 to 1, of SamplingProportional and
	// SamplingErrorFirst; nil means 1.
	Rate *float64
	// Priority is 1 to 1000; zero means 800, around middleware of priority 100.
	Priority int
	// Logger takes warnings of failing exporters; nil means slog.Default().
	Logger *slog.Logger
}

// TracingMiddleware makes one span of every module call, nested calls below
// their callers, in the trace of the call's [Context]: parallel calls too, and
// every attempt of a retried call. Spans go to the exporters; without one the
// middleware does nothing. [Executor.Validate] is not traced.
//
// Whether a call tree is sampled follows from its trace id, so that every part of
// it agrees, in other processes too; a tree that came with a [TraceParent] follows
// that one's sampled flag instead, unless sampling is full or off.
//
// An executor needs one tracing middleware; of several, each would stand between
// the spans of the others.
type TracingMiddleware struct {
	opts  TracingOptions
	rate  float64
	sinks atomic.Pointer[[]*spanSink]
}

var (
	_ Middleware    = (*TracingMiddleware)(nil)
	_ spanExporting = (*TracingMiddleware)(nil)
	_ endObserver   = (*TracingMiddleware)(nil)
)

// openSpan is what a span knows before its end.
type openSpan struct {
	id, parent string
	start      time.Time
}

// spanRef is the innermost span a context is in.
type spanRef struct {
	id     string
	remote bool // of the trace parent, not of a call here
}

// NewTracingMiddleware fails with GENERAL_INVALID_INPUT for an unknown strategy,
// a rate or a priority out of bounds and a nil exporter.
func NewTracingMiddleware(opts TracingOptions) (*TracingMiddleware, error) {
	opts.Priority = intOr(opts.Priority, defaultTracingPriority)
	if _, err := priorityOption("TracingOptions", opts.Priority); err != nil {
		return nil, err
	}
	switch opts.Sampling {
	case "", SamplingFull, SamplingProportional, SamplingErrorFirst, SamplingOff:
	default:
		return nil, NewError(CodeInvalidInput, "TracingOptions.Sampling is %q: give full, proportional, error_first or off", opts.Sampling)
	}
	m := &TracingMiddleware{opts: opts, rate: 1}
	if opts.Rate != nil {
		m.rate = *opts.Rate
	}
	if math.IsNaN(m.rate) || m.rate < 0 || m.rate > 1 {
		return nil, NewError(CodeInvalidInput, "TracingOptions.Rate is %v: give 0 to 1, or nil for 1", m.rate)
	}
	for i, exporter := range opts.Exporters {
		if isNil(exporter) {
			return nil, NewError(CodeInvalidInput, "TracingOptions.Exporters[%d] is nil", i)
		}
	}
	m.opts.Logger = loggerOr(opts.Logger)
	m.SetSpanExporters(opts.Exporters)
	return m, nil
}

// SetSpanExporters replaces the exporters for all later ends of calls; none
// switches tracing off. [ExtensionManager.Apply] calls it with what stands at
// [PointSpanExporter].
func (m *TracingMiddleware) SetSpanExporters(exporters []SpanExporter) {
	sinks := make([]*spanSink, 0, len(exporters))
	for _, exporter := range exporters {
		if !isNil(exporter) {
			sinks = append(sinks, &spanSink{exporter: exporter})
		}
	}
	m.sinks.Store(&sinks)
}

// Priority places the middleware.
func (m *TracingMiddleware) Priority() int { return m.opts.Priority }

// Before opens the span.
func (m *TracingMiddleware) Before(_ context.Context, call *MiddlewareCall) (map[string]any, error) {
	if len(*m.sinks.Load()) == 0 || m.opts.Sampling == SamplingOff {
		return nil, nil
	}
	c := call.Context
	span := openSpan{id: randomHex(8), parent: c.span.id, start: time.Now()}
	tracingSpan.set(m, c, span)
	c.span = spanRef{id: span.id} // what the module calls is below it
	if m.sampling() && !m.sampled(c) {
		traceFlags.Set(c, "00") // for those whom the module asks, see InjectTraceParent
	}
	return nil, nil
}

// After closes the span of a call that ended well.
func (m *TracingMiddleware) After(ctx context.Context, call *MiddlewareCall, _ map[string]any) (map[string]any, error) {
	m.callEnded(ctx, call, nil)
	return nil, nil
}

// OnError closes the span of a call that failed.
func (m *TracingMiddleware) OnError(ctx context.Context, call *MiddlewareCall, err *Error) (*Recovery, error) {
	m.callEnded(ctx, call, err)
	return nil, nil
}

// callEnded closes the span if it is open.
func (m *TracingMiddleware) callEnded(ctx context.Context, call *MiddlewareCall, err *Error) {
	open, ok := tracingSpan.take(m, call.Context)
	if !ok || !m.exports(call.Context, err) {
		return
	}
	span := finishedSpan(open, call, err)
	for _, sink := range *m.sinks.Load() {
		sink.export(context.WithoutCancel(ctx), span, m.opts.Logger) // the call may be cancelled
	}
}

func finishedSpan(open openSpan, call *MiddlewareCall, err *Error) Span {
	end := time.Now()
	span := Span{
		TraceID: call.Context.traceID, SpanID: open.id, ParentSpanID: open.parent,
		Name: SpanName, Start: open.start, End: end, Status: SpanOK,
		Attributes: map[string]any{
			"module_id": call.ModuleID, "method": "execute", "success": err == nil, "duration_ms": millis(end.Sub(open.start)),
		},
	}
	if call.Context.callerID != "" {
		span.Attributes["caller_id"] = call.Context.callerID
	}
	if err != nil {
		span.Status = SpanError
		span.Attributes["error_code"] = string(err.Code)
	}
	return span
}

func (m *TracingMiddleware) exports(c *Context, err *Error) bool {
	switch m.opts.Sampling {
	case SamplingOff:
		return false
	case SamplingProportional:
		return m.sampled(c)
	case SamplingErrorFirst:
		return err != nil || m.sampled(c)
	default:
		return true
	}
}

func (m *TracingMiddleware) sampling() bool {
	return m.opts.Sampling == SamplingProportional || m.opts.Sampling == SamplingErrorFirst
}

// sampled decides for a whole call tree.
func (m *TracingMiddleware) sampled(c *Context) bool {
	if flags, _ := traceFlags.Get(c); flags != "" {
		raw, err := hex.DecodeString(flags)
		return err == nil && len(raw) == 1 && raw[0]&1 == 1
	}
	if m.rate == 1 {
		return true
	}
	id, err := hex.DecodeString(c.traceID)
	if err != nil || len(id) < 8 { // a foreign id
		sum := sha256.Sum256([]byte(c.traceID))
		id = sum[:]
	}
	share := binary.BigEndian.Uint64(id[len(id)-8:]) >> 1 // as OpenTelemetry does
	return float64(share) < m.rate*float64(math.MaxInt64)
}
