package jsonvalue

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("secret") }

func TestCloneRefuses(t *testing.T) {
	cycle := map[string]any{}
	cycle["a"] = []any{cycle}
	type list struct{ Next any }
	loop := &list{}
	loop.Next = loop
	for name, test := range map[string]struct {
		value any
		path  string
	}{
		"NaN":           {map[string]any{"a": []any{1, math.NaN()}}, "/a/1"},
		"infinity":      {map[string]any{"a/b": math.Inf(-1)}, "/a~1b"},
		"channel":       {[]any{make(chan int)}, "/0"},
		"function":      {func() {}, ""},
		"map of any":    {map[string]any{"a": map[any]any{1: 2}}, "/a"},
		"invalid UTF-8": {map[string]any{"a": "\xff"}, "/a"},
		"invalid key":   {map[string]any{"\xff": 1}, ""},
		"typed text":    {struct{ A string }{"\xff"}, ""},
		"panic":         {map[string]any{"a": panics{}}, "/a"},
		"bad number":    {json.Number("1x"), ""},
		"loop":          {loop, ""},
	} {
		_, err := Clone(test.value)
		fault, ok := err.(*Error) //nolint:errorlint // the type is the contract
		if !ok || fault.Path != test.path || fault.Reason == "" {
			t.Errorf("%s: %v, want path %q", name, err, test.path)
		}
		if _, err := Encode(test.value); err == nil {
			t.Errorf("%s: Encode accepts it", name)
		}
	}
	if _, err := Clone(cycle); err == nil {
		t.Error("a cycle was accepted")
	}
}

func TestCloneIsDeepAndFaithful(t *testing.T) {
	moment := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	given := map[string]any{
		"int": 7, "big": int64(9007199254740993), "number": json.Number("12345678901234567890.12"),
		"nested": map[string]any{"list": []any{"a", nil, true}}, "time": moment, "typed": []string{"x"}, "nil": []any(nil),
	}
	got, err := CloneObject(given)
	if err != nil {
		t.Fatal(err)
	}
	given["nested"].(map[string]any)["list"].([]any)[0] = "spoilt"
	want := map[string]any{
		"int": 7, "big": int64(9007199254740993), "number": json.Number("12345678901234567890.12"),
		"nested": map[string]any{"list": []any{"a", nil, true}}, "time": "2026-03-01T12:00:00Z", "typed": []any{"x"}, "nil": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if empty, err := CloneObject(nil); err != nil || empty == nil {
		t.Errorf("nil object: %v, %v", empty, err)
	}
}

func TestCanonical(t *testing.T) {
	for given, want := range map[string]string{
		`{"b":1,"a":[2,1]}`:                    `{"a":[2,1],"b":1}`,
		`{"n":1.0,"m":9007199254740993}`:       `{"m":9007199254740993,"n":1.0}`,
		`"\u00e9\u2028<>&\/\u0001\t"`:          "\"é\u2028<>&/\\u0001\\t\"",
		`{"\ud83d\ude00":1,"\uffff":2,"a":{}}`: "{\"a\":{},\"\uffff\":2,\"😀\":1}",
		` [ 1e400 , -0 ] `:                     `[1e400,-0]`,
	} {
		value, err := Decode([]byte(given))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Canonical(value)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", given, got, err, want)
		}
	}
}

// One value has one digest, whatever the order of its keys; other digits, other
// digest (scenario 62).
func TestHashIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := rapid.MapOf(rapid.String(), rapid.OneOf(rapid.Int().AsAny(), rapid.String().AsAny(), rapid.Bool().AsAny())).Draw(t, "object")
		first, err := Hash(object)
		if err != nil {
			t.Fatal(err)
		}
		text, err := Encode(object)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if second, _ := Hash(again); second != first {
			t.Fatalf("%s has two digests", text)
		}
	})
	a, _ := Hash(json.Number("10"))
	b, _ := Hash(json.Number("10.0"))
	if a == b {
		t.Error("10 and 10.0 are told apart by their digits")
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, text := range []string{"", "{", "{}{}", "[1,]", "\"\xff\"", "nul"} {
		if value, err := Decode([]byte(text)); err == nil {
			t.Errorf("%q: %v", text, value)
		}
	}
	if _, err := DecodeObject([]byte("[]")); err == nil {
		t.Error("an array is no object")
	}
}

func BenchmarkCloneObject(b *testing.B) {
	object := map[string]any{"id": "a", "amount": 5, "tags": []any{"x", "y"}, "open": true, "note": nil}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := CloneObject(object); err != nil {
			b.Fatal(err)
		}
	}
}
