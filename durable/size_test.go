package durable_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// Property: the size is the one that encoding/json makes of the text.
func TestEncodedSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("<>&\u2028\u2029\"\\a")))).Draw(t, "text")
		raw, err := apcore.EncodeJSON(map[string]any{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		sent, err := json.Marshal(json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		if got := durable.EncodedSize(raw); got != len(sent) {
			t.Errorf("%d, want %d for %s", got, len(sent), sent)
		}
	})
}

func sized(t *testing.T, limit int, output, data map[string]any) error {
	t.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	module, err := apcore.NewRawFunc(func(ctx context.Context, _ map[string]any) (map[string]any, error) {
		c, _ := apcore.FromContext(ctx)
		for key, value := range data {
			c.Data().Set(key, value)
		}
		return output, nil
	}, apcore.Spec{Description: "Returns", InputSchema: map[string]any{}, OutputSchema: map[string]any{}})
	if err == nil {
		err = registry.Register("shop.big", module, apcore.RegisterOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	invoker, err := durable.NewInvoker(executor, durable.InvokerOptions{MaxOutputBytes: limit})
	if err != nil {
		t.Fatal(err)
	}
	_, err = invoker.Invoke(t.Context(), durable.CallRequest{V: 1, ModuleID: "shop.big", Inputs: []byte(`{}`), Context: []byte(anonymous), CallID: "w/r/1"}, 1)
	return err
}

// Pitfall 22, scenario 58, target 30: what goes back is measured as it is sent,
// one byte below the limit, at it and above it.
func TestOutputLimit(t *testing.T) {
	const limit, room = 1000, 256 << 10
	text := func(size int) map[string]any { return map[string]any{"x": strings.Repeat("y", size-len(`{"x":""}`))} }
	data := func(size int) map[string]any { // the key counts too
		return map[string]any{"k": strings.Repeat("y", size-len(`k""`))}
	}
	for name, test := range map[string]struct {
		output, data map[string]any
		path         string
		size         int
	}{
		"below":              {text(limit - 1), nil, "", 0},
		"at":                 {text(limit), nil, "", 0},
		"above":              {text(limit + 1), nil, "output", limit + 1},
		"grows when sent":    {map[string]any{"x": strings.Repeat("<", limit/6)}, nil, "output", limit/6*6 + 8},
		"context data below": {text(limit), data(room - 1), "", 0},
		"context data at":    {text(limit), data(room), "", 0},
		"context data above": {text(limit), data(room + 1), "output and context data", limit + room + 1},
	} {
		t.Run(name, func(t *testing.T) {
			err := sized(t, limit, test.output, test.data)
			if test.path == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			e := apcore.AsError(err)
			if e == nil || e.Code != durable.CodePayloadTooLarge || e.ModuleID() != "shop.big" ||
				e.Details["path"] != test.path || e.Details["size"] != test.size || e.Details["limit"] == nil {
				t.Errorf("%v, %v", e, e.Details)
			}
		})
	}
}

// Failures stay small, so that no view of a run is spoilt by one, and still name
// the call.
func TestFailuresAreBounded(t *testing.T) {
	long := strings.Repeat("ä", durable.MaxErrorBytes)
	e := apcore.NewError("BIG", "%s", long).WithCause(apcore.NewError("CAUSE", "%s", long)).
		WithDetail("module_id", "a.b").WithDetail("dump", long).WithDetail("path", long)
	wire := (&durable.Failure{Err: e, NotStarted: true}).Map()
	text, err := json.Marshal(wire)
	if err != nil || len(text) > 3*durable.MaxErrorBytes {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	back := durable.FailureFromMap(wire)
	if back.Err.ModuleID() != "a.b" || back.Err.Details["dump"] != nil || back.Err.Details["path"] != nil || back.Err.Details["omitted_bytes"] == nil || !back.NotStarted {
		t.Errorf("details %v", back.Err.Details)
	}
	if !utf8.ValidString(back.Err.Message) || !strings.HasSuffix(back.Err.Message, "…") || len(back.Err.Message) > durable.MaxErrorBytes {
		t.Errorf("message of %d bytes", len(back.Err.Message))
	}
	small := apcore.NewError("SMALL", "short").WithDetail("dump", "x")
	if got := (&durable.Failure{Err: small}).Map()["details"]; got.(map[string]any)["dump"] != "x" {
		t.Errorf("a small error lost details: %v", got)
	}
}

// Scenario 80: with a key, the digest of the arguments cannot be tried out by
// who knows all of them but a card number.
func TestDigestIsKeyed(t *testing.T) {
	digests := map[string]bool{}
	for _, key := range []string{"", "one key", "another key"} {
		registry := apcore.NewRegistry(apcore.RegistryOptions{})
		if err := apcore.Register(registry, "pay.card", func(context.Context, map[string]any) (map[string]any, error) {
			return map[string]any{}, nil
		}, apcore.Spec{Description: "Pays", Annotations: apcore.Annotations{RequiresApproval: true}}); err != nil {
			t.Fatal(err)
		}
		executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{ApprovalHandler: durable.NewApprovalHandler()})
		if err != nil {
			t.Fatal(err)
		}
		invoker, err := durable.NewInvoker(executor, durable.InvokerOptions{SealKey: []byte(key)})
		if err != nil {
			t.Fatal(err)
		}
		result, err := invoker.Invoke(t.Context(), durable.CallRequest{V: 1, ModuleID: "pay.card", Inputs: []byte(`{"card":"4242"}`), Context: []byte(anonymous), CallID: "w/r/1"}, 1)
		if err != nil {
			t.Fatal(err)
		}
		digests[result.Approval.ArgumentsDigest] = true
	}
	if len(digests) != 3 {
		t.Errorf("%d digests under no key and two keys: %v", len(digests), digests)
	}
}
