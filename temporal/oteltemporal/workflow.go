package oteltemporal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// inbound traces that a workflow begins and ends, once each.
type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	tracer   interceptor.Tracer
	untraced interceptor.WorkflowInboundInterceptor
}

// ExecuteWorkflow passes by the SDK's tracing of workflows: it would leave a span
// open until the end, end it wherever the workflow leaves a worker's cache, and
// begin another one with each replay.
func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	base := i.base(ctx)
	i.note(ctx, base, "RunWorkflow", nil)
	result, err := i.untraced.ExecuteWorkflow(workflow.WithValue(ctx, spanKey{}, base), in)
	i.note(ctx, base, "CompleteWorkflow", err)
	return result, err
}

// ExecuteUpdate is traced when it happens, not when it is replayed.
func (i *inbound) ExecuteUpdate(ctx workflow.Context, in *interceptor.UpdateInput) (any, error) {
	if workflow.IsReplaying(ctx) {
		return i.untraced.ExecuteUpdate(ctx, in)
	}
	return i.Next.ExecuteUpdate(ctx, in)
}

// base is the parent of all spans of a run. It follows from what is in the
// history, so it is the same on every worker: the span that the client sent, or
// else one that nobody exports, of the run's apcore trace.
func (i *inbound) base(ctx workflow.Context) interceptor.TracerSpan {
	headers := temporal.TraceHeaders(ctx)
	parent := spanContextOf(headers)
	if !parent.IsValid() {
		info := workflow.GetInfo(ctx)
		sum := sha256.Sum256([]byte(info.OriginalRunID))
		parent = spanContextOf(map[string]string{"traceparent": "00-" + temporal.TraceID(ctx) + "-" + hex.EncodeToString(sum[:8]) + "-01"})
	}
	return i.tracer.SpanFromContext(trace.ContextWithRemoteSpanContext(context.Background(), parent))
}

// note makes a span that ends at once, unless the run is replayed.
func (i *inbound) note(ctx workflow.Context, base interceptor.TracerSpan, operation string, err error) {
	if workflow.IsReplaying(ctx) {
		return
	}
	info := workflow.GetInfo(ctx)
	//workflowcheck:ignore a span has the time of the machine; the workflow never sees it
	span, startErr := i.tracer.StartSpan(&interceptor.TracerStartSpanOptions{
		Parent: base, Operation: operation, Name: info.WorkflowType.Name, Time: workflow.Now(ctx), FromHeader: true,
		Tags: map[string]string{"temporalWorkflowID": info.WorkflowExecution.ID, "temporalRunID": info.WorkflowExecution.RunID},
	})
	if startErr == nil {
		//workflowcheck:ignore as above
		span.Finish(&interceptor.TracerFinishSpanOptions{Error: err})
	}
}

// spanContextOf reads W3C headers; without a valid traceparent the result is
// invalid.
func spanContextOf(headers map[string]string) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier(headers))
	return trace.SpanContextFromContext(ctx)
}
