package worker

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	sdktemporal "go.temporal.io/sdk/temporal"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/activities"
	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/workflows"
)

// PluginOptions configures [NewPlugin]; the zero value is the default.
type PluginOptions struct {
	// Invoker configures the activities; its aliases hold for workflows too.
	Invoker durable.InvokerOptions
	// Dynamic is the application's own dynamic activity, see [activities.Options].
	Dynamic activities.Dynamic
	// NoDynamicActivity leaves the worker's one dynamic activity to the
	// application, see [activities.Options].
	NoDynamicActivity bool
	// LeaveUnsealed keeps the executor's registry open, see [activities.Options].
	LeaveUnsealed bool
	// Limits bounds what runs hand to the server.
	Limits temporal.Limits
	// Codecs encode the headers that carry contexts, see [temporal.Options]; the
	// client needs them too, and a data converter of its own, see package codec.
	Codecs []converter.PayloadCodec
	// Namer makes the persisted names; all workers and clients of a namespace
	// need the same.
	Namer durable.Namer
	// AllowMissingApprovalHandler lets a worker start although a module needs
	// approval and the executor has no handler: such modules then run without
	// anybody being asked.
	AllowMissingApprovalHandler bool
	// AuditSink takes a record of every step of every approval; nil means none are
	// made. Records come at least once each, with an id that tells repeats.
	AuditSink durable.AuditSink
	// Client lets runs show their approvals in searches, once the search attributes
	// of [temporal.SearchAttributes] are registered; nil means they never do. [New]
	// sets it.
	Client client.Client
}

// NewPlugin wires a client, its workers and a replayer for apcore: activities of
// the executor's modules, the ready-made workflows, and the interceptor that
// prepares workflows. It seals the executor's registry, unless told otherwise;
// the executor may serve many workers, one after another or side by side.
//
// It fails with CONFIG_INVALID when a module needs approval and there is no
// handler (a nil pointer counts as none), or when a module's x-temporal settings or
// x-approval rules make no sense, and with the errors of the parts. A worker that
// has it does not start, with NAME_TAKEN, when a name on it has two owners: two
// plugins of this kind on one worker, or an application's activity under a
// module's name.
func NewPlugin(executor *apcore.Executor, opts PluginOptions) (*sdktemporal.SimplePlugin, error) {
	h, err := newHost(executor, opts)
	if err != nil {
		return nil, err
	}
	return h.plugin()
}

// host is what a plugin brings to its workers.
type host struct {
	namer  durable.Namer
	codecs []converter.PayloadCodec
	// offloads says that values may be so large that writing one takes longer than
	// the SDK lets a workflow run without a pause.
	offloads bool
	hosted   *activities.Activities
	prepare  interceptor.Interceptor

	mu     sync.Mutex
	owners map[string]*owners // by worker
}

// offloadedStep is how long a step of a workflow may take where values are kept
// in an external storage; the SDK's own limit is a second.
const offloadedStep = 30 * time.Second

func newHost(executor *apcore.Executor, opts PluginOptions) (*host, error) {
	if executor == nil {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "a worker needs an executor")
	}
	if !opts.LeaveUnsealed {
		executor.Registry().Seal("its worker was made")
	}
	if err := checkGate(executor, opts); err != nil {
		return nil, err
	}
	if err := checkRules(executor); err != nil {
		return nil, err
	}
	catalog, err := temporal.NewCatalog(executor)
	if err != nil {
		return nil, err
	}
	if opts.Limits.OffloadBytes > 0 && opts.Invoker.MaxOutputBytes == 0 {
		opts.Invoker.MaxOutputBytes = temporal.DefaultMaxOffloadedBytes
	}
	h := &host{namer: opts.Namer, codecs: opts.Codecs, offloads: opts.Limits.OffloadBytes > 0, owners: map[string]*owners{}}
	h.hosted, err = activities.New(executor, activities.Options{
		InvokerOptions: opts.Invoker, Namer: opts.Namer, AuditSink: opts.AuditSink, Client: opts.Client,
		DataConverter: converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), opts.Codecs...),
		Dynamic:       opts.Dynamic, NoDynamicActivity: opts.NoDynamicActivity, LeaveUnsealed: opts.LeaveUnsealed,
	})
	if err != nil {
		return nil, err
	}
	h.prepare, err = temporal.NewInterceptor(temporal.Options{
		Catalog: catalog.WithAliases(opts.Invoker.Aliases), Namer: opts.Namer, Limits: opts.Limits, Codecs: opts.Codecs,
	})
	return h, err
}

