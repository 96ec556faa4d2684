package typed_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
	"github.com/apcore-temporal/apcore-temporal/apcore/internal/typed"
)

type name string

type part struct {
	N     int8            `json:"n"`
	Texts []name          `json:"texts"`
	Index map[name]*part  `json:"index,omitempty"`
	More  []part          `json:"more"`
	Any   any             `json:"any"`
	Plain json.Number     `json:"plain,omitempty"`
	Raw   json.RawMessage `json:"-"`
}

type base struct {
	Deep int    `json:"deep"`
	Bare string // named as it is
}

type whole struct {
	base
	Text   string             `json:"text"`
	Bool   bool               `json:"bool,omitempty"`
	Int    int64              `json:"int"`
	Uint   uint16             `json:"uint,omitzero"`
	Float  float64            `json:"float"`
	Small  float64            `json:"small,omitempty"`
	Part   part               `json:"part"`
	Pointy *part              `json:"pointy"`
	Floats map[string]float64 `json:"floats"`
	hidden int                //nolint:unused // encoding/json passes it over
	Skip   chan int           `json:"-"`
}

// foreign has fields that read and write themselves.
type foreign struct {
	At      time.Time   `json:"at"`
	Maybe   *time.Time  `json:"maybe"`
	Never   time.Time   `json:"never,omitzero"`
	Address netip.Addr  `json:"address"`
	Big     *big.Int    `json:"big"`
	Lists   [][2]uint8  `json:"lists"`
	Bytes   []byte      `json:"bytes"`
	Float   float32     `json:"float"`
	Number  json.Number `json:"number"`
}

// long is the way over JSON.
func long[T any](object map[string]any) (value T, err error) {
	text, err := jsonvalue.Encode(object)
	if err != nil {
		return value, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}

func short[T any](object map[string]any) (value T, ok bool) {
	ok = typed.NewDecoder(reflect.TypeFor[T]()).Decode(object, reflect.ValueOf(&value).Elem())
	return value, ok
}

var everything = cmp.Exporter(func(reflect.Type) bool { return true })

// agrees checks that the short way reads what the long one reads, or leaves it.
func agrees[T any](t interface{ Fatalf(string, ...any) }, object map[string]any) (ok bool) {
	got, ok := short[T](object)
	if !ok {
		return false
	}
	want, err := long[T](object)
	if err != nil {
		t.Fatalf("%v was read, encoding/json says %v", object, err)
	}
	if diff := cmp.Diff(want, got, everything); diff != "" {
		t.Fatalf("%v (-encoding/json +ours):\n%s", object, diff)
	}
	return true
}

func anyValue(depth int) *rapid.Generator[any] {
	scalar := rapid.OneOf(
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.String().AsAny(), rapid.Int().AsAny(), rapid.IntRange(-9, 300).AsAny(), rapid.Uint64().AsAny(),
		rapid.Float64().AsAny(), rapid.Float32().AsAny(), rapid.Uint8().AsAny(), rapid.SampledFrom([]any{
			json.Number("1.0"), json.Number("-0"), json.Number("1e2"), json.Number("18446744073709551616"), json.Number("9007199254740993"),
			4.0, math.Copysign(0, -1), 1e300, "2024-02-29T12:00:00.5Z", "AP8=", "::1", math.MaxInt64, "5",
		}),
	)
	if depth == 0 {
		return scalar
	}
	deeper := rapid.Deferred(func() *rapid.Generator[any] { return anyValue(depth - 1) })
	names := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"deep", "Bare", "bare", "text", "bool", "int", "uint", "float", "small", "part", "pointy", "floats", "hidden", "Skip", "n", "N", "texts",
		"index", "more", "any", "plain", "at", "maybe", "never", "address", "big", "lists", "bytes", "number", "Raw", "\u017f", "teXt",
	}))
	return rapid.OneOf(scalar, rapid.SliceOfN(deeper, 0, 4).AsAny(), rapid.MapOfN(names, deeper, 0, 8).AsAny())
}

