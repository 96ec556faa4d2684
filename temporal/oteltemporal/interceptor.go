package oteltemporal

import (
	"context"

	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// ScopeName is the instrumentation scope of the spans.
const ScopeName = "github.com/apcore-temporal/apcore-temporal/temporal"

// spanKey holds the span of a workflow in its context.
type spanKey struct{}

// NewInterceptor makes the interceptor for client.Options.Interceptors; workers
// made from the client use it too. Give it to one of client and worker only. It
// fails with GENERAL_INVALID_INPUT without a provider.
//
// A client call made under an OpenTelemetry span continues its trace, and the
// started workflow's apcore context has that trace's id, unless
// temporal.WithContext gives it one of its own. Without such a span the trace
// takes the id of that context.
func NewInterceptor(provider trace.TracerProvider) (interceptor.Interceptor, error) {
	if provider == nil {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "tracing needs a tracer provider")
	}
	tracer, err := opentelemetry.NewTracer(opentelemetry.TracerOptions{
		Tracer: provider.Tracer(ScopeName), SpanContextKey: spanKey{}, AllowInvalidParentSpans: true,
	})
	if err != nil {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "no tracer can be made: %w", err)
	}
	return &tracing{tracer: tracer, traced: interceptor.NewTracingInterceptor(tracer)}, nil
}

// tracing is the SDK's tracing but for workflows, whose spans it keeps open and
// opens anew on replay.
type tracing struct {
	interceptor.InterceptorBase
	tracer interceptor.Tracer
	traced interceptor.Interceptor
}

func (t *tracing) InterceptClient(next interceptor.ClientOutboundInterceptor) interceptor.ClientOutboundInterceptor {
	return &clientOutbound{interceptor.ClientOutboundInterceptorBase{Next: t.traced.InterceptClient(next)}}
}

func (t *tracing) InterceptActivity(ctx context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return t.traced.InterceptActivity(ctx, next)
}

func (t *tracing) InterceptWorkflow(ctx workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &inbound{
		WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: t.traced.InterceptWorkflow(ctx, next)},
		tracer:                         t.tracer, untraced: next,
	}
}

// clientOutbound lets a trace begin with the id of the apcore context.
type clientOutbound struct {
	interceptor.ClientOutboundInterceptorBase
}

func (c *clientOutbound) ExecuteWorkflow(ctx context.Context, in *interceptor.ClientExecuteWorkflowInput) (client.WorkflowRun, error) {
	return c.Next.ExecuteWorkflow(continued(ctx), in)
}

func (c *clientOutbound) SignalWithStartWorkflow(ctx context.Context, in *interceptor.ClientSignalWithStartWorkflowInput) (client.WorkflowRun, error) {
	return c.Next.SignalWithStartWorkflow(continued(ctx), in)
}

func (c *clientOutbound) UpdateWithStartWorkflow(ctx context.Context, in *interceptor.ClientUpdateWithStartWorkflowInput) (client.WorkflowUpdateHandle, error) {
	return c.Next.UpdateWithStartWorkflow(continued(ctx), in)
}

// continued returns ctx under a remote span of the trace of its apcore context,
// if it has one and no span.
func continued(ctx context.Context) context.Context {
	c := temporal.ContextOf(ctx)
	if c == nil || trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	headers, err := apcore.InjectTraceParent(c, "")
	if err != nil {
		return ctx
	}
	if parent := spanContextOf(headers); parent.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	return ctx
}