func (h *host) plugin() (*sdktemporal.SimplePlugin, error) {
	return sdktemporal.NewSimplePlugin(sdktemporal.SimplePluginOptions{
		Name:               "apcore",
		ClientInterceptors: []interceptor.ClientInterceptor{temporal.NewClientInterceptor(h.codecs...)},
		WorkerInterceptors: []interceptor.WorkerInterceptor{h.prepare},
		ConfigureWorker: func(_ context.Context, made sdkworker.PluginConfigureWorkerOptions) error {
			h.ownersOf(made.WorkerInstanceKey).watch(made.WorkerRegistryOptions)
			if h.offloads && made.WorkerOptions.DeadlockDetectionTimeout == 0 {
				made.WorkerOptions.DeadlockDetectionTimeout = offloadedStep
			}
			return nil
		},
		RunContextBefore: func(_ context.Context, run sdktemporal.SimplePluginRunContextBeforeOptions) error {
			return h.register(run)
		},
		RunContextAfter: func(_ context.Context, run sdktemporal.SimplePluginRunContextAfterOptions) {
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.owners, run.InstanceKey)
		},
	})
}

// register registers everything on a worker that starts, or a replayer.
func (h *host) register(run sdktemporal.SimplePluginRunContextBeforeOptions) error {
	if run.WorkflowReplayer {
		registerWorkflows(run.Registry, h.namer, true) // once for each history
		return nil
	}
	names := h.ownersOf(run.InstanceKey)
	err := h.hosted.Register(run.Registry)
	if err == nil {
		registering := &guard{conflict: names.conflict}
		registering.try(registerWorkflows, func() { registerWorkflows(run.Registry, h.namer, false) })
		err = registering.failure()
	}
	if conflict := names.conflict(); conflict != nil {
		return conflict // it says more
	}
	return err
}

func (h *host) ownersOf(instance string) *owners {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.owners[instance] == nil {
		h.owners[instance] = &owners{namer: h.namer, by: map[string]string{}}
	}
	return h.owners[instance]
}

// conflict returns the first name with two owners on any worker.
func (h *host) conflict() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, names := range h.owners {
		if err := names.conflict(); err != nil {
			return err
		}
	}
	return nil
}

type workflowRegistry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
}

func registerWorkflows(registry workflowRegistry, names durable.Namer, again bool) {
	for name, fn := range map[string]any{
		names.ModuleCall(): workflows.ModuleCall, names.TaskRecord(): workflows.TaskRecord,
		names.Task(): workflows.Task, names.TaskReaper(): workflows.TaskReaper,
	} {
		registry.RegisterWorkflowWithOptions(fn, workflow.RegisterOptions{Name: name, DisableAlreadyRegisteredCheck: again})
	}
}

// checkRules finds approval rules that make no sense before anything polls.
func checkRules(executor *apcore.Executor) error {
	for _, id := range executor.Registry().IDs() {
		for _, definition := range executor.Registry().Versions(id) {
			if _, err := durable.RulesOf(definition); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkGate keeps a gate from vanishing because a line of wiring is missing.
func checkGate(executor *apcore.Executor, opts PluginOptions) error {
	gated := executor.HasApprovalHandler() && executor.ApprovalGateWired()
	if gated || opts.AllowMissingApprovalHandler {
		return nil
	}
	var open []string
	for _, id := range executor.Registry().IDs() {
		if executor.NeedsApproval(id) {
			open = append(open, id)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return apcore.NewError(apcore.CodeConfigInvalid, "modules need approval but the executor has no approval handler, or no gate to ask it: %s", strings.Join(open, ", ")).
		WithSuggestion("set apcore.ExecutorOptions.ApprovalHandler, for example to temporal.NewApprovalHandler(), or say AllowMissingApprovalHandler")
}

var _ sdkworker.Plugin = (*sdktemporal.SimplePlugin)(nil)
