package apcore

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"
)

// SpanName is the name of every span of a module call (apcore §11).
const SpanName = "apcore.module.execute"

// SpanStatus says how the call of a [Span] ended.
type SpanStatus string

// The two ends of a call.
const (
	SpanOK    SpanStatus = "ok"
	SpanError SpanStatus = "error"
)

// Span tells of one finished module call. It holds no input, no output and no
// text of an error, so there is no secret in it.
type Span struct {
	// TraceID is the trace id of the call's [Context].
	TraceID string
	// SpanID is 16 lower-case hex digits.
	SpanID string
	// ParentSpanID is the span of the calling module, that of the [TraceParent] at
	// the top, or empty.
	ParentSpanID string
	Name         string
	Start, End   time.Time
	Status       SpanStatus
	// Attributes are module_id, method, duration_ms (int64) and success (bool),
	// caller_id when a module called, and error_code when the call failed.
	Attributes map[string]any
}

// Map returns the wire form: times in UTC with milliseconds, and a
// parent_span_id that is null at the top.
func (s Span) Map() map[string]any {
	return map[string]any{
		"trace_id": s.TraceID, "span_id": s.SpanID, "parent_span_id": textOrNil(s.ParentSpanID), "name": s.Name,
		"start": s.Start.UTC().Format(timestampLayout), "end": s.End.UTC().Format(timestampLayout),
		"status": string(s.Status), "attributes": maps.Clone(s.Attributes),
	}
}

// MarshalJSON writes the wire form.
func (s Span) MarshalJSON() ([]byte, error) { return json.Marshal(s.Map()) }

// spanSink hands spans to one exporter.
type spanSink struct {
	exporter SpanExporter
	failing  atomic.Bool
}

// export keeps a failing exporter away from the call and from the others; it is
// reported once until it works again.
func (s *spanSink) export(ctx context.Context, span Span, logger *slog.Logger) {
	err := s.try(ctx, span)
	if s.failing.Swap(err != nil) || err == nil {
		return
	}
	logger.WarnContext(ctx, "apcore: a span exporter fails, spans are lost", "exporter", typeName(s.exporter), "error", outside.text(err.Error()))
}

func (s *spanSink) try(ctx context.Context, span Span) (err error) {
	defer recoverTo(&err, "span exporter")
	span.Attributes = maps.Clone(span.Attributes) // each its own
	return s.exporter.ExportSpan(ctx, span)
}
