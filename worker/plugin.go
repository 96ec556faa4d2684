package worker

import (
	"context"
	"strings"

	"go.temporal.io/sdk/client"
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
	// Invoker configures the activities.
	Invoker durable.InvokerOptions
	// MaxInputBytes bounds the inputs of one call; zero means 1 MiB.
	MaxInputBytes int
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
// prepares workflows. It seals the executor's registry.
//
// It fails with CONFIG_INVALID when a module needs approval and there is no
// handler (a nil pointer counts as none), or when a module's x-temporal settings or
// x-approval rules make no sense, and with the errors of the parts.
func NewPlugin(executor *apcore.Executor, opts PluginOptions) (*sdktemporal.SimplePlugin, error) {
	if executor == nil {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "a worker needs an executor")
	}
	executor.Registry().Seal("its worker was made")
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
	hosted, err := activities.New(executor, activities.Options{InvokerOptions: opts.Invoker, Namer: opts.Namer, AuditSink: opts.AuditSink, Client: opts.Client})
	if err != nil {
		return nil, err
	}
	prepare, err := temporal.NewInterceptor(temporal.Options{Catalog: catalog, Namer: opts.Namer, MaxInputBytes: opts.MaxInputBytes})
	if err != nil {
		return nil, err
	}
	return sdktemporal.NewSimplePlugin(sdktemporal.SimplePluginOptions{
		Name:               "apcore",
		ClientInterceptors: []interceptor.ClientInterceptor{temporal.NewClientInterceptor()},
		WorkerInterceptors: []interceptor.WorkerInterceptor{prepare},
		RunContextBefore: func(_ context.Context, run sdktemporal.SimplePluginRunContextBeforeOptions) error {
			registerWorkflows(run.Registry, opts.Namer)
			if !run.WorkflowReplayer {
				hosted.Register(run.Registry)
			}
			return nil
		},
	})
}

type workflowRegistry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
}

func registerWorkflows(registry workflowRegistry, names durable.Namer) {
	registry.RegisterWorkflowWithOptions(workflows.ModuleCall, workflow.RegisterOptions{Name: names.ModuleCall()})
}

// checkRules finds approval rules that make no sense before anything polls.
func checkRules(executor *apcore.Executor) error {
	for _, id := range executor.Registry().IDs() {
		if definition := executor.Registry().Definition(id); definition != nil {
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
