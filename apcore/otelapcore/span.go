package otelapcore

import (
	"context"
	"crypto/sha256"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// SpanExporterOptions configures what [NewSpanExporter] makes; the zero value is
// the default.
type SpanExporterOptions struct {
	// Resource says which service the spans come from; nil means
	// resource.Default().
	Resource *resource.Resource
}

// NewSpanExporter makes an exporter for the extension point span_exporter, or for
// [apcore.TracingOptions], that gives spans to an OpenTelemetry span processor:
//
//	processor := sdktrace.NewBatchSpanProcessor(exporter)
//	defer processor.Shutdown(ctx)
//
// The processor stays the caller's, who shuts it down. Sampling has happened
// before, in the tracing middleware: every span that arrives is sampled. A trace
// id that is not one of W3C is kept in the attribute apcore.trace_id; the span's
// own is made from it. A nil processor takes nothing.
func NewSpanExporter(processor sdktrace.SpanProcessor, opts SpanExporterOptions) apcore.SpanExporter {
	if opts.Resource == nil {
		opts.Resource = resource.Default()
	}
	return &spanExporter{processor, opts}
}

type spanExporter struct {
	processor sdktrace.SpanProcessor
	opts      SpanExporterOptions
}

// ExportSpan fails for a span whose id is malformed.
func (e *spanExporter) ExportSpan(_ context.Context, span apcore.Span) error {
	if e.processor == nil {
		return nil
	}
	stub, err := e.stub(span)
	if err != nil {
		return err
	}
	e.processor.OnEnd(stub.Snapshot())
	return nil
}

// stub is the span as OpenTelemetry sees it. The SDK offers no other way to a
// finished span with ids of one's own.
func (e *spanExporter) stub(span apcore.Span) (tracetest.SpanStub, error) {
	id, native := traceID(span.TraceID)
	own, err := spanContext(id, span.SpanID)
	if err != nil {
		return tracetest.SpanStub{}, err
	}
	var parent trace.SpanContext // invalid, which means none
	if span.ParentSpanID != "" {
		if parent, err = spanContext(id, span.ParentSpanID); err != nil {
			return tracetest.SpanStub{}, err
		}
	}
	stub := tracetest.SpanStub{
		Name: span.Name, SpanContext: own, Parent: parent, SpanKind: trace.SpanKindInternal,
		StartTime: span.Start, EndTime: span.End, Attributes: attributes(span.Attributes),
		Resource: e.opts.Resource, InstrumentationScope: instrumentation.Scope{Name: ScopeName},
	}
	if !native {
		stub.Attributes = append(stub.Attributes, attribute.String("apcore.trace_id", span.TraceID))
	}
	if span.Status == apcore.SpanError {
		code, _ := span.Attributes["error_code"].(string)
		stub.Status = sdktrace.Status{Code: codes.Error, Description: code}
	}
	return stub, nil
}

// traceID reads an id of W3C, also with the dashes of a UUID; any other one is
// hashed, and native is false.
func traceID(text string) (id trace.TraceID, native bool) {
	id, err := trace.TraceIDFromHex(strings.ReplaceAll(text, "-", ""))
	if err == nil {
		return id, id.String() == text
	}
	sum := sha256.Sum256([]byte(text))
	copy(id[:], sum[:])
	return id, false
}

func spanContext(traceID trace.TraceID, text string) (trace.SpanContext, error) {
	id, err := trace.SpanIDFromHex(text)
	if err != nil {
		return trace.SpanContext{}, apcore.NewError(apcore.CodeInvalidInput, "a span id is %q: 16 lower-case hex digits are needed", text)
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: id, TraceFlags: trace.FlagsSampled}), nil
}

func attributes(values map[string]any) []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, len(values))
	for key, value := range values {
		switch value := value.(type) {
		case string:
			list = append(list, attribute.String(key, value))
		case bool:
			list = append(list, attribute.Bool(key, value))
		case int64:
			list = append(list, attribute.Int64(key, value))
		}
	}
	return list
}
