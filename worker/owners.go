package worker

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"

	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/sdk/activity"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// owners notes who registered which name on one worker, so that a name with two
// owners is an error that says who they are. The SDK panics or, when told not to
// check, lets the last one win.
type owners struct {
	namer durable.Namer
	mu    sync.Mutex
	by    map[string]string
	err   error
}

// watch hooks into the registrations of a worker that is being made.
func (o *owners) watch(callbacks *sdkworker.PluginConfigureWorkerRegistryOptions) {
	callbacks.OnRegisterActivity = before(func(fn any, options activity.RegisterOptions) {
		for _, name := range registeredNames(fn, options.Name) {
			o.note("activity", name, fn)
		}
	}, callbacks.OnRegisterActivity)
	callbacks.OnRegisterDynamicActivity = before(func(fn any, _ activity.DynamicRegisterOptions) {
		o.note("the dynamic activity", "", fn)
	}, callbacks.OnRegisterDynamicActivity)
	callbacks.OnRegisterWorkflow = before(func(fn any, options workflow.RegisterOptions) {
		for _, name := range registeredNames(fn, options.Name) {
			o.note("workflow", name, fn)
		}
	}, callbacks.OnRegisterWorkflow)
}

// before runs a hook and then the one that was there.
func before[Options any](hook, then func(any, Options)) func(any, Options) {
	return func(fn any, options Options) {
		hook(fn, options)
		if then != nil {
			then(fn, options)
		}
	}
}

func (o *owners) note(kind, name string, fn any) {
	what := kind
	if name != "" {
		what += fmt.Sprintf(" %q", name)
	}
	owner := functionName(fn)
	if _, moduleID, ours := o.namer.ParseUnit(name); ours {
		owner = "module " + moduleID + " by " + owner
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if first, taken := o.by[what]; taken && o.err == nil {
		if first == owner {
			owner = "the same again, from a second plugin or executor"
		}
		o.err = apcore.NewError(durable.CodeNameTaken, "%s has two owners on this worker: %s, and %s", what, first, owner).
			WithRetryable(new(false)).WithDetail("name", what).WithDetail("owners", []string{first, owner}).
			WithSuggestion("rename one; one worker hosts one executor, and its dynamic activity takes that of an application as Options.Dynamic")
	}
	o.by[what] = owner
}

// conflict returns the first name that had two owners.
func (o *owners) conflict() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

func functionName(fn any) string {
	if value := reflect.ValueOf(fn); value.Kind() == reflect.Func {
		return strings.TrimSuffix(runtime.FuncForPC(value.Pointer()).Name(), "-fm")
	}
	return fmt.Sprintf("%T", fn)
}

// registeredNames are the names that the SDK gives what is registered.
func registeredNames(fn any, name string) []string {
	value := reflect.ValueOf(fn)
	if value.Kind() == reflect.Pointer && value.Elem().Kind() == reflect.Struct && value.NumMethod() > 0 {
		var names []string
		for i := range value.NumMethod() {
			names = append(names, name+value.Type().Method(i).Name)
		}
		return names
	}
	if name != "" {
		return []string{name}
	}
	full := functionName(fn)
	return []string{full[strings.LastIndex(full, ".")+1:]}
}

// guard is a worker's registry whose panics wait for Start to report them.
type guard struct {
	sdk      sdkworker.Registry
	conflict func() error
	mu       sync.Mutex
	err      error
}

var _ sdkworker.Registry = (*guard)(nil)

func (g *guard) RegisterWorkflow(w any) { g.try(w, func() { g.sdk.RegisterWorkflow(w) }) }

func (g *guard) RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions) {
	g.try(w, func() { g.sdk.RegisterWorkflowWithOptions(w, options) })
}

func (g *guard) RegisterDynamicWorkflow(w any, options workflow.DynamicRegisterOptions) {
	g.try(w, func() { g.sdk.RegisterDynamicWorkflow(w, options) })
}

func (g *guard) RegisterActivity(a any) { g.try(a, func() { g.sdk.RegisterActivity(a) }) }

func (g *guard) RegisterActivityWithOptions(a any, options activity.RegisterOptions) {
	g.try(a, func() { g.sdk.RegisterActivityWithOptions(a, options) })
}

func (g *guard) RegisterDynamicActivity(a any, options activity.DynamicRegisterOptions) {
	g.try(a, func() { g.sdk.RegisterDynamicActivity(a, options) })
}

func (g *guard) RegisterNexusService(service *nexus.Service) {
	g.try(service, func() { g.sdk.RegisterNexusService(service) })
}

func (g *guard) try(fn any, register func()) {
	defer func() {
		if cause := recover(); cause != nil {
			g.fail(apcore.NewError(durable.CodeNameTaken, "%s cannot be registered on this worker: %s", functionName(fn), fmt.Sprint(cause)).WithRetryable(new(false)))
		}
	}()
	register()
}

func (g *guard) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = err
	}
}

// failure returns the first registration that failed, or had two owners.
func (g *guard) failure() error {
	if err := g.conflict(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}
