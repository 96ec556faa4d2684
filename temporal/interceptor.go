package temporal

import (
	"context"

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
	// Limits bounds what a run hands to the server.
	Limits Limits
	// Codecs encode the headers that carry contexts, as converter.NewCodecDataConverter
	// takes them; none leaves them readable. Give the client the same. They run in
	// workflow code and must not wait for anything.
	Codecs []converter.PayloadCodec
}

// NewInterceptor prepares every workflow of a worker or replayer for [Call],
// and lets a client pass an apcore context on, see [WithContext]. Package worker
// installs it; without that package add it to worker.Options.Interceptors and
// client.Options.Interceptors. Options out of bounds fail with
// GENERAL_INVALID_INPUT, a bad prefix of names with CONFIG_INVALID.
func NewInterceptor(opts Options) (interceptor.Interceptor, error) {
	if err := opts.Namer.Validate(); err != nil {
		return nil, err
	}
	limits, err := opts.Limits.withDefaults()
	if err != nil {
		return nil, err
	}
	opts.Limits = limits
	return &rootInterceptor{opts: opts}, nil
}

// NewClientInterceptor is the client's half of [NewInterceptor] alone, for
// programs that start workflows and run none: it passes on the context of
// [WithContext]. Codecs are those of [Options].
func NewClientInterceptor(codecs ...converter.PayloadCodec) interceptor.ClientInterceptor {
	return &clientInterceptor{codecs: codecs}
}

type clientInterceptor struct {
	interceptor.ClientInterceptorBase
	codecs []converter.PayloadCodec
}

func (c *clientInterceptor) InterceptClient(next interceptor.ClientOutboundInterceptor) interceptor.ClientOutboundInterceptor {
	return &clientOutbound{interceptor.ClientOutboundInterceptorBase{Next: next}, c.codecs}
}

type rootInterceptor struct {
	interceptor.InterceptorBase
	opts Options
}

func (r *rootInterceptor) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &inbound{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, opts: r.opts}
}

func (r *rootInterceptor) InterceptClient(next interceptor.ClientOutboundInterceptor) interceptor.ClientOutboundInterceptor {
	return &clientOutbound{interceptor.ClientOutboundInterceptorBase{Next: next}, r.opts.Codecs}
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	opts  Options
	state *state // nil until the workflow begins, and where it was prepared before
}

func (i *inbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&outbound{interceptor.WorkflowOutboundInterceptorBase{Next: next}})
}

func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	if _, err := stateOf(ctx); err == nil { // installed twice, by client and worker
		return i.Next.ExecuteWorkflow(ctx, in)
	}
	inherited, err := readHeader(interceptor.WorkflowHeader(ctx), i.opts.Codecs)
	if err != nil {
		return nil, workflowError(local(ctx, err))
	}
	s := newState(ctx, i.opts, inherited)
	i.state = s
	ctx = workflow.WithValue(ctx, stateKey{}, s)
	if err := s.desk.open(ctx, i.opts.Namer); err != nil {
		return nil, err
	}
	result, err := i.Next.ExecuteWorkflow(ctx, in)
	result, err = s.leave(ctx, result, err)
	return result, workflowError(s.end(ctx, err))
}

// outbound passes the run's context to children and successors.
type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
}

type contextKey struct{}

// WithContext makes the workflows that a client starts with ctx act under an
// apcore context: its identity, trace id, call chain and public data. The client
// needs the interceptor of [NewInterceptor].
func WithContext(ctx context.Context, c *apcore.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}
