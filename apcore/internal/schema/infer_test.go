package schema

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

func inferred(t testing.TB, typ reflect.Type) map[string]any {
	t.Helper()
	got, err := Infer(typ)
	if err != nil {
		t.Fatalf("%v: %v", typ, err)
	}
	return got
}

type jsonWriter struct{ N int }

func (jsonWriter) MarshalJSON() ([]byte, error) { return []byte(`"x"`), nil }

type textReader struct{ N int }

func (*textReader) UnmarshalText([]byte) error { return nil }

type pointerEnum string

func (*pointerEnum) Enum() []string { return []string{"p", "q"} }

type textKey string

type generic[T any] struct {
	V T `json:"v"`
}

func TestInferTypes(t *testing.T) {
	for typ, want := range map[reflect.Type]string{
		reflect.TypeFor[int8]():                `{"type":"integer"}`,
		reflect.TypeFor[uint64]():              `{"type":"integer"}`,
		reflect.TypeFor[float32]():             `{"type":"number"}`,
		reflect.TypeFor[time.Duration]():       `{"type":"integer"}`,
		reflect.TypeFor[*time.Time]():          `{"type":"string","format":"date-time"}`,
		reflect.TypeFor[big.Int]():             `{"type":"integer"}`,
		reflect.TypeFor[json.Number]():         `{"type":"number"}`,
		reflect.TypeFor[json.RawMessage]():     `{}`,
		reflect.TypeFor[any]():                 `{}`,
		reflect.TypeFor[error]():               `{}`,
		reflect.TypeFor[[]byte]():              `{"type":"string","contentEncoding":"base64"}`,
		reflect.TypeFor[[2]byte]():             `{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":2}`,
		reflect.TypeFor[[]pointerEnum]():       `{"type":"array","items":{"type":"string","enum":["p","q"]}}`,
		reflect.TypeFor[[]*int]():              `{"type":"array","items":{"anyOf":[{"type":"integer"},{"type":"null"}]}}`,
		reflect.TypeFor[[]**int]():             `{"type":"array","items":{"anyOf":[{"type":"integer"},{"type":"null"}]}}`,
		reflect.TypeFor[[]*any]():              `{"type":"array","items":{}}`,
		reflect.TypeFor[map[textKey][]int]():   `{"type":"object","additionalProperties":{"type":"array","items":{"type":"integer"}}}`,
		reflect.TypeFor[map[uuid.UUID]any]():   `{"type":"object"}`,
		reflect.TypeFor[netip.Addr]():          `{"type":"string"}`,
		reflect.TypeFor[textReader]():          `{"type":"string"}`,
		reflect.TypeFor[jsonWriter]():          `{}`,
		reflect.TypeFor[generic[uuid.UUID]]():  `{"type":"object","properties":{"v":{"type":"string","format":"uuid"}},"required":["v"]}`,
		reflect.TypeFor[struct{ time.Time }](): `{}`,
		reflect.TypeFor[struct {
			Q *int `json:"q,string"`
		}](): `{"type":"object","properties":{"q":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`,
	} {
		if diff := cmp.Diff(parse(t, want), inferred(t, typ)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", typ, diff)
		}
	}
}

type deepest struct {
	A int `json:"a"`
	X int
}

type left struct {
	deepest
	L     int `json:"l"`
	Twin  int
	Rival string
}

type right struct {
	Twin int
	Tag  int `json:"Rival"`
}

type common struct{ Twice int }

type oneWay struct{ common }

type otherWay struct{ common }

type Optional struct {
	O int `json:"o"`
}

type shadows struct {
	A string `json:"a"`
	left
	right
	oneWay
	otherWay
	*Optional
	Named   left `json:"named"`
	X       bool
	Dash    int    `json:"-,"` //nolint:staticcheck // a field named "-" on purpose
	Gone    int    `json:"-"`
	Skipped int    `jsonschema:"-"`
	N       int    `json:"n,string"`
	S       []int  `json:"s,string"` //nolint:staticcheck // the option is ignored here
	Zero    int    `json:"zero,omitzero"`
	Empty   string `json:",omitempty"`
	private int
}

// Whatever encoding/json writes, the schema knows, and under the same name.
func TestInferFollowsEncodingJSON(t *testing.T) {
	value := shadows{Optional: &Optional{}, Zero: 1, Empty: "x", S: []int{1}, private: 1}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	got := inferred(t, reflect.TypeFor[shadows]())
	written := map[string]string{"Skipped": "-"} // left out of the schema by its tag
	for name, part := range parse(t, string(text)) {
		if name != "Skipped" {
			written[name] = kindOf(part).String()
		}
	}
	described := map[string]string{"Skipped": "-"}
	for name, property := range objectOf(got["properties"]) {
		described[name] = strings.ReplaceAll(objectOf(property)["type"].(string), "integer", "number")
	}
	if diff := cmp.Diff(written, described); diff != "" {
		t.Errorf("properties (-encoding/json +schema):\n%s\n%s", diff, text)
	}
	want := []any{"a", "l", "Rival", "named", "X", "-", "n", "s"}
	if diff := cmp.Diff(want, got["required"]); diff != "" {
		t.Errorf("required (-want +got):\n%s", diff)
	}
}

