package otelapcore_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/apcore/otelapcore"
)

// Every call becomes a span; any exporter of OpenTelemetry takes them.
func ExampleNewSpanExporter() {
	exporter := tracetest.NewInMemoryExporter() // or that of OTLP
	processor := sdktrace.NewBatchSpanProcessor(exporter)
	ctx := context.Background()

	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	err := apcore.Register(registry, "stock.count", func(context.Context, struct{}) (int, error) {
		return 0, apcore.NewError("STOCK_CLOSED", "the warehouse of Ada is closed")
	}, apcore.Spec{Description: "Counts what is in stock"})
	if err != nil {
		fmt.Println(err)
		return
	}
	tracing, err := apcore.NewTracingMiddleware(apcore.TracingOptions{
		Exporters: []apcore.SpanExporter{otelapcore.NewSpanExporter(processor, otelapcore.SpanExporterOptions{})},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{Middleware: []apcore.Middleware{tracing}})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := apcore.NewContext(apcore.ContextOptions{})
	_, err = executor.Call(ctx, "stock.count", nil, c)
	fmt.Println(err)

	_ = processor.ForceFlush(ctx)
	for _, span := range exporter.GetSpans() {
		fmt.Println(span.Name, span.Status.Code, span.Status.Description, span.SpanContext.TraceID().String() == c.TraceID())
	}
	_ = processor.Shutdown(ctx)
	// Output:
	// [STOCK_CLOSED] the warehouse of Ada is closed
	// apcore.module.execute Error STOCK_CLOSED true
}
