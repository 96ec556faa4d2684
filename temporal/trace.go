package temporal

import (
	"context"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// traceHeader is the header in which all of Temporal's SDKs send a span.
const traceHeader = "_tracer-data"

// ContextOf returns the apcore context of [WithContext], nil if there is none.
// It is for client interceptors that trace.
func ContextOf(ctx context.Context) *apcore.Context {
	c, _ := ctx.Value(contextKey{}).(*apcore.Context)
	return c
}

// TraceHeaders returns the W3C headers of the span that whoever started this
// workflow sent along, nil if none. It is for interceptors that trace; package
// oteltemporal is one.
func TraceHeaders(ctx workflow.Context) map[string]string {
	return traceHeaders(interceptor.WorkflowHeader(ctx))
}

// TraceID returns the trace id of this workflow's apcore context, which is fixed
// by how it was started: that of the context it was given, or else that of the
// span it was started under, or else the run id without dashes.
func TraceID(ctx workflow.Context) string {
	if s, err := stateOf(ctx); err == nil {
		id, _ := s.context["trace_id"].(string)
		return id
	}
	header := interceptor.WorkflowHeader(ctx)
	if payload, ok := header[durable.ContextHeader]; ok {
		if object, err := apcore.DecodeObject(payload.GetData()); err == nil {
			if id, ok := object["trace_id"].(string); ok && isTraceID(id) {
				return id
			}
		}
	}
	return freshTraceID(header, workflow.GetInfo(ctx))
}

// freshTraceID is the trace id of a run that was given no apcore context.
func freshTraceID(header map[string]*commonpb.Payload, info *workflow.Info) string {
	if parent := apcore.ExtractTraceParent(traceHeaders(header)); parent != nil {
		return parent.TraceID
	}
	return strings.ReplaceAll(runIDOf(info), "-", "")
}

func traceHeaders(header map[string]*commonpb.Payload) map[string]string {
	payload, ok := header[traceHeader]
	if !ok {
		return nil
	}
	var headers map[string]string
	if err := converter.GetDefaultDataConverter().FromPayload(payload, &headers); err != nil {
		return nil // somebody else's header
	}
	return headers
}