type tagged struct {
	Text    string         `json:"text" jsonschema:"title=T,description=a\\, b,minLength=1,maxLength=9,pattern=^[a\\,b]+$,format=email,default=x,example=y,enum=x,enum=y"`
	Count   int            `json:"count" jsonschema:"minimum=1,maximum=9,exclusiveMinimum=0,exclusiveMaximum=10,multipleOf=2,default=3,enum=4,const=4"`
	Flag    bool           `json:"flag" jsonschema:"default=true,deprecated,readOnly=true,writeOnly=false"`
	List    []string       `json:"list" jsonschema:"minItems=1,maxItems=2,uniqueItems,enum=a,minLength=1"`
	Pointer *string        `json:"pointer" jsonschema:"minLength=2,description=p" apcore:"sensitive"`
	Forced  *int           `json:"forced,omitempty" jsonschema:"required"`
	Any     any            `json:"any" jsonschema_description:"free, text" jsonschema_extras:"x-llm-description=hint,x-rank=2,x-on=true"`
	Map     map[string]int `json:"map" jsonschema:"minProperties=1,maxProperties=2"`
	Struct  Optional       `json:"struct" jsonschema:"description=inner" apcore:"sensitive"`
}

func TestInferTags(t *testing.T) {
	want := parse(t, `{"type":"object","required":["text","count","flag","list","forced","any","map","struct"],"properties":{
		"text":{"type":"string","title":"T","description":"a, b","minLength":1,"maxLength":9,"pattern":"^[a,b]+$","format":"email",
			"default":"x","examples":["y"],"enum":["x","y"]},
		"count":{"type":"integer","minimum":1,"maximum":9,"exclusiveMinimum":0,"exclusiveMaximum":10,"multipleOf":2,"default":3,"enum":[4],"const":4},
		"flag":{"type":"boolean","default":true,"deprecated":true,"readOnly":true,"writeOnly":false},
		"list":{"type":"array","minItems":1,"maxItems":2,"uniqueItems":true,"items":{"type":"string","enum":["a"],"minLength":1}},
		"pointer":{"anyOf":[{"type":"string","minLength":2},{"type":"null"}],"description":"p","x-sensitive":true},
		"forced":{"anyOf":[{"type":"integer"},{"type":"null"}]},
		"any":{"description":"free, text","x-llm-description":"hint","x-rank":2,"x-on":true},
		"map":{"type":"object","additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":2},
		"struct":{"type":"object","properties":{"o":{"type":"integer"}},"required":["o"],"description":"inner","x-sensitive":true}}}`)
	got := inferred(t, reflect.TypeFor[tagged]())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := Compile(got); err != nil {
		t.Error(err)
	}
}

// A constraint that cannot be understood must not get lost.
func TestInferRefusesTags(t *testing.T) {
	for typ, want := range map[reflect.Type]string{
		reflect.TypeFor[struct {
			A int `jsonschema:"minLength=1"`
		}](): ".A: jsonschema tag: minLength: it does not apply to a field of type integer",
		reflect.TypeFor[struct {
			A any `jsonschema:"minimum=1"`
		}](): "of type any",
		reflect.TypeFor[struct {
			A string `jsonschema:"minlength=1"`
		}](): "minlength: it is unknown",
		reflect.TypeFor[struct {
			A string `jsonschema:"the name"`
		}](): "description=the name",
		reflect.TypeFor[struct {
			A int `jsonschema:"minimum=one"`
		}](): "want a number",
		reflect.TypeFor[struct {
			A bool `jsonschema:"default=yes"`
		}](): "want true or false",
		reflect.TypeFor[struct {
			A []int `jsonschema:"uniqueItems=maybe"`
		}](): "want true or false",
		reflect.TypeFor[struct {
			A int `apcore:"sensitiv"`
		}](): `"sensitiv" is unknown`,
		reflect.TypeFor[struct {
			A int `jsonschema_extras:"type=string"`
		}](): "does not begin with x-",
		reflect.TypeFor[struct {
			A []struct{ B map[string]chan int }
		}](): ".A[].B{} is a chan int",
		reflect.TypeFor[struct{ A map[int]string }](): "its keys must be texts",
	} {
		if got, err := Infer(typ); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, %v; want %q", typ, got, err, want)
		}
	}
}

type ping struct {
	Pong *pong `json:"pong"`
}

type pong struct {
	Pings []ping          `json:"pings"`
	Other map[string]pong `json:"other"`
}

