package activities_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	sdktestsuite "go.temporal.io/sdk/testsuite"

	"github.com/apcore-temporal/apcore-temporal/activities"
	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// Scenario 64: a module's old ids have activities beside its own.
func TestAliasesAreRegistered(t *testing.T) {
	hosted, err := activities.New(newExecutor(t, "payments.charge"), activities.Options{InvokerOptions: durable.InvokerOptions{
		Aliases: durable.Aliases{"billing.charge": "payments.charge", "acme.charge": "payments.charge"},
	}})
	must(t, err)
	r := &recorder{}
	must(t, hosted.Register(r))
	if got := strings.Join(r.names, " "); got != "apcore/call/payments/charge apcore/preview/payments/charge apcore/call/acme/charge apcore/preview/acme/charge apcore/call/billing/charge apcore/preview/billing/charge apcore/catalog apcore/audit apcore/task-sweep" {
		t.Errorf("registered %s", got)
	}
	var suite sdktestsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	must(t, hosted.Register(env))
	value, err := env.ExecuteActivity("apcore/call/billing/charge", durable.CallRequest{
		V: 1, ModuleID: "billing.charge", CallID: "w/r/1", Inputs: []byte(`{}`),
		Context: []byte(`{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","call_chain":[],"identity":null}`),
	})
	must(t, err)
	var result durable.CallResult
	must(t, value.Get(&result))
	if string(result.Output) != `{"ran":"payments.charge"}` || result.Module.ID != "payments.charge" {
		t.Errorf("result %+v", result)
	}
}

// An application's dynamic activity gets what is not of this package, and
// nothing else.
func TestDynamicOfAnApplication(t *testing.T) {
	for _, test := range []struct {
		name string
		opts activities.Options
		want int
	}{
		{"handed over", activities.Options{Dynamic: func(ctx context.Context, _ converter.EncodedValues) (any, error) {
			return activity.GetInfo(ctx).ActivityType.Name, nil
		}}, 1},
		{"left out", activities.Options{NoDynamicActivity: true}, 0},
	} {
		hosted, err := activities.New(newExecutor(t, "a.one"), test.opts)
		must(t, err)
		r := &recorder{}
		must(t, hosted.Register(r))
		if r.dynamic != test.want {
			t.Errorf("%s: %d dynamic activities", test.name, r.dynamic)
		}
		if test.want == 0 {
			continue
		}
		var suite sdktestsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		must(t, hosted.Register(env))
		value, err := env.ExecuteActivity("acme.own")
		must(t, err)
		var name string
		if must(t, value.Get(&name)); name != "acme.own" {
			t.Errorf("answered %q", name)
		}
		_, err = env.ExecuteActivity("apcore/call/no/such", 7)
		if e := temporal.AsError(err); e == nil || e.Code != apcore.CodeInvalidInput {
			t.Errorf("a call of an unknown module went to the application: %v", err)
		}
	}
}

// Scenario 65: what is taken is an error that says by whom it is wanted, no panic.
func TestRegisterTwice(t *testing.T) {
	var suite sdktestsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	for i, want := range []bool{false, true} {
		hosted, err := activities.New(newExecutor(t, "a.one"), activities.Options{})
		must(t, err)
		err = hosted.Register(env)
		if errors.Is(err, durable.CodeNameTaken) != want || (err != nil) != want {
			t.Fatalf("registration %d: %v", i+1, err)
		}
		if want && (!strings.Contains(err.Error(), "the dynamic activity of unknown modules")) {
			t.Errorf("the error names no owner: %v", err)
		}
	}
}
