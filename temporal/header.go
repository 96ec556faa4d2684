package temporal

import (
	"context"
	"slices"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// maxClientContextBytes bounds what a client sends along, whatever the worker's
// limit: the server takes no more than twice as much.
const maxClientContextBytes = 1 << 20

// clientOutbound announces the context of [WithContext] wherever a client makes a
// workflow start.
type clientOutbound struct {
	interceptor.ClientOutboundInterceptorBase
	codecs []converter.PayloadCodec
}

func (c *clientOutbound) ExecuteWorkflow(ctx context.Context, in *interceptor.ClientExecuteWorkflowInput) (client.WorkflowRun, error) {
	if err := c.announce(ctx); err != nil {
		return nil, err
	}
	return c.Next.ExecuteWorkflow(ctx, in)
}

func (c *clientOutbound) SignalWithStartWorkflow(ctx context.Context, in *interceptor.ClientSignalWithStartWorkflowInput) (client.WorkflowRun, error) {
	if err := c.announce(ctx); err != nil {
		return nil, err
	}
	return c.Next.SignalWithStartWorkflow(ctx, in)
}

func (c *clientOutbound) UpdateWithStartWorkflow(ctx context.Context, in *interceptor.ClientUpdateWithStartWorkflowInput) (client.WorkflowUpdateHandle, error) {
	if err := c.announce(ctx); err != nil {
		return nil, err
	}
	return c.Next.UpdateWithStartWorkflow(ctx, in)
}

func (c *clientOutbound) CreateSchedule(ctx context.Context, in *interceptor.ScheduleClientCreateInput) (client.ScheduleHandle, error) {
	if err := c.announce(ctx); err != nil {
		return nil, err
	}
	return c.Next.CreateSchedule(ctx, in)
}

func (c *clientOutbound) announce(ctx context.Context) error {
	caller := ContextOf(ctx)
	if caller == nil {
		return nil
	}
	wire := caller.Serialize()
	if err := durable.CheckSize("", "context", durable.EncodedSize(mustJSON(wire)), maxClientContextBytes); err != nil {
		return err
	}
	return writeHeader(interceptor.Header(ctx), c.codecs, wire)
}

// writeHeader writes the context that a run or client hands on. One that cannot
// be written is an error: without it the other side would act for nobody.
func writeHeader(header map[string]*commonpb.Payload, codecs []converter.PayloadCodec, contextWire map[string]any) error {
	if header == nil {
		return nil
	}
	payload, err := converter.GetDefaultDataConverter().ToPayload(contextWire)
	if err != nil {
		return apcore.NewError(apcore.CodeInvalidInput, "header %s cannot be written: %w", durable.ContextHeader, err)
	}
	return put(header, codecs, durable.ContextHeader, payload)
}

func put(header map[string]*commonpb.Payload, codecs []converter.PayloadCodec, key string, payload *commonpb.Payload) error {
	payloads := []*commonpb.Payload{payload}
	for _, codec := range slices.Backward(codecs) {
		var err error
		if payloads, err = codec.Encode(payloads); err != nil || len(payloads) != 1 {
			return apcore.NewError(apcore.CodeInvalidInput, "header %s cannot be encoded: %w", key, err)
		}
	}
	header[key] = payloads[0]
	return nil
}

// readHeader takes what is there; a header that cannot be read is an error, not
// an anonymous call.
func readHeader(header map[string]*commonpb.Payload, codecs []converter.PayloadCodec) (*carried, error) {
	c := &carried{}
	if payload, err := decoded(header, codecs, durable.ContextHeader); err != nil {
		return nil, err
	} else if payload != nil {
		object, err := apcore.DecodeObject(payload.GetData())
		if err == nil {
			err = durable.CheckContext(object)
		}
		if err != nil {
			return nil, apcore.NewError(apcore.CodeInvalidInput, "header %s is no apcore context: %w", durable.ContextHeader, err)
		}
		c.context = object
	}
	payload, err := decoded(header, codecs, carryHeader)
	if err != nil || payload == nil {
		return c, err
	}
	if err := converter.GetDefaultDataConverter().FromPayload(payload, &c.carry); err != nil {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "header %s cannot be read: %w", carryHeader, err)
	}
	if c.carry.V > durable.WireVersion {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "header %s has version %d, this worker reads up to %d: update the worker", carryHeader, c.carry.V, durable.WireVersion)
	}
	return c, nil
}

// decoded returns a header as it was before the codecs, nil if it is not there.
func decoded(header map[string]*commonpb.Payload, codecs []converter.PayloadCodec, key string) (*commonpb.Payload, error) {
	payload, ok := header[key]
	if !ok {
		return nil, nil
	}
	payloads := []*commonpb.Payload{payload}
	for _, codec := range codecs {
		var err error
		if payloads, err = codec.Decode(payloads); err != nil || len(payloads) != 1 {
			return nil, apcore.NewError(apcore.CodeInvalidInput, "header %s cannot be decoded: %w", key, err)
		}
	}
	return payloads[0], nil
}

// fresh is the context of a run that nobody sent one along with, such as one
// started from a command line: it acts for nobody known.
func fresh(traceID string) map[string]any {
	return map[string]any{
		"_context_version": 1, "trace_id": traceID, "caller_id": nil, "call_chain": []any{}, "identity": nil,
	}
}

// mendTrace replaces a trace id that no tracer would take (apcore §5.7).
func mendTrace(ctx workflow.Context, contextWire map[string]any, info *workflow.Info) {
	if id, _ := contextWire["trace_id"].(string); !isTraceID(id) {
		workflow.GetLogger(ctx).Warn("apcore: the caller's trace id is not 32 lower-case hex digits and is replaced")
		contextWire["trace_id"] = freshTraceID(interceptor.WorkflowHeader(ctx), info)
	}
}

func isTraceID(id string) bool {
	const digits = 32
	return len(id) == digits && strings.Trim(id, "0123456789abcdef") == "" && strings.Trim(id, "0") != ""
}
