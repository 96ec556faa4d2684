package jsonvalue

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// theirs is encoding/json without HTML escapes.
func theirs(t interface{ Fatal(args ...any) }, value any) string {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(buffer.String(), "\n")
}

func anyJSON(depth int) *rapid.Generator[any] {
	scalar := rapid.OneOf(
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.String().AsAny(), rapid.Int().AsAny(), rapid.Int8().AsAny(), rapid.Uint64().AsAny(),
		rapid.Float64().AsAny(), rapid.Float32().AsAny(), rapid.Just[any](json.Number("1.0")), rapid.Just[any]("\x00\x1f\"\\\b\f\n\r\t<&>\x7f"),
	)
	if depth == 0 {
		return scalar
	}
	deeper := rapid.Deferred(func() *rapid.Generator[any] { return anyJSON(depth - 1) })
	return rapid.OneOf(scalar, rapid.SliceOfN(deeper, 0, 4).AsAny(), rapid.MapOfN(rapid.String(), deeper, 0, 4).AsAny())
}

func TestEncodeAgreesWithEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := anyJSON(3).Draw(t, "value")
		got, err := Encode(value)
		if err != nil {
			t.Fatal(err)
		}
		// the one difference: these two need no escape in JSON
		want := strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(theirs(t, value))
		if string(got) != want {
			t.Fatalf("ours:   %s\ntheirs: %s", got, want)
		}
		clone, err := Clone(value)
		if diff := cmp.Diff(value, clone); err != nil || diff != "" {
			t.Fatalf("the clone differs: %v\n%s", err, diff)
		}
		canonical, err := Canonical(value)
		if err != nil || string(canonical) != want {
			t.Fatalf("the canonical form of plain values is another: %s, %v", canonical, err)
		}
		back, err := Decode(got)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Encode(back); err != nil || !bytes.Equal(again, got) {
			t.Fatalf("there and back: %s, then %s, %v", got, again, err)
		}
	})
}

func TestFloatsAreWrittenAsByEncodingJSON(t *testing.T) {
	check := func(t interface{ Fatal(args ...any) }, f float64) {
		values := []any{f, -f}
		if g := float32(f); !math.IsInf(float64(g), 0) {
			values = append(values, g)
		}
		for _, value := range values {
			if got, err := Encode(value); err != nil || string(got) != theirs(t, value) {
				t.Fatal(value, string(got), err, theirs(t, value))
			}
		}
	}
	for _, f := range []float64{0, 1, 0.1, 1e-6, 9.99e-7, 1e-7, 1e-10, 1e20, 1e21, 1e-300, 1e300, math.MaxFloat32, math.SmallestNonzeroFloat64, 1 << 53} {
		check(t, f)
	}
	rapid.Check(t, func(t *rapid.T) {
		if f := math.Float64frombits(rapid.Uint64().Draw(t, "bits")); !math.IsNaN(f) && !math.IsInf(f, 0) {
			check(t, f)
		}
	})
}

// secretive writes itself; what it keeps to itself is nobody's business.
type secretive struct {
	raw  string
	self *secretive
}

func (secretive) MarshalJSON() ([]byte, error) { return []byte(`{"z":1, "a":[2]}`), nil }

type failing struct{}

func (failing) MarshalJSON() ([]byte, error) { return nil, errors.New("s3cret") }

type textual struct{ raw string }

func (textual) MarshalText() ([]byte, error) { return []byte("t"), nil }

// replacing is a text that is written as another one.
type replacing string

func (replacing) MarshalJSON() ([]byte, error) { return []byte(`"\ufffd"`), nil }

func TestForeignValues(t *testing.T) {
	loop := &secretive{raw: "\xff"}
	loop.self = loop
	for name, test := range map[string]struct {
		value              any
		encoded, canonical string
	}{
		"marshaler":   {loop, `{"z":1,"a":[2]}`, `{"a":[2],"z":1}`},
		"inside":      {map[string]any{"x": secretive{}}, `{"x":{"z":1,"a":[2]}}`, `{"x":{"a":[2],"z":1}}`},
		"field order": {struct{ B, A int }{1, 2}, `{"B":1,"A":2}`, `{"A":2,"B":1}`},
		"text":        {[]any{textual{"\xff"}}, `["t"]`, `["t"]`},
		"raw":         {json.RawMessage(`{"b":1.0 , "a":"\ufffd"}`), `{"b":1.0,"a":"\ufffd"}`, "{\"a\":\"\ufffd\",\"b\":1.0}"},
		"nested raw":  {struct{ R json.RawMessage }{json.RawMessage(`"\ufffd"`)}, `{"R":"\ufffd"}`, "{\"R\":\"\ufffd\"}"},
		"replacing":   {replacing("\xff"), `"\ufffd"`, "\"\ufffd\""},
		"nil raw":     {json.RawMessage(nil), `null`, `null`},
		"nil pointer": {(*int)(nil), `null`, `null`},
		"nil map":     {map[string]any(nil), `null`, `null`},
		"nil slice":   {[]any(nil), `null`, `null`},
		"replacement": {struct{ S string }{"\ufffd"}, "{\"S\":\"\ufffd\"}", "{\"S\":\"\ufffd\"}"},
		"html":        {struct{ S string }{"<&>"}, `{"S":"<&>"}`, `{"S":"<&>"}`},
		"bytes":       {[]byte("\xff"), `"/w=="`, `"/w=="`},
		"duration":    {time.Second, `1000000000`, `1000000000`},
		"private":     {struct{ s string }{"\xff"}, `{}`, `{}`},
	} {
		if got, err := Encode(test.value); err != nil || string(got) != test.encoded {
			t.Errorf("%s: Encode: %s, %v; want %s", name, got, err, test.encoded)
		}
		if got, err := Canonical(test.value); err != nil || string(got) != test.canonical {
			t.Errorf("%s: Canonical: %s, %v; want %s", name, got, err, test.canonical)
		}
		if _, err := Clone(test.value); err != nil {
			t.Errorf("%s: Clone: %v", name, err)
		}
	}
}