func TestInferTypesThatContainOneAnother(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[ping](), reflect.TypeFor[pong](), reflect.TypeFor[[]ping](), reflect.TypeFor[struct{ A, B ping }]()} {
		got := inferred(t, typ)
		if got["$ref"] != nil {
			t.Errorf("%v: the root is a reference", typ)
		}
		for range 10 {
			if diff := cmp.Diff(got, inferred(t, typ)); diff != "" {
				t.Fatalf("%v is inferred differently each time:\n%s", typ, diff)
			}
		}
		if _, err := Compile(got); err != nil {
			t.Errorf("%v: %v", typ, err)
		}
	}
	if got := inferred(t, reflect.TypeFor[[]ping]()); objectOf(objectOf(got["$defs"])["schema.ping"]) == nil {
		t.Errorf("definitions are not named after their types: %v", got)
	}
	validator, err := Compile(inferred(t, reflect.TypeFor[ping]()))
	if err != nil {
		t.Fatal(err)
	}
	if items := validator.Validate(parse(t, `{"pong":{"pings":[{"pong":null}],"other":{"x":{"pings":[],"other":{}}}}}`)); items != nil {
		t.Errorf("a good value: %v", items)
	}
	if items := validator.Validate(parse(t, `{"pong":{"pings":[{"pong":{"pings":1,"other":{}}}],"other":{}}}`)); len(items) != 1 {
		t.Errorf("a bad value: %v", items)
	}
}

type filled struct {
	List  []string          `json:"list"`
	Map   map[string][]int  `json:"map"`
	Bytes []byte            `json:"bytes"`
	Any   any               `json:"any"`
	Ptr   *filled           `json:"ptr"`
	Deep  []filled          `json:"deep"`
	Maps  map[string]filled `json:"maps"`
	URL   *url.URL          `json:"-"`
}

func TestFillNil(t *testing.T) {
	schema := inferred(t, reflect.TypeFor[filled]())
	validator, err := Compile(schema)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jsonvalue.Encode(filled{Ptr: &filled{Deep: []filled{{}}}, Map: map[string][]int{"a": nil}, Maps: map[string]filled{"m": {}}})
	if err != nil {
		t.Fatal(err)
	}
	value := parse(t, string(text))
	if validator.Validate(value) == nil {
		t.Fatal("nothing has to be filled: the test tests nothing")
	}
	FillNil(schema, value)
	if items := validator.Validate(value); items != nil {
		t.Errorf("%v in %v", items, value)
	}
	wrong := map[string]any{"named": nil}
	if FillNil(inferred(t, reflect.TypeFor[shadows]()), wrong); wrong["named"] != nil {
		t.Errorf("a struct was made up: %v", wrong)
	}
	if value["any"] != nil || value["bytes"] != "" {
		t.Errorf("filled too much or too little: %v", value)
	}
	if deep := objectOf(arrayOf(objectOf(value["ptr"])["deep"])[0]); deep["ptr"] != nil || deep["list"] == nil {
		t.Errorf("deep down: %v", deep)
	}
}

// What Go writes satisfies what was inferred from its type.
func TestInferredSchemasAcceptWhatGoWrites(t *testing.T) {
	schema := inferred(t, reflect.TypeFor[sample]())
	validator, err := Compile(schema)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		value := sample{
			S: rapid.String().Draw(t, "s"), I: rapid.Int64().Draw(t, "i"), U: rapid.Uint64().Draw(t, "u"), F: rapid.Float64Range(-1e300, 1e300).Draw(t, "f"),
			L: rapid.SliceOf(rapid.Int()).Draw(t, "l"), M: rapid.MapOf(rapid.String(), rapid.Bool()).Draw(t, "m"),
			P: rapid.Ptr(rapid.String(), true).Draw(t, "p"), B: rapid.SliceOf(rapid.Byte()).Draw(t, "b"), T: time.Unix(rapid.Int64Range(0, 1e9).Draw(t, "t"), 0),
			ID: uuid.New(), A: netip.AddrFrom4([4]byte{1, 2, 3, 4}), Q: rapid.Int().Draw(t, "q"), N: big.NewInt(rapid.Int64().Draw(t, "n")),
		}
		text, err := jsonvalue.Encode(value)
		if err != nil {
			t.Fatal(err)
		}
		object, err := jsonvalue.DecodeObject(text)
		if err != nil {
			t.Fatal(err)
		}
		FillNil(schema, object)
		if items := validator.Validate(object); items != nil {
			t.Fatalf("%s: %v", text, items)
		}
	})
}

type sample struct {
	S  string          `json:"s"`
	I  int64           `json:"i"`
	U  uint64          `json:"u"`
	F  float64         `json:"f"`
	L  []int           `json:"l"`
	M  map[string]bool `json:"m"`
	P  *string         `json:"p"`
	B  []byte          `json:"b"`
	T  time.Time       `json:"t"`
	ID uuid.UUID       `json:"id"`
	A  netip.Addr      `json:"a"`
	Q  int             `json:"q,string"`
	N  *big.Int        `json:"n"`
}

func BenchmarkInfer(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Infer(reflect.TypeFor[everything]()); err != nil {
			b.Fatal(err)
		}
	}
}
