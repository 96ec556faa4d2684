package otelapcore_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/apcore/otelapcore"
)

type object = map[string]any

// host has the modules "outer", which calls "inner", which does what body says.
func host(t *testing.T, body func(ctx context.Context) error, middleware ...apcore.Middleware) *apcore.Executor {
	t.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	err := errors.Join(
		apcore.Register(registry, "outer", func(ctx context.Context, in object) (object, error) {
			return apcore.Call[object](ctx, "inner", in)
		}, apcore.Spec{Description: "Calls another"}),
		apcore.Register(registry, "inner", func(ctx context.Context, _ object) (object, error) {
			return object{}, body(ctx)
		}, apcore.Spec{Description: "Does the work"}),
	)
	if err != nil {
		t.Fatal(err)
	}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{Middleware: middleware, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return executor
}

func tracing(t *testing.T, exporters ...apcore.SpanExporter) *apcore.TracingMiddleware {
	t.Helper()
	middleware, err := apcore.NewTracingMiddleware(apcore.TracingOptions{Exporters: exporters})
	if err != nil {
		t.Fatal(err)
	}
	return middleware
}

// spansOf runs outer with a batch processor and returns its spans by module, those
// of instrument by name.
func spansOf(t *testing.T, c *apcore.Context, body func(ctx context.Context) error) map[string]tracetest.SpanStub {
	t.Helper()
	memory := tracetest.NewInMemoryExporter()
	processor := sdktrace.NewBatchSpanProcessor(memory)
	service := resource.NewSchemaless(attribute.String("service.name", "billing"))
	executor := host(t, body, tracing(t, otelapcore.NewSpanExporter(processor, otelapcore.SpanExporterOptions{Resource: service})))
	_, _ = executor.Call(t.Context(), "outer", object{"password": "hunter-2"}, c)
	if err := processor.ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans := map[string]tracetest.SpanStub{}
	for _, span := range memory.GetSpans() {
		if span.Resource != service || span.InstrumentationScope.Name != otelapcore.ScopeName || span.SpanKind != trace.SpanKindInternal {
			t.Errorf("span %+v", span)
		}
		spans[value(span, "module_id")] = span
	}
	if err := processor.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return spans
}

func value(span tracetest.SpanStub, key attribute.Key) string {
	for _, pair := range span.Attributes {
		if pair.Key == key {
			return pair.Value.String()
		}
	}
	return ""
}

// Pitfall 41: no global provider is needed; the trace id is the context's.
func TestSpans(t *testing.T) {
	c := apcore.NewContext(apcore.ContextOptions{})
	spans := spansOf(t, c, func(context.Context) error { return apcore.NewError("BROKEN", "secret text") })
	outer, inner := spans["outer"], spans["inner"]
	if len(spans) != 2 || outer.Parent.IsValid() || inner.Parent.SpanID() != outer.SpanContext.SpanID() {
		t.Fatalf("spans %+v", spans)
	}
	for _, span := range spans {
		if span.SpanContext.TraceID().String() != c.TraceID() || !span.SpanContext.IsSampled() || span.Name != apcore.SpanName {
			t.Errorf("span context %+v", span.SpanContext)
		}
		if want := (sdktrace.Status{Code: codes.Error, Description: "BROKEN"}); span.Status != want {
			t.Errorf("status %+v", span.Status)
		}
		if span.StartTime.IsZero() || span.EndTime.Before(span.StartTime) {
			t.Errorf("from %v to %v", span.StartTime, span.EndTime)
		}
		var keys []string
		for _, pair := range span.Attributes {
			keys = append(keys, string(pair.Key))
			if text := pair.Value.String(); strings.Contains(text, "hunter-2") || strings.Contains(text, "secret text") {
				t.Errorf("%s is %s", pair.Key, text)
			}
		}
		slices.Sort(keys)
		want := []string{"duration_ms", "error_code", "method", "module_id", "success"}
		if span.Parent.IsValid() {
			want = slices.Insert(want, 0, "caller_id")
		}
		if diff := cmp.Diff(want, keys); diff != "" {
			t.Errorf("attributes (-want +got):\n%s", diff)
		}
	}
	ok := spansOf(t, nil, func(context.Context) error { return nil })["inner"]
	if ok.Status != (sdktrace.Status{}) || value(ok, "success") != "true" || value(ok, "caller_id") != "outer" {
		t.Errorf("span of success %+v", ok)
	}
}

// A span of the host's around the calls and one that a module makes are in the
// same trace, above and below.
func TestSpansJoinOtherInstrumentation(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	tracer := provider.Tracer("host")
	ctx, request := tracer.Start(t.Context(), "request")
	c := apcore.NewContext(apcore.ContextOptions{TraceParent: otelapcore.TraceParent(ctx)})
	spans := spansOf(t, c, func(ctx context.Context) error {
		_, query := tracer.Start(otelapcore.ContextWithSpan(ctx), "query")
		query.End()
		return nil
	})
	query := recorder.Ended()[0]
	inner, outer := spans["inner"].SpanContext, spans["outer"]
	if query.Parent().SpanID() != inner.SpanID() || query.SpanContext().TraceID() != inner.TraceID() || !query.Parent().IsRemote() {
		t.Errorf("the module's span is below %v, want %v", query.Parent(), inner)
	}
	if outer.Parent.SpanID() != request.SpanContext().SpanID() || inner.TraceID() != request.SpanContext().TraceID() {
		t.Errorf("the call is below %v, want %v", outer.Parent, request.SpanContext())
	}
	if otelapcore.TraceParent(t.Context()) != nil || otelapcore.ContextWithSpan(t.Context()) != t.Context() {
		t.Error("something comes from nothing")
	}
}

// Trace ids from elsewhere are opaque texts.
func TestForeignTraceIDs(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"4bf92f35-77b3-4da6-a3ce-929d0e0e4736", "run-17", "run-18", "", strings.Repeat("0", 32)} {
		spans := spansOf(t, apcore.DeserializeContext(object{"trace_id": id}), func(context.Context) error { return nil })
		span := spans["inner"]
		if !span.SpanContext.IsValid() || value(span, "apcore.trace_id") != id || spans["outer"].SpanContext.TraceID() != span.SpanContext.TraceID() {
			t.Errorf("%q: %+v", id, span)
		}
		if other, taken := seen[span.SpanContext.TraceID().String()]; taken {
			t.Errorf("%q and %q share a trace", id, other)
		}
		seen[span.SpanContext.TraceID().String()] = id
	}
	if seen["4bf92f3577b34da6a3ce929d0e0e4736"] == "" {
		t.Error("the digits of a UUID are lost")
	}
}

