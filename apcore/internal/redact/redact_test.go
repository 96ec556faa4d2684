package redact

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestObject(t *testing.T) {
	schema := map[string]any{
		"properties": map[string]any{
			"card":  map[string]any{"x-sensitive": true},
			"maybe": map[string]any{"anyOf": []any{map[string]any{"type": "string", "x-sensitive": true}, map[string]any{"type": "null"}}},
			"list":  map[string]any{"items": map[string]any{"properties": map[string]any{"pin": map[string]any{"x-sensitive": true}}}},
			"pins":  map[string]any{"items": map[string]any{"x-sensitive": true}},
			"node":  map[string]any{"$ref": "#/$defs/node"},
			"free":  map[string]any{"additionalProperties": map[string]any{"x-sensitive": true}},
		},
		"$defs": map[string]any{"node": map[string]any{"properties": map[string]any{
			"next": map[string]any{"$ref": "#/$defs/node"}, "deep": map[string]any{"x-sensitive": true},
		}}},
	}
	data := map[string]any{
		"card": "1", "maybe": "2", "list": []any{map[string]any{"pin": 3, "ok": 1}}, "pins": []any{4, nil},
		"node": map[string]any{"next": map[string]any{"deep": "5"}}, "free": map[string]any{"a": 6},
		"AccessKey": "7", "my-api-key": "8", "_secret_x": "9", "author": "10", "trace_id": "11", "nothing": nil,
		"text": "my sk-123 key", "module_id": map[string]any{"password": "12"}, "amount": 13,
	}
	redactor, err := New(Config{Patterns: []string{`SK-\d+`}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"card": Mask, "maybe": Mask, "list": []any{map[string]any{"pin": Mask, "ok": 1}}, "pins": []any{Mask, nil},
		"node": map[string]any{"next": map[string]any{"deep": Mask}}, "free": map[string]any{"a": Mask},
		"AccessKey": Mask, "my-api-key": Mask, "_secret_x": Mask, "author": Mask, "trace_id": "11", "nothing": nil,
		"text": Mask, "module_id": map[string]any{"password": Mask}, "amount": 13,
	}
	if diff := cmp.Diff(want, redactor.Object(data, schema)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if data["card"] != "1" || data["list"].([]any)[0].(map[string]any)["pin"] != 3 {
		t.Error("the original was changed")
	}
}

func TestConfig(t *testing.T) {
	off, err := New(Config{SensitiveKeys: []string{}, Replacement: "-"})
	if err != nil {
		t.Fatal(err)
	}
	if got := off.Object(map[string]any{"password": "x"}, nil); got["password"] != "x" {
		t.Errorf("an empty list hides %v", got)
	}
	own, err := New(Config{SensitiveKeys: []string{"card?", ""}, Replacement: "-"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"cards": "-", "CARD1": "-", "card": "x", "password": "x"}
	if diff := cmp.Diff(want, own.Object(map[string]any{"cards": "x", "CARD1": "x", "card": "x", "password": "x"}, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := New(Config{Patterns: []string{"("}}); err == nil || !strings.Contains(err.Error(), "(") {
		t.Errorf("a bad pattern: %v", err)
	}
	if got := DefaultSensitiveKeys(); len(got) != 16 {
		t.Errorf("%d default keys", len(got))
	}
}

func TestRecursiveSchemaEnds(t *testing.T) {
	schema := map[string]any{"$ref": "#", "anyOf": []any{map[string]any{"$ref": "#"}}}
	redactor, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if got := redactor.Object(map[string]any{"a": 1}, schema); got["a"] != 1 {
		t.Errorf("%v", got)
	}
}

// What has not the shape of the schema is hidden as a whole if the schema marks
// something inside; a value of the right shape, or of a schema without marks, is
// not.
func TestMisfit(t *testing.T) {
	secret := map[string]any{"x-sensitive": true}
	profile := map[string]any{"type": "object", "properties": map[string]any{"pin": map[string]any{"$ref": "#/$defs/pin"}}}
	schema := map[string]any{"$defs": map[string]any{"pin": secret}, "properties": map[string]any{
		"profile": profile, "codes": map[string]any{"items": secret}, "people": map[string]any{"type": "array", "items": profile},
		"plain":  map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{}}},
		"either": map[string]any{"anyOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "array", "items": map[string]any{"type": "string"}}}},
		"self":   map[string]any{"$ref": "#/properties/self", "items": map[string]any{"$ref": "#/properties/self"}},
	}}
	redactor, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, given, want any }{
		{"profile", "4711", Mask}, {"profile", 4711, Mask}, {"profile", []any{"4711"}, Mask}, {"profile", true, Mask}, {"profile", nil, nil},
		{"codes", map[string]any{"a": "b"}, Mask}, {"codes", "4711", Mask}, {"codes", []any{}, []any{}},
		{"people", []any{"4711", map[string]any{"pin": 1, "x": 2}}, []any{Mask, map[string]any{"pin": Mask, "x": 2}}},
		{"people", map[string]any{}, Mask}, {"plain", "text", "text"}, {"either", "text", "text"}, {"either", []any{"text"}, []any{"text"}}, {"self", "text", "text"},
	} {
		name, _ := test.name.(string)
		got := redactor.Object(map[string]any{name: test.given}, schema)[name]
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s %v (-want +got):\n%s", name, test.given, diff)
		}
	}
}
