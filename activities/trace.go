package activities

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// traceParent is the OpenTelemetry span of an activity, nil if it has none. It
// needs no provider: without one there is no span.
func traceParent(ctx context.Context) *apcore.TraceParent {
	headers := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, headers)
	return apcore.ExtractTraceParent(headers)
}

// linkAsked links the span of an approved call to that of the unit which asked,
// so that nothing stays open while people decide.
func linkAsked(ctx context.Context, request durable.CallRequest) {
	if request.AskedIn == "" {
		return
	}
	asked := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": request.AskedIn})
	trace.SpanFromContext(ctx).AddLink(trace.Link{
		SpanContext: trace.SpanContextFromContext(asked),
		Attributes:  []attribute.KeyValue{attribute.String("apcore.link", "approval_asked")},
	})
}