func TestSpansGoNowhere(t *testing.T) {
	exporter := otelapcore.NewSpanExporter(nil, otelapcore.SpanExporterOptions{})
	if err := exporter.ExportSpan(t.Context(), apcore.Span{}); err != nil {
		t.Error(err)
	}
	exporter = otelapcore.NewSpanExporter(tracetest.NewSpanRecorder(), otelapcore.SpanExporterOptions{})
	for _, span := range []apcore.Span{{}, {SpanID: strings.Repeat("a", 16), ParentSpanID: "x"}} {
		if err := exporter.ExportSpan(t.Context(), span); !errors.Is(err, apcore.CodeInvalidInput) {
			t.Errorf("%v", err)
		}
	}
}

func TestMetrics(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	recorder, err := otelapcore.NewMetricsRecorder(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	if err != nil {
		t.Fatal(err)
	}
	middleware, err := apcore.NewMetricsMiddleware(apcore.MetricsOptions{Recorder: recorder})
	if err != nil {
		t.Fatal(err)
	}
	fail := true
	executor := host(t, func(context.Context) error {
		if fail = !fail; fail {
			return apcore.NewError("BROKEN", "x")
		}
		return nil
	}, middleware)
	for range 2 {
		_, _ = executor.Call(t.Context(), "outer", nil, nil)
	}
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &collected); err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, point := range data.DataPoints {
					got[m.Name+" "+point.Attributes.Encoded(attribute.DefaultEncoder())] = uint64(point.Value)
				}
			case metricdata.Histogram[float64]:
				for _, point := range data.DataPoints {
					got[m.Name+m.Unit+" "+point.Attributes.Encoded(attribute.DefaultEncoder())] = point.Count
				}
			}
		}
	}
	want := map[string]uint64{}
	for _, module := range []string{"inner", "outer"} {
		want["apcore_module_calls_total module_id="+module+",status=success"] = 1
		want["apcore_module_calls_total module_id="+module+",status=error"] = 1
		want["apcore_module_errors_total error_code=BROKEN,module_id="+module] = 1
		want["apcore_module_duration_secondss module_id="+module] = 2
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// refusing is a provider whose meters make no counters.
type refusing struct{ noop.MeterProvider }

type refusingMeter struct{ noop.Meter }

func (refusing) Meter(string, ...metric.MeterOption) metric.Meter { return refusingMeter{} }

func (refusingMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errors.New("no")
}

func TestMetricsProviders(t *testing.T) {
	recorder, err := otelapcore.NewMetricsRecorder(nil)
	if err != nil {
		t.Fatal(err)
	}
	recorder.RecordCall(t.Context(), apcore.CallMeasurement{ModuleID: "m", Code: "X"})
	if _, err := otelapcore.NewMetricsRecorder(refusing{}); !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("a refused instrument: %v", err)
	}
}