// Whatever the inputs, the short way reads what encoding/json reads or leaves it
// to encoding/json.
func TestDecodeAgreesWithEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object, is := anyValue(4).Draw(t, "object").(map[string]any)
		if !is {
			t.Skip()
		}
		agrees[whole](t, object)
		agrees[part](t, object)
		agrees[foreign](t, object)
		agrees[map[string]any](t, object)
		agrees[map[name]part](t, object)
		agrees[*whole](t, object)
		agrees[any](t, object)
	})
}

// What comes from a value of the type is read the short way, and is that value.
func TestDecodeReadsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(rapid.MakeCustom[whole](makers()).Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		object, err := jsonvalue.DecodeObject(text)
		if err != nil {
			t.Fatal(err)
		}
		if !agrees[whole](t, object) {
			t.Fatalf("%s was left to encoding/json", text)
		}
	})
}

func makers() rapid.MakeConfig {
	var channel chan int
	return rapid.MakeConfig{Types: map[reflect.Type]*rapid.Generator[any]{
		reflect.TypeFor[any]():         anyValue(2),
		reflect.TypeFor[json.Number](): rapid.SampledFrom([]any{json.Number("7"), json.Number("-1.50")}),
		reflect.TypeFor[chan int]():    rapid.Just[any](channel),
		reflect.TypeFor[[]part]():      rapid.SampledFrom([]any{[]part(nil), []part{}, []part{{N: 1, Plain: "7"}}}),
		reflect.TypeFor[*part]():       rapid.SampledFrom([]any{(*part)(nil), &part{N: 3, Any: 1, Texts: []name{"a"}}}),
		reflect.TypeFor[time.Time]():   rapid.SampledFrom([]any{time.Time{}, time.Time{}.In(time.FixedZone("east", 3600)), time.Unix(0, 0), time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)}),
		reflect.TypeFor[*time.Time]():  rapid.SampledFrom([]any{(*time.Time)(nil), new(time.Unix(1, 5).UTC())}),
		reflect.TypeFor[netip.Addr]():  rapid.SampledFrom([]any{netip.Addr{}, netip.MustParseAddr("::1")}),
		reflect.TypeFor[*big.Int]():    rapid.SampledFrom([]any{(*big.Int)(nil), new(big.Int).Lsh(big.NewInt(1), 80)}),
	}}
}

func encodes[T any](t *rapid.T, value T) (ok bool) {
	var state typed.State
	got, ok := typed.NewEncoder(reflect.TypeFor[T]()).Encode(reflect.ValueOf(&value).Elem(), &state)
	if !ok {
		return false
	}
	text, err := jsonvalue.Encode(value)
	if err != nil {
		t.Fatalf("%v was written, encoding/json says %v", value, err)
	}
	want, err := jsonvalue.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%#v (-encoding/json +ours):\n%s", value, diff)
	}
	if hasNull(got) && !state.Null {
		t.Fatalf("%#v: nobody noticed the null", value)
	}
	return true
}

func hasNull(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case []any:
		return slices.ContainsFunc(value, hasNull)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(value)), hasNull)
	default:
		return false
	}
}

func TestEncodeAgreesWithEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		encodes(t, rapid.MakeCustom[foreign](makers()).Draw(t, "foreign"))
		value := rapid.MakeCustom[whole](makers()).Draw(t, "whole")
		if !encodes(t, value) {
			t.Fatalf("%#v was left to encoding/json", value)
		}
		encodes(t, []any{value, &value})
		encodes(t, map[name][]*whole{"x": {&value, nil}})
	})
}

type pointerMarshaler struct{ N int }

func (*pointerMarshaler) MarshalJSON() ([]byte, error) { return []byte(`"p"`), nil }

// upper writes itself, and its holders are written so too.
type upper string

func (u upper) MarshalText() ([]byte, error) { return []byte("UP:" + u), nil }

type bit uint8

func (b bit) MarshalText() ([]byte, error) { return []byte{'0' + byte(b)}, nil }