func nested(levels int) any {
	var value any = true
	for range levels {
		value = []any{value}
	}
	return value
}

// Every way in and out refuses the same things, at the same place.
func TestRefusals(t *testing.T) {
	type holder struct{ V any }
	for name, test := range map[string]struct {
		value        any
		path, reason string
	}{
		"depth":           {nested(513), strings.Repeat("/0", 512), reasonDepth},
		"depth in struct": {[]any{holder{nested(511)}}, "/0", reasonDepth},
		"typed key":       {[]any{map[string]int{"\xff": 1}}, "/0", reasonText},
		"typed list":      {map[string]any{"a": []string{"\xff"}}, "/a", reasonText},
		"typed pointer":   {&struct{ S *string }{new("\xff")}, "", reasonText},
		"raw":             {json.RawMessage("\"\xff\""), "", reasonText},
		"raw no JSON":     {[]any{json.RawMessage("{")}, "/0", "a json.RawMessage cannot write itself as JSON"},
		"empty number":    {json.Number(""), "", reasonNumber},
		"spaced number":   {[]any{json.Number("1 ")}, "/0", reasonNumber},
		"hex number":      {json.Number("0x1"), "", reasonNumber},
		"text number":     {json.Number(`"1"`), "", reasonNumber},
		"float32":         {float32(math.Inf(1)), "", reasonFinite},
		"failing":         {map[string]any{"a": []any{failing{}}}, "/a/0", "a jsonvalue.failing cannot write itself as JSON"},
		"panicking":       {[]any{panics{}}, "/0", "writing a jsonvalue.panics panicked"},
	} {
		functions := map[string]func(any) error{
			"Clone":     func(v any) error { _, err := Clone(v); return err },
			"Encode":    func(v any) error { _, err := Encode(v); return err },
			"Canonical": func(v any) error { _, err := Canonical(v); return err },
			"Hash":      func(v any) error { _, err := Hash(v); return err },
		}
		for function, call := range functions {
			var fault *Error
			if err := call(test.value); !errors.As(err, &fault) || fault.Path != test.path || fault.Reason != test.reason {
				t.Errorf("%s of %s: %v, want %s: %s", function, name, err, test.path, test.reason)
			}
		}
	}
	if _, err := Clone(nested(512)); err != nil {
		t.Errorf("512 levels: %v", err)
	}
	if text, err := Encode(nested(512)); err != nil {
		t.Errorf("512 levels: %v", err)
	} else if _, err := Decode(text); err != nil {
		t.Errorf("512 levels: %v", err)
	}
	if _, err := Decode([]byte(strings.Repeat("[", 513) + strings.Repeat("]", 513))); err == nil {
		t.Error("513 levels were read")
	}
	if _, err := Decode([]byte(`"` + strings.Repeat(`[\"`, 1200) + `"`)); err != nil {
		t.Errorf("brackets within a text: %v", err)
	}
}

func TestDecodeKeepsDigits(t *testing.T) {
	got, err := DecodeObject([]byte(` {"a":1,"b":18446744073709551616,"a":1.0} `))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": json.Number("1.0"), "b": json.Number("18446744073709551616")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.50,"\ud83d\ude00",null]}`, `"\ud800"`, `[[[]]]`, `1e400`, "\"\u2028\"", `{} {}`, `{"a":1,"a":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		value, err := Decode(text)
		if want := json.Valid(text) && utf8.Valid(text) && depthOf(text) <= maxDepth; (err == nil) != want {
			t.Fatalf("%q: %v, want valid %v", text, err, want)
		}
		if err != nil {
			return
		}
		canonical, err := Canonical(value)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(canonical)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, canonical, err)
		}
		if diff := cmp.Diff(value, again); diff != "" {
			t.Fatalf("%q became %q:\n%s", text, canonical, diff)
		}
		if twice, _ := Canonical(again); !bytes.Equal(twice, canonical) {
			t.Fatalf("%q, then %q", canonical, twice)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	object := map[string]any{"id": "a", "amount": 5, "tags": []any{"x", "y"}, "open": true, "note": nil}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Encode(object); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHash(b *testing.B) {
	object := map[string]any{"id": "a", "amount": json.Number("5"), "tags": []any{"x", "y"}, "open": true, "note": nil}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Hash(object); err != nil {
			b.Fatal(err)
		}
	}
}
