package durable_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// roundTripSeeds are values that other systems changed on the way.
var roundTripSeeds = []string{
	`{}`, `{"n":9007199254740993}`, `{"n":-9223372036854775808}`, `{"n":18446744073709551615}`, `{"n":12345678901234567890.12}`,
	`{"n":1e400}`, `{"n":-0}`, `{"n":1.0}`, `{"n":0.1}`, `{"n":1E-7}`, `{"nil":null,"empty":[],"none":{},"text":""}`, `{"bytes":"AAECAwQF/w=="}`,
	`{"text":"<script>&\u2028\u2029 \u0000 😀 ä \ud83d\ude00 \"\\"}`, `{"deep":[[[[{"a":[{}]}]]]]}`, `{"ns":3600000000001}`, `{"":"empty key","a/b":1,"a.b":2,"ä":3}`,
	`{"when":"2026-02-29T12:00:00.123456789Z"}`, `{"list":[1,"1",true,null,1.50]}`,
}

// echoInvoker hosts a module that returns its inputs and notes them in the
// context's data.
func echoInvoker(t testing.TB) *durable.Invoker {
	t.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	module, err := apcore.NewRawFunc(func(ctx context.Context, in map[string]any) (map[string]any, error) {
		c, _ := apcore.FromContext(ctx)
		c.Data().Set("seen", in)
		return map[string]any{"value": in}, nil
	}, apcore.Spec{Description: "Echoes", Annotations: apcore.Annotations{Readonly: true}, InputSchema: map[string]any{}, OutputSchema: map[string]any{}})
	if err == nil {
		err = registry.Register("test.echo", module, apcore.RegisterOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	invoker, err := durable.NewInvoker(executor, durable.InvokerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return invoker
}

// Pitfall 39, scenario 52: whatever JSON object goes into a call comes out of it
// with every digit and character, through the wire forms of request and result,
// as output and as context data; what cannot is refused, never changed.
func FuzzRoundTrip(f *testing.F) {
	for _, seed := range roundTripSeeds {
		f.Add([]byte(seed))
	}
	invoker := echoInvoker(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		object, err := apcore.DecodeObject(text)
		if err != nil {
			t.Skip("no JSON object")
		}
		want, err := apcore.EncodeJSON(object)
		if err != nil {
			t.Fatalf("an object that was read cannot be written: %v", err)
		}
		request := durable.CallRequest{V: durable.WireVersion, ModuleID: "test.echo", Inputs: want, Context: []byte(anonymous), CallID: "w/r/1"}
		result, err := invoker.Invoke(t.Context(), resent(t, request), 1)
		if err != nil {
			if code := apcore.CodeOf(err); code != durable.CodeTokenRefused && code != apcore.CodeInvalidInput && code != durable.CodePayloadTooLarge {
				t.Fatalf("%s: %v", want, err)
			}
			return
		}
		back := resent(t, *result)
		var output struct{ Value json.RawMessage }
		if err := json.Unmarshal(back.Output, &output); err != nil {
			t.Fatal(err)
		}
		if got := normal(t, output.Value); got != string(want) {
			t.Errorf("output %s, want %s", got, want)
		}
		if got := normal(t, back.Data["seen"]); got != string(want) {
			t.Errorf("context data %s, want %s", got, want)
		}
	})
}

// resent is a value as it is after encoding/json has carried it, as engines do.
func resent[T any](t *testing.T, value T) T {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var back T
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// normal undoes the escapes of encoding/json.
func normal(t *testing.T, text []byte) string {
	t.Helper()
	object, err := apcore.DecodeObject(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	written, err := apcore.EncodeJSON(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}
