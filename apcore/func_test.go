package apcore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

type color string

func (color) Enum() []string { return []string{"red", "green"} }

type everything struct {
	N     int64     `json:"n"`
	U     uint64    `json:"u,omitempty"`
	Small int8      `json:"small,omitempty"`
	Color color     `json:"color,omitempty"`
	At    time.Time `json:"at,omitzero"`
	ID    uuid.UUID `json:"id,omitzero"`
	P     *int      `json:"p"`
	Bytes []byte    `json:"bytes,omitempty"`
	Any   any       `json:"any,omitempty"`
	F     float64   `json:"f,omitempty"`
}

// TestTypedRoundTrip sends inputs through a typed echo.
func TestTypedRoundTrip(t *testing.T) {
	tests := []struct {
		name   string
		inputs obj
		want   string
	}{
		{"big integer", obj{"n": int64(9007199254740993)}, `{"n":9007199254740993,"p":null}`},
		{"max", obj{"n": int64(math.MinInt64), "u": uint64(math.MaxUint64)}, `{"n":-9223372036854775808,"p":null,"u":18446744073709551615}`},
		{"json.Number", obj{"n": json.Number("9007199254740993")}, `{"n":9007199254740993,"p":null}`},
		{"integral float", obj{"n": 4.0}, `{"n":4,"p":null}`},
		{"integral text", obj{"n": json.Number("4.0"), "p": json.Number("1e2")}, `{"n":4,"p":100}`},
		{"big beside integral", obj{"n": json.Number("4.0"), "u": json.Number("18446744073709551615"), "any": obj{"x": json.Number("9007199254740993")}}, `{"any":{"x":9007199254740993},"n":4,"p":null,"u":18446744073709551615}`},
		{"enum", obj{"n": 1, "color": "red"}, `{"color":"red","n":1,"p":null}`},
		{"time", obj{"n": 1, "at": "2024-02-29T12:00:00.5Z"}, `{"at":"2024-02-29T12:00:00.5Z","n":1,"p":null}`},
		{"go time", obj{"n": 1, "at": time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)}, `{"at":"2024-02-29T00:00:00Z","n":1,"p":null}`},
		{"uuid", obj{"n": 1, "id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}, `{"id":"6ba7b810-9dad-11d1-80b4-00c04fd430c8","n":1,"p":null}`},
		{"pointer", obj{"n": 1, "p": 2}, `{"n":1,"p":2}`},
		{"null pointer", obj{"n": 1, "p": nil}, `{"n":1,"p":null}`},
		{"bytes", obj{"n": 1, "bytes": []byte{0, 255}}, `{"bytes":"AP8=","n":1,"p":null}`},
	}
	h := newHost(t, apcore.ExecutorOptions{})
	err := apcore.Register(h.registry, "echo", func(_ context.Context, in everything) (everything, error) { return in, nil }, apcore.Spec{Description: "Echoes"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			outcome, err := h.call("echo", test.inputs, nil)
			if err != nil {
				t.Fatalf("%v %v", err, apcore.AsError(err).Details)
			}
			got, err := apcore.EncodeJSON(outcome.Output)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Part is embedded below.
type Part struct {
	Deep int8 `json:"deep"`
}

type nested struct {
	Part
	List []struct {
		N int8 `json:"n"`
	} `json:"list"`
	Sub struct {
		At time.Time `json:"at"`
	} `json:"sub"`
}

// TestDecodeFailure: a schema that allows more than the Go type leads to an item
// like those of validation, without the value; the function does not run.
func TestDecodeFailure(t *testing.T) {
	tests := []struct {
		name   string
		inputs obj
		path   string
	}{
		{"too big", obj{"sub": obj{}, "deep": 31337}, "/deep"},
		{"fraction", obj{"deep": 31337.5}, "/deep"},
		{"text", obj{"deep": "31337"}, "/deep"},
		{"huge", obj{"deep": json.Number("31337e100")}, "/deep"},
		{"in a list", obj{"list": []any{obj{"n": 1}, obj{"n": 31337}}}, "/list"},
		{"list", obj{"list": "31337"}, "/list"},
		{"unreadable text", obj{"sub": obj{"at": "31337"}}, ""},
	}
	h := newHost(t, apcore.ExecutorOptions{})
	err := apcore.Register(h.registry, "m", func(context.Context, nested) (obj, error) {
		h.effects.add("ran")
		return obj{}, nil
	}, apcore.Spec{Description: "Decodes", InputSchema: obj{}, OutputSchema: obj{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := h.call("m", test.inputs, nil)
			h.wants(err, apcore.CodeSchemaValidation, 0)
			e := apcore.AsError(err)
			items, _ := e.Details["errors"].([]any)
			if len(items) != 1 {
				t.Fatalf("details %v", e.Details)
			}
			item, _ := items[0].(obj)
			if item["path"] != test.path || item["keyword"] != "type" || item["message"] == "" || len(item) != 3 {
				t.Errorf("item %v, want path %q", item, test.path)
			}
			if text := fmt.Sprint(e.Map()); strings.Contains(text, "31337") {
				t.Errorf("the value stands in %s", text)
			}
		})
	}
}

// TestResultIsWrapped: an output that is no object arrives under "result", and
// its schema says so.
func TestResultIsWrapped(t *testing.T) {
	h := newHost(t, apcore.ExecutorOptions{})
	spec := apcore.Spec{Description: "Returns"}
	register := func(id string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
	}
	type in = struct{}
	register("text", apcore.Register(h.registry, "text", func(context.Context, in) (string, error) { return "x", nil }, spec))
	register("int", apcore.Register(h.registry, "int", func(context.Context, in) (int64, error) { return 9007199254740993, nil }, spec))
	register("list", apcore.Register(h.registry, "list", func(context.Context, in) ([]string, error) { return []string{"a"}, nil }, spec))
	register("time", apcore.Register(h.registry, "time", func(context.Context, in) (time.Time, error) { return time.Unix(0, 0).UTC(), nil }, spec))
	register("uuid", apcore.Register(h.registry, "uuid", func(context.Context, in) (uuid.UUID, error) { return uuid.Nil, nil }, spec))
	register("any", apcore.Register(h.registry, "any", func(context.Context, in) (any, error) { return obj{"a": 1}, nil }, spec))
	register("pointer", apcore.Register(h.registry, "pointer", func(context.Context, in) (*int, error) { return new(3), nil }, spec))
	register("object", apcore.Register(h.registry, "object", func(context.Context, in) (obj, error) { return obj{"a": "b"}, nil }, spec))
	register("nothing", apcore.Register(h.registry, "nothing", func(context.Context, in) (obj, error) { return nil, nil }, spec))
	open := spec
	open.OutputSchema = obj{}
	register("address", apcore.Register(h.registry, "address", func(context.Context, in) (netip.Addr, error) { return netip.MustParseAddr("::1"), nil }, open))
	register("bigint", apcore.Register(h.registry, "bigint", func(context.Context, in) (*big.Int, error) { return big.NewInt(5), nil }, open))
	want := map[string]string{
		"text": `{"result":"x"}`, "int": `{"result":9007199254740993}`, "list": `{"result":["a"]}`, "time": `{"result":"1970-01-01T00:00:00Z"}`,
		"uuid": `{"result":"00000000-0000-0000-0000-000000000000"}`, "any": `{"result":{"a":1}}`, "pointer": `{"result":3}`,
		"object": `{"a":"b"}`, "nothing": `{}`, "address": `{"result":"::1"}`, "bigint": `{"result":5}`,
	}
	for id, text := range want {
		outcome, err := h.call(id, nil, nil)
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		got, err := apcore.EncodeJSON(outcome.Output)
		if err != nil || string(got) != text {
			t.Errorf("%s: %s %v, want %s", id, got, err, text)
		}
	}
}

type angry struct{}

func (angry) MarshalJSON() ([]byte, error) { panic("secret text") }

// TestOutputThatIsNoJSON: the effect happened once, and nothing invites a retry.
func TestOutputThatIsNoJSON(t *testing.T) {
	loop := obj{}
	loop["self"] = loop
	outputs := map[string]obj{
		"NaN": {"n": math.NaN()}, "channel": {"c": make(chan int)}, "cycle": loop, "UTF-8": {"s": "\xff"}, "panics": {"x": angry{}},
	}
	for name, output := range outputs {
		for kind, nothing := range map[string]bool{"value": false, "nil": true} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				h := newHost(t, apcore.ExecutorOptions{}).module("raw", func(context.Context, obj, *apcore.Context) (obj, error) {
					if nothing {
						return nil, nil
					}
					return output, nil
				})
				err := apcore.Register(h.registry, "typed", func(context.Context, obj) (obj, error) {
					h.effects.add("typed")
					return output, nil
				}, apcore.Spec{Description: "Returns"})
				if err != nil {
					t.Fatal(err)
				}
				for i, id := range []string{"raw", "typed"} {
					outcome, err := h.call(id, nil, nil)
					h.wants(err, apcore.CodeModuleExecuteError, i+1)
					if e := apcore.AsError(err); e == nil || e.Retryable == nil || *e.Retryable || !outcome.Started || strings.Contains(e.Error(), "secret") {
						t.Errorf("%s: %+v, started %t", id, e, outcome.Started)
					}
				}
			})
		}
	}
}

func TestFuncRefusals(t *testing.T) {
	spec := apcore.Spec{Description: "Refused"}
	fine := func(context.Context, obj) (obj, error) { return obj{}, nil }
	tests := []struct {
		name string
		make func() error
		code apcore.Code
	}{
		{"no description", func() error { _, err := apcore.NewFunc(fine, apcore.Spec{}); return err }, apcore.CodeInvalidInput},
		{"blank description", func() error { _, err := apcore.NewFunc(fine, apcore.Spec{Description: " \n"}); return err }, apcore.CodeInvalidInput},
		{"nil function", func() error { _, err := apcore.NewFunc[obj, obj](nil, spec); return err }, apcore.CodeInvalidInput},
		{"channel input", func() error {
			_, err := apcore.NewFunc(func(context.Context, struct{ C chan int }) (obj, error) { return nil, nil }, spec)
			return err
		}, apcore.CodeFuncMissingTypeHint},
		{"keys that are no texts", func() error {
			_, err := apcore.NewFunc(func(context.Context, map[int]string) (obj, error) { return nil, nil }, spec)
			return err
		}, apcore.CodeFuncMissingTypeHint},
		{"function output", func() error {
			_, err := apcore.NewFunc(func(context.Context, obj) (struct{ F []func() }, error) { panic("not called") }, spec)
			return err
		}, apcore.CodeFuncMissingReturnType},
		{"raw nil", func() error { _, err := apcore.NewRawFunc(nil, spec); return err }, apcore.CodeInvalidInput},
		{"raw without input schema", func() error { _, err := apcore.NewRawFunc(fine, spec); return err }, apcore.CodeFuncMissingTypeHint},
		{"raw without output schema", func() error {
			_, err := apcore.NewRawFunc(fine, apcore.Spec{Description: "x", InputSchema: obj{}})
			return err
		}, apcore.CodeFuncMissingReturnType},
		{"register names the module", func() error {
			err := apcore.Register(apcore.NewRegistry(apcore.RegistryOptions{}), "some.id", fine, apcore.Spec{})
			if apcore.AsError(err).ModuleID() != "some.id" {
				return errors.New("no module id")
			}
			return err
		}, apcore.CodeInvalidInput},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := test.make(); apcore.CodeOf(err) != test.code {
				t.Errorf("%v, want %s", err, test.code)
			}
		})
	}
}

func TestSensitiveTag(t *testing.T) {
	type in struct {
		Note string `json:"note" apcore:"sensitive"`
		N    int    `json:"n"`
	}
	h := newHost(t, apcore.ExecutorOptions{})
	if err := apcore.Register(h.registry, "m", func(context.Context, in) (in, error) { return in{}, nil }, apcore.Spec{Description: "Keeps secrets"}); err != nil {
		t.Fatal(err)
	}
	outcome, err := h.call("m", obj{"note": "diary", "n": 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(obj{"note": "***REDACTED***", "n": 1}, outcome.Context.RedactedInputs()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
