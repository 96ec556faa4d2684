package activities_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	sdktestsuite "go.temporal.io/sdk/testsuite"

	"github.com/apcore-temporal/apcore-temporal/activities"
	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newExecutor(t *testing.T, ids ...string) *apcore.Executor {
	t.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	for _, id := range ids {
		must(t, apcore.Register(registry, id, func(context.Context, map[string]any) (map[string]any, error) {
			return map[string]any{"ran": id}, nil
		}, apcore.Spec{Description: "Says its id"}))
	}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	return executor
}

// recorder notes what is registered.
type recorder struct {
	names   []string
	dynamic int
}

func (r *recorder) RegisterActivityWithOptions(_ any, options activity.RegisterOptions) {
	r.names = append(r.names, options.Name)
}

func (r *recorder) RegisterDynamicActivity(any, activity.DynamicRegisterOptions) { r.dynamic++ }

// One activity for each module, under names that depend on nothing in Go; the
// registry is closed from then on.
func TestRegister(t *testing.T) {
	executor := newExecutor(t, "payments.refund", "notify.email")
	hosted, err := activities.New(executor, activities.Options{})
	must(t, err)
	r := &recorder{}
	must(t, hosted.Register(r))
	want := []string{"apcore/audit", "apcore/call/notify/email", "apcore/call/payments/refund", "apcore/catalog", "apcore/preview/notify/email", "apcore/preview/payments/refund", "apcore/task-sweep"}
	if slices.Sort(r.names); !slices.Equal(r.names, want) || r.dynamic != 1 {
		t.Errorf("registered %q and %d dynamic, want %q and one", r.names, r.dynamic, want)
	}
	err = apcore.Register(executor.Registry(), "too.late", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }, apcore.Spec{Description: "Is late"})
	if !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("a late module: %v", err)
	}
}

func environment(t *testing.T, ids ...string) *sdktestsuite.TestActivityEnvironment {
	t.Helper()
	hosted, err := activities.New(newExecutor(t, ids...), activities.Options{})
	must(t, err)
	var suite sdktestsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	must(t, hosted.Register(env))
	return env
}

func TestCatalog(t *testing.T) {
	value, err := environment(t, "b.two", "a.one").ExecuteActivity("apcore/catalog")
	must(t, err)
	var refs []apcore.ModuleRef
	must(t, value.Get(&refs))
	if len(refs) != 2 || refs[0].ID != "a.one" || refs[1].ID != "b.two" || refs[0].SchemaHash == "" {
		t.Errorf("catalog %+v", refs)
	}
}

// What nobody registered is answered for: an unknown module as one that another
// worker may know, anything else as Temporal itself would.
func TestUnknownActivity(t *testing.T) {
	env := environment(t, "a.one")
	request := durable.CallRequest{V: 1, ModuleID: "no.such", Inputs: []byte(`{}`), Context: []byte(`{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","call_chain":[],"identity":null}`), CallID: "w/r/1", RequestedAt: time.Unix(0, 0)}
	_, err := env.ExecuteActivity("apcore/call/no/such", request)
	if e := temporal.AsError(err); e == nil || e.Code != apcore.CodeModuleNotFound {
		t.Errorf("an unknown module: %v", err)
	}
	_, err = env.ExecuteActivity("apcore/call/no/such", 7)
	if e := temporal.AsError(err); e == nil || e.Code != apcore.CodeInvalidInput {
		t.Errorf("no request: %v", err)
	}
	_, err = env.ExecuteActivity("SomethingElse")
	if e := temporal.AsError(err); e == nil || e.Code != "ActivityNotRegisteredError" {
		t.Errorf("something else: %v", err)
	}
}
