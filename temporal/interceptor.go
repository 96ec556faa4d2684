package temporal

import (
	"context"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// Options configures the workflow side; the zero value is the default.
type Options struct {
	// Catalog says how modules want to be called; nil calls each at most once.
	Catalog *Catalog
	// Namer makes the persisted names.
	Namer durable.Namer
	// MaxInputBytes bounds the inputs of one call as JSON; zero means 1 MiB.
	MaxInputBytes int
}

// DefaultMaxInputBytes keeps inputs below what the server carries.
const DefaultMaxInputBytes = 1 << 20

// NewInterceptor prepares every workflow of a worker or replayer for [Call],
// and lets a client pass an apcore context on, see [WithContext]. Package worker
// installs it; without that package add it to worker.Options.Interceptors and
// client.Options.Interceptors. Options out of bounds fail with
// GENERAL_INVALID_INPUT, a bad prefix of names with CONFIG_INVALID.
func NewInterceptor(opts Options) (interceptor.Interceptor, error) {
	if opts.MaxInputBytes < 0 {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "Options.MaxInputBytes is %d: give a positive number, or zero for 1 MiB", opts.MaxInputBytes)
	}
	if err := opts.Namer.Validate(); err != nil {
		return nil, err
	}
	if opts.MaxInputBytes == 0 {
		opts.MaxInputBytes = DefaultMaxInputBytes
	}
	return &rootInterceptor{opts: opts}, nil
}

// NewClientInterceptor is the client's half of [NewInterceptor] alone, for
// programs that start workflows and run none: it passes on the context of
// [WithContext].
func NewClientInterceptor() interceptor.ClientInterceptor { return &clientInterceptor{} }

type clientInterceptor struct {
	interceptor.ClientInterceptorBase
}

func (*clientInterceptor) InterceptClient(next interceptor.ClientOutboundInterceptor) interceptor.ClientOutboundInterceptor {
	return &clientOutbound{interceptor.ClientOutboundInterceptorBase{Next: next}}
}

type rootInterceptor struct {
	interceptor.InterceptorBase
	opts Options
}

func (r *rootInterceptor) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &inbound{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, opts: r.opts}
}

func (r *rootInterceptor) InterceptClient(next interceptor.ClientOutboundInterceptor) interceptor.ClientOutboundInterceptor {
	return &clientOutbound{interceptor.ClientOutboundInterceptorBase{Next: next}}
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	opts Options
}

func (i *inbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&outbound{interceptor.WorkflowOutboundInterceptorBase{Next: next}})
}

func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	if _, err := stateOf(ctx); err == nil { // installed twice, by client and worker
		return i.Next.ExecuteWorkflow(ctx, in)
	}
	inherited, err := readHeader(interceptor.WorkflowHeader(ctx))
	if err != nil {
		return nil, workflowError(local(ctx, err))
	}
	s := newState(ctx, i.opts, inherited)
	ctx = workflow.WithValue(ctx, stateKey{}, s)
	if err := s.desk.open(ctx, i.opts.Namer); err != nil {
		return nil, err
	}
	result, err := i.Next.ExecuteWorkflow(ctx, in)
	return result, workflowError(s.end(ctx, err))
}

// outbound passes the run's context to children and successors.
type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
}

func (o *outbound) ExecuteChildWorkflow(ctx workflow.Context, childType string, args ...any) workflow.ChildWorkflowFuture {
	if s, err := stateOf(ctx); err == nil {
		writeHeader(interceptor.WorkflowHeader(ctx), s.contextWire())
	}
	return o.Next.ExecuteChildWorkflow(ctx, childType, args...)
}

// NewContinueAsNewError waits for the calls that are running, so that none is
// lost or made twice, and hands over those that wait for a decision.
func (o *outbound) NewContinueAsNewError(ctx workflow.Context, fn any, args ...any) error {
	s, err := stateOf(ctx)
	if err != nil {
		return o.Next.NewContinueAsNewError(ctx, fn, args...)
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	if err := s.handOver(ctx, interceptor.WorkflowHeader(ctx)); err != nil {
		return local(ctx, err)
	}
	return o.Next.NewContinueAsNewError(ctx, fn, args...)
}

type contextKey struct{}

// WithContext makes the workflows that a client starts with ctx act under an
// apcore context: its identity, trace id, call chain and public data. The client
// needs the interceptor of [NewInterceptor].
func WithContext(ctx context.Context, c *apcore.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

type clientOutbound struct {
	interceptor.ClientOutboundInterceptorBase
}

func (c *clientOutbound) ExecuteWorkflow(ctx context.Context, in *interceptor.ClientExecuteWorkflowInput) (client.WorkflowRun, error) {
	announce(ctx)
	return c.Next.ExecuteWorkflow(ctx, in)
}

func (c *clientOutbound) SignalWithStartWorkflow(ctx context.Context, in *interceptor.ClientSignalWithStartWorkflowInput) (client.WorkflowRun, error) {
	announce(ctx)
	return c.Next.SignalWithStartWorkflow(ctx, in)
}

func (c *clientOutbound) UpdateWithStartWorkflow(ctx context.Context, in *interceptor.ClientUpdateWithStartWorkflowInput) (client.WorkflowUpdateHandle, error) {
	announce(ctx)
	return c.Next.UpdateWithStartWorkflow(ctx, in)
}

func announce(ctx context.Context) {
	if c := ContextOf(ctx); c != nil {
		writeHeader(interceptor.Header(ctx), c.Serialize())
	}
}

func writeHeader(header map[string]*commonpb.Payload, contextWire map[string]any) {
	if header == nil {
		return
	}
	if payload, err := converter.GetDefaultDataConverter().ToPayload(contextWire); err == nil {
		header[durable.ContextHeader] = payload
	}
}

// readHeader takes what is there; a header that cannot be read is an error, not
// an anonymous call.
func readHeader(header map[string]*commonpb.Payload) (*carried, error) {
	c := &carried{}
	if payload, ok := header[durable.ContextHeader]; ok {
		object, err := apcore.DecodeObject(payload.GetData())
		if err != nil {
			return nil, apcore.NewError(apcore.CodeInvalidInput, "header %s is no apcore context: %w", durable.ContextHeader, err)
		}
		c.context = object
	}
	if payload, ok := header[carryHeader]; ok {
		if err := converter.GetDefaultDataConverter().FromPayload(payload, &c.carry); err != nil {
			return nil, apcore.NewError(apcore.CodeInvalidInput, "header %s cannot be read: %w", carryHeader, err)
		}
		if c.carry.V > durable.WireVersion {
			return nil, apcore.NewError(apcore.CodeInvalidInput, "header %s has version %d, this worker reads up to %d: update the worker", carryHeader, c.carry.V, durable.WireVersion)
		}
	}
	return c, nil
}
