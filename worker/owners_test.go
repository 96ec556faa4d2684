package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// lazyClient is a client whose server is not there; a start that gets as far as
// polling fails for that.
func lazyClient(t *testing.T) client.Client {
	t.Helper()
	c, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1"})
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

func ownDynamic(context.Context, converter.EncodedValues) (any, error) { return "own", nil }

func ownCharge(context.Context) error { return nil }

type pair struct{}

func (pair) First(context.Context) error  { return nil }
func (pair) Second(context.Context) error { return nil }

// Scenario 65, pitfalls 33 and 34: a name with two owners is a typed error that
// says who they are, before anything polls; never a panic, never last wins.
func TestNamesWithTwoOwners(t *testing.T) {
	const unit = "apcore/call/billing/charge"
	unchecked := activity.RegisterOptions{Name: unit, DisableAlreadyRegisteredCheck: true}
	secondPlugin := func(t *testing.T) sdkworker.Plugin {
		t.Helper()
		plugin, err := worker.NewPlugin(billing(t, "billing.charge", new(atomic.Int64)), worker.PluginOptions{})
		must(t, err)
		return plugin
	}
	for _, test := range []struct {
		name     string
		opts     worker.Options
		plugins  func(t *testing.T) sdkworker.Plugin
		register func(r sdkworker.Registry)
		want     []string
	}{
		{name: "an activity under a module's name", register: func(r sdkworker.Registry) {
			r.RegisterActivityWithOptions(ownCharge, activity.RegisterOptions{Name: unit})
		}, want: []string{unit, "ownCharge", "module billing.charge"}},
		{name: "and unchecked", register: func(r sdkworker.Registry) { r.RegisterActivityWithOptions(ownCharge, unchecked) },
			want: []string{unit, "ownCharge", "module billing.charge"}},
		{name: "an activity twice", register: func(r sdkworker.Registry) {
			r.RegisterActivity(ownCharge)
			r.RegisterActivity(ownCharge)
		}, want: []string{`activity "ownCharge"`}},
		{name: "a method of the same name", register: func(r sdkworker.Registry) {
			r.RegisterActivity(&pair{})
			r.RegisterActivityWithOptions(ownCharge, activity.RegisterOptions{Name: "Second"})
		}, want: []string{`activity "Second"`, "pair", "ownCharge"}},
		{name: "a dynamic activity of the application", register: func(r sdkworker.Registry) {
			r.RegisterDynamicActivity(ownDynamic, activity.DynamicRegisterOptions{})
		}, want: []string{"the dynamic activity", "ownDynamic", "Options.Dynamic"}},
		{name: "a ready-made workflow's name", register: func(r sdkworker.Registry) {
			r.RegisterWorkflowWithOptions(ChargeTwice, workflow.RegisterOptions{Name: "apcore/module-call"})
		}, want: []string{`workflow "apcore/module-call"`, "ChargeTwice", "ModuleCall"}},
		{name: "two registries", plugins: secondPlugin, want: []string{unit, "module billing.charge"}},
		{name: "a name of Temporal's", register: func(r sdkworker.Registry) {
			r.RegisterWorkflowWithOptions(ChargeTwice, workflow.RegisterOptions{Name: "__temporal_charge"})
		}, want: []string{"ChargeTwice", "__temporal_"}},
		{name: "no workflow at all", register: func(r sdkworker.Registry) { r.RegisterWorkflow(func() {}) }, want: []string{"cannot be registered"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.plugins != nil {
				test.opts.SDK.Plugins = []sdkworker.Plugin{test.plugins(t)}
			}
			w, err := worker.New(lazyClient(t), "queue", billing(t, "billing.charge", new(atomic.Int64)), test.opts)
			must(t, err)
			if test.register != nil {
				test.register(w.Registry())
			}
			err = w.Start()
			if !errors.Is(err, durable.CodeNameTaken) {
				t.Fatalf("error %v", err)
			}
			for _, part := range test.want {
				if text := err.Error() + apcore.AsError(err).Suggestion; !strings.Contains(text, part) {
					t.Errorf("the error does not name %s: %s", part, text)
				}
			}
		})
	}
}

// An application's dynamic activity has its place, and its own names do no harm.
func TestNamesOfAnApplication(t *testing.T) {
	for name, opts := range map[string]worker.PluginOptions{
		"handed over": {Dynamic: ownDynamic}, "instead of ours": {NoDynamicActivity: true},
	} {
		w, err := worker.New(lazyClient(t), "queue", billing(t, "billing.charge", new(atomic.Int64)), worker.Options{PluginOptions: opts})
		must(t, err)
		w.Registry().RegisterActivity(ownCharge)
		w.Registry().RegisterWorkflow(ChargeTwice)
		if opts.NoDynamicActivity {
			w.Registry().RegisterDynamicActivity(ownDynamic, activity.DynamicRegisterOptions{})
		}
		if err := w.Start(); err == nil || errors.Is(err, durable.CodeNameTaken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := worker.NewPlugin(billing(t, "billing.charge", new(atomic.Int64)), worker.PluginOptions{Dynamic: ownDynamic, NoDynamicActivity: true})
	if !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("given and turned off: %v", err)
	}
}

// Scenario 65: what aliases and prefixes may not be, each said at construction.
func TestBadNamesAreRefused(t *testing.T) {
	for name, opts := range map[string]worker.PluginOptions{
		"no id":          {Invoker: durable.InvokerOptions{Aliases: durable.Aliases{"Billing": "billing.charge"}}},
		"own id":         {Invoker: durable.InvokerOptions{Aliases: durable.Aliases{"billing.charge": "billing.charge"}}},
		"another module": {Invoker: durable.InvokerOptions{Aliases: durable.Aliases{"billing.charge": "billing.other"}}},
		"chain":          {Invoker: durable.InvokerOptions{Aliases: durable.Aliases{"a.one": "a.two", "a.two": "billing.charge"}}},
		"no target":      {Invoker: durable.InvokerOptions{Aliases: durable.Aliases{"a.one": "a.two"}}},
		"reserved":       {Namer: durable.Namer{Prefix: "__temporal"}},
		"dot":            {Namer: durable.Namer{Prefix: "acme.com"}},
	} {
		_, err := worker.NewPlugin(billing(t, "billing.charge", new(atomic.Int64)), opts)
		if !errors.Is(err, apcore.CodeConfigInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		for alias, target := range opts.Invoker.Aliases {
			if len(opts.Invoker.Aliases) == 1 && (!strings.Contains(err.Error(), alias) || !strings.Contains(err.Error(), target)) {
				t.Errorf("%s: %v does not name both", name, err)
			}
		}
	}
}

// Target 4: while a hundred goroutines register, a worker is made: what it
// serves is what was registered without an error, and the rest heard why.
func TestRegistrationRacesStart(t *testing.T) {
	executor := billing(t, "billing.charge", new(atomic.Int64))
	var group sync.WaitGroup
	errs := make([]error, 100)
	begin := make(chan struct{})
	for i := range errs {
		group.Go(func() {
			<-begin
			errs[i] = apcore.Register(executor.Registry(), fmt.Sprintf("late.m%d", i), func(context.Context, struct{}) (struct{}, error) {
				return struct{}{}, nil
			}, apcore.Spec{Description: "Is late"})
		})
	}
	close(begin)
	plugin, err := worker.NewPlugin(executor, worker.PluginOptions{})
	must(t, err)
	served := map[string]bool{}
	names := recordNames(t, lazyClient(t), plugin)
	group.Wait()
	for _, name := range names {
		served[name] = true
	}
	var namer durable.Namer
	for i, err := range errs {
		name := namer.Unit(durable.OperationCall, fmt.Sprintf("late.m%d", i))
		if err != nil && !errors.Is(err, apcore.CodeInvalidInput) {
			t.Errorf("module %d: %v", i, err)
		}
		if served[name] != (err == nil) {
			t.Errorf("module %d: served %t, registered with %v", i, served[name], err)
		}
	}
}

// observer is a plugin that lists what is registered.
type observer struct {
	sdkworker.PluginBase
	names []string
}

func (*observer) Name() string { return "observer" }

func (o *observer) ConfigureWorker(_ context.Context, opts sdkworker.PluginConfigureWorkerOptions) error {
	opts.WorkerRegistryOptions.OnRegisterActivity = func(_ any, options activity.RegisterOptions) {
		o.names = append(o.names, options.Name)
	}
	return nil
}

func recordNames(t *testing.T, c client.Client, plugin sdkworker.Plugin) []string {
	t.Helper()
	seen := &observer{}
	w := sdkworker.New(c, "queue", sdkworker.Options{Plugins: []sdkworker.Plugin{seen, plugin}})
	if err := w.Start(); err == nil {
		t.Fatal("a worker started without a server")
	}
	return seen.names
}

// A registry that is left open serves modules that come later.
func TestUnsealedRegistry(t *testing.T) {
	executor := billing(t, "billing.charge", new(atomic.Int64))
	plugin, err := worker.NewPlugin(executor, worker.PluginOptions{LeaveUnsealed: true})
	must(t, err)
	recordNames(t, lazyClient(t), plugin)
	must(t, apcore.Register(executor.Registry(), "late.module", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }, apcore.Spec{Description: "Is late"}))
}

// Scenario 65: an executor serves again in a new worker; the old one says so.
func TestWorkerStartsAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, Call)
	executor := billing(t, "billing.charge", new(atomic.Int64))
	for range 2 {
		w, err := worker.New(s.client, s.queue+"-again", executor, worker.Options{})
		must(t, err)
		must(t, w.Start())
		w.Stop()
		w.Stop()
		if err := w.Start(); !errors.Is(err, apcore.CodeInvalidInput) || !strings.Contains(err.Error(), "new one") {
			t.Errorf("start after stop: %v", err)
		}
	}
}
