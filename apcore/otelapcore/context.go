package otelapcore

import (
	"context"

	"go.opentelemetry.io/otel/propagation"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// TraceParent returns the OpenTelemetry span that ctx carries, for
// [apcore.ContextOptions], so that module calls continue its trace: the contexts
// made with it have its trace id, and their first span is below it. Without a
// span it returns nil, which starts a trace.
func TraceParent(ctx context.Context) *apcore.TraceParent {
	headers := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, headers)
	return apcore.ExtractTraceParent(headers)
}

// ContextWithSpan returns ctx with the span of the running module call as a remote
// OpenTelemetry span, so that what the module traces itself, such as a request to
// another service, is below that span. Modules pass the ctx they were given;
// outside of a call, and in a trace whose id is not one of W3C, it returns ctx.
func ContextWithSpan(ctx context.Context) context.Context {
	c, ok := apcore.FromContext(ctx)
	if !ok {
		return ctx
	}
	headers, err := apcore.InjectTraceParent(c, "")
	if err != nil {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(headers))
}
