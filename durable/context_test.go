package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

const anonymous = `{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","call_chain":[],"identity":null}`

// Target 32: a field that is missing or has the wrong type is named, never taken
// for its default; one that is unknown is left alone.
func TestCheckContext(t *testing.T) {
	for name, test := range map[string]struct {
		wire string
		want []string
	}{
		"anonymous":          {anonymous, nil},
		"full":               {`{"_context_version":1,"trace_id":"t","caller_id":"a.b","call_chain":["a.b"],"identity":{"id":"m","type":"user","roles":["r"],"attrs":{}},"data":{"k":1},"signature":"s"}`, nil},
		"a newer version":    {`{"_context_version":9,"trace_id":"t","caller_id":null,"call_chain":[],"identity":null,"tenant":{"id":7}}`, nil},
		"nothing":            {`{}`, []string{"trace_id", "call_chain", "identity is missing"}},
		"empty trace":        {`{"trace_id":"","call_chain":[],"identity":null}`, []string{"trace_id"}},
		"chain of numbers":   {`{"trace_id":"t","call_chain":[1],"identity":null}`, []string{"call_chain"}},
		"identity as a text": {`{"trace_id":"t","call_chain":[],"identity":"maria"}`, []string{"identity must be"}},
		"identity of nobody": {`{"trace_id":"t","call_chain":[],"identity":{"roles":"admin"}}`, []string{"identity.id", "identity.type", "identity.roles"}},
		"caller as a number": {`{"trace_id":"t","call_chain":[],"identity":null,"caller_id":7}`, []string{"caller_id"}},
		"data as a list":     {`{"trace_id":"t","call_chain":[],"identity":null,"data":[]}`, []string{"data"}},
	} {
		t.Run(name, func(t *testing.T) {
			wire, err := apcore.DecodeObject([]byte(test.wire))
			if err != nil {
				t.Fatal(err)
			}
			err = durable.CheckContext(wire)
			if test.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if apcore.CodeOf(err) != apcore.CodeInvalidInput {
				t.Fatalf("%v, want GENERAL_INVALID_INPUT", err)
			}
			for _, field := range test.want {
				if !strings.Contains(err.Error(), field) {
					t.Errorf("%v does not name %s", err, field)
				}
			}
		})
	}
}

// Scenario 84: a verifier sees the claim as it came, and what it refuses never
// reaches the module; a key server that is away is no refusal.
func TestVerifyContext(t *testing.T) {
	for name, test := range map[string]struct {
		verdict error
		want    apcore.Code
		retry   bool
		effects int
	}{
		"accepted":          {nil, "", false, 1},
		"refused":           {errors.New("no signature"), apcore.CodeACLDenied, false, 0},
		"cannot tell now":   {apcore.NewError("KEYS_AWAY", "try later").WithRetryable(new(true)), "KEYS_AWAY", true, 0},
		"refused with code": {apcore.NewError("KEYS_BAD", "never").WithRetryable(new(false)), apcore.CodeACLDenied, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			effects := 0
			registry := apcore.NewRegistry(apcore.RegistryOptions{})
			if err := apcore.Register(registry, "shop.act", func(context.Context, map[string]any) (map[string]any, error) {
				effects++
				return map[string]any{}, nil
			}, apcore.Spec{Description: "Acts"}); err != nil {
				t.Fatal(err)
			}
			executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{})
			if err != nil {
				t.Fatal(err)
			}
			wire := json.RawMessage(`{"trace_id":"t","call_chain":["a.b"],"identity":{"id":"m","type":"user"},"signature":"s"}`)
			var seen durable.Claim
			invoker, err := durable.NewInvoker(executor, durable.InvokerOptions{VerifyContext: func(_ context.Context, claim durable.Claim) error {
				seen = claim
				return test.verdict
			}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = invoker.Invoke(t.Context(), durable.CallRequest{V: 1, ModuleID: "shop.act", Inputs: []byte(`{}`), Context: wire, CallID: "w/r/1"}, 1)
			if apcore.CodeOf(err) != test.want || effects != test.effects {
				t.Errorf("%v after %d effects, want %q after %d", err, effects, test.want, test.effects)
			}
			var failure *durable.Failure
			if err != nil && (!errors.As(err, &failure) || failure.Retry != test.retry || !failure.NotStarted) {
				t.Errorf("failure %+v", failure)
			}
			if seen.ModuleID != "shop.act" || seen.CallID != "w/r/1" || seen.Context.Identity().ID() != "m" {
				t.Errorf("claim %+v", seen)
			}
			if diff := cmp.Diff(string(wire), string(seen.Wire)); diff != "" {
				t.Errorf("wire (-want +got):\n%s", diff)
			}
		})
	}
}