// Bytes that write themselves are a list, others are base64.
func TestEncodeBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if !encodes(t, []bit{1, 0}) || !encodes(t, []byte{1, 0}) || !encodes(t, []byte(nil)) {
			t.Fatal("left to encoding/json")
		}
	})
}

// What only encoding/json has the rules for has no decoder or encoder.
func TestUnsure(t *testing.T) {
	type left struct{ N int }
	type right struct{ N int }
	for name, unsure := range map[string]reflect.Type{
		"string option": reflect.TypeFor[struct {
			N int `json:",string"`
		}](),
		"names twice": reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"b"`}, {Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"b"`}}),
		"embedded twice": reflect.TypeFor[struct {
			left
			right
		}](),
		"embedded pointer":   reflect.TypeFor[struct{ *left }](),
		"odd name":           reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"a\\b"`}}),
		"number keys":        reflect.TypeFor[map[int]string](),
		"pointer to pointer": reflect.TypeFor[**int](),
		"channel":            reflect.TypeFor[chan int](),
		"inside":             reflect.TypeFor[struct{ L []map[string]func() }](),
		"is zero by its word": reflect.TypeFor[struct {
			A *time.Time `json:"a,omitzero"`
		}](),
	} {
		if typed.NewDecoder(unsure) != nil || typed.NewEncoder(unsure) != nil {
			t.Errorf("%s: somebody dares", name)
		}
	}
	for _, unsure := range []reflect.Type{reflect.TypeFor[pointerMarshaler](), reflect.TypeFor[struct{ V []pointerMarshaler }](), reflect.TypeFor[map[upper]int]()} {
		if typed.NewEncoder(unsure) != nil {
			t.Errorf("there is an encoder of %v", unsure)
		}
	}
}

// Code of the values runs only where somebody said so.
func TestPure(t *testing.T) {
	for of, want := range map[reflect.Type][2]bool{
		reflect.TypeFor[base]():                        {true, true},
		reflect.TypeFor[struct{ T time.Time }]():       {true, true},
		reflect.TypeFor[part]():                        {true, false}, // what an interface holds may write itself
		reflect.TypeFor[foreign]():                     {false, false},
		reflect.TypeFor[struct{ V *big.Int }]():        {false, false},
		reflect.TypeFor[struct{ V json.RawMessage }](): {false, false},
		reflect.TypeFor[struct{ V upper }]():           {true, false},
	} {
		decoder, encoder := typed.NewDecoder(of), typed.NewEncoder(of)
		if got := [2]bool{decoder.Pure(), encoder.Pure()}; got != want {
			t.Errorf("%v: reading and writing are pure: %v, want %v", of, got, want)
		}
	}
}

// Failures and endless values are encoding/json's to tell.
func TestEncodeLeaves(t *testing.T) {
	type ring struct{ Next *ring }
	loop := &ring{}
	loop.Next = loop
	for name, value := range map[string]any{
		"cycle": loop, "invalid text": struct{ S string }{"\xff"}, "invalid key": map[string]int{"\xff": 1},
		"not finite": []float64{math.NaN()}, "empty number": struct{ N json.Number }{}, "late": struct{ T time.Time }{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		"channel inside": []any{make(chan int)},
	} {
		v := reflect.ValueOf(value)
		if got, ok := typed.NewEncoder(v.Type()).Encode(v, &typed.State{}); ok {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Nobody can write to inputs through what was read of them, nor the other way.
func TestNothingIsShared(t *testing.T) {
	object := map[string]any{"any": map[string]any{"list": []any{map[string]any{"k": "v"}}}}
	value, ok := short[part](object)
	if !ok {
		t.Fatal("left to encoding/json")
	}
	value.Any.(map[string]any)["list"].([]any)[0].(map[string]any)["k"] = "changed"
	if diff := cmp.Diff(map[string]any{"any": map[string]any{"list": []any{map[string]any{"k": "v"}}}}, object); diff != "" {
		t.Errorf("the inputs changed:\n%s", diff)
	}
}
