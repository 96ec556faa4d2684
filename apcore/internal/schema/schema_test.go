package schema

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	object, err := jsonvalue.DecodeObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// Scenario 59: what a schema says is enforced, at the right place, under the
// right keyword, and no message holds the value.
func TestValidate(t *testing.T) {
	const schema = `{"type":"object","required":["count"],"properties":{
		"count":{"type":"integer","minimum":1},"name":{"type":"string","minLength":2,"maxLength":20,"pattern":"^[a-z]+$"},
		"tags":{"type":"array","items":{"type":"string"},"maxItems":2},"level":{"enum":["low","high"]},
		"inner":{"type":"object","required":["deep"],"additionalProperties":false,"properties":{"deep":{"const":"secretword"}}},
		"either":{"oneOf":[{"type":"integer"},{"type":"number"}]},"any":{"anyOf":[{"type":"string"},{"type":"null"}]},
		"mail":{"type":"string","format":"email"},"node":{"$ref":"#/$defs/node"}},
		"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"},"v":{"type":"integer"}}}}}`
	validator, err := Compile(parse(t, schema))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		value string
		want  []string // path keyword
	}{
		{`{"count":1}`, nil},
		{`{"count":4.0}`, nil},
		{`{"count":9007199254740993,"extra":true}`, nil},
		{`{"count":1,"mail":"nowhere"}`, nil},
		{`{}`, []string{" required"}},
		{`{"count":"42"}`, []string{"/count type"}},
		{`{"count":1.5}`, []string{"/count type"}},
		{`{"count":0,"level":"hidden-secret"}`, []string{"/count minimum", "/level enum"}},
		{`{"count":1,"name":"HIDDENSECRET"}`, []string{"/name pattern"}},
		{`{"count":1,"tags":["a",7,"c"]}`, []string{"/tags maxItems", "/tags/1 type"}},
		{`{"count":1,"inner":{"other":1}}`, []string{"/inner additionalProperties", "/inner required"}},
		{`{"count":1,"inner":{"deep":"hidden-secret"}}`, []string{"/inner/deep const"}},
		{`{"count":1,"either":"hidden-secret"}`, []string{"/either oneOf"}},
		{`{"count":1,"either":1}`, []string{"/either oneOf"}},
		{`{"count":1,"any":7}`, []string{"/any anyOf"}},
		{`{"count":1,"node":{"next":{"next":{"v":"x"}}}}`, []string{"/node/next/next/v type"}},
	} {
		value := parse(t, test.value)
		items := validator.Validate(value)
		var got []string
		for _, item := range items {
			got = append(got, item.Path+" "+item.Keyword)
			if item.Message == "" || strings.Contains(strings.ToLower(item.Message), "hidden") {
				t.Errorf("%s: message %q", test.value, item.Message)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.value, diff)
		}
		if diff := cmp.Diff(parse(t, test.value), value); diff != "" {
			t.Errorf("%s was changed:\n%s", test.value, diff)
		}
	}
}

func TestUnionCode(t *testing.T) {
	validator, err := Compile(parse(t, `{"properties":{"a":{"oneOf":[{"type":"integer"},{"type":"number"}]},"b":{"type":"string"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		`{"a":1}`: "SCHEMA_UNION_AMBIGUOUS", `{"a":"x"}`: "SCHEMA_UNION_NO_MATCH", `{"a":"x","b":1}`: "", `{"a":1.5}`: "",
	} {
		if got := UnionCode(validator.Validate(parse(t, value))); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, schema := range []string{
		`{"type":"whatever"}`, `{"minimum":"x"}`, `{"pattern":"("}`, `{"$ref":"#/$defs/none"}`,
		`{"$ref":"https://example.com/schema.json"}`, `{"$ref":"file:///etc/passwd"}`,
	} {
		if _, err := Compile(parse(t, schema)); err == nil {
			t.Errorf("%s was accepted", schema)
		}
	}
}

type level string

func (level) Enum() []string { return []string{"low", "high"} }

type base struct {
	ID uuid.UUID `json:"id"`
}

type item struct {
	Name string `json:"name" jsonschema:"minLength=1,description=what it is"`
}

type tree struct {
	Value int     `json:"value"`
	Left  *tree   `json:"left"`
	More  []*tree `json:"more,omitempty"`
}

type everything struct {
	base
	Count  int64             `json:"count" jsonschema:"minimum=1"`
	Ratio  float64           `json:"ratio,omitempty"`
	When   time.Time         `json:"when"`
	Level  level             `json:"level"`
	Items  []item            `json:"items"`
	Attrs  map[string]string `json:"attrs,omitempty"`
	Card   string            `json:"card" apcore:"sensitive"`
	Pin    *string           `json:"pin" apcore:"sensitive"`
	Note   *item             `json:"note"`
	Blob   []byte            `json:"blob"`
	Raw    json.RawMessage   `json:"raw"`
	Any    any               `json:"any"`
	Hidden string            `json:"-"`
	inner  chan int
}

// Pitfall 44: nothing gets lost between a Go type and its schema.
func TestInfer(t *testing.T) {
	got, err := Infer(reflect.TypeFor[everything]())
	if err != nil {
		t.Fatal(err)
	}
	itemSchema := `{"type":"object","properties":{"name":{"type":"string","minLength":1,"description":"what it is"}},"required":["name"]}`
	want := parse(t, `{"type":"object","required":["id","count","when","level","items","card","blob","raw","any"],"properties":{
		"id":{"type":"string","format":"uuid"},"count":{"type":"integer","minimum":1},"ratio":{"type":"number"},
		"when":{"type":"string","format":"date-time"},"level":{"type":"string","enum":["low","high"]},
		"items":{"type":"array","items":`+itemSchema+`},"attrs":{"type":"object","additionalProperties":{"type":"string"}},
		"card":{"type":"string","x-sensitive":true},"pin":{"anyOf":[{"type":"string"},{"type":"null"}],"x-sensitive":true},
		"note":{"anyOf":[`+itemSchema+`,{"type":"null"}]},
		"blob":{"type":"string","contentEncoding":"base64"},"raw":{},"any":{}}}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := Compile(got); err != nil {
		t.Errorf("the schema does not compile: %v", err)
	}
	_ = everything{}.inner
}

func TestInferRecursive(t *testing.T) {
	got, err := Infer(reflect.TypeFor[*tree]())
	if err != nil {
		t.Fatal(err)
	}
	validator, err := Compile(got)
	if err != nil {
		t.Fatalf("%v: %v", got, err)
	}
	if got["type"] != "object" || got["$ref"] != nil {
		t.Errorf("the root is a reference: %v", got)
	}
	if items := validator.Validate(parse(t, `{"value":1,"left":{"value":2,"left":null,"more":[{"value":3}]}}`)); len(items) > 0 {
		t.Errorf("a good tree: %v", items)
	}
	if items := validator.Validate(parse(t, `{"value":1,"more":[{"value":"x"}]}`)); len(items) == 0 {
		t.Error("a bad tree was accepted")
	}
}

func TestInferMaps(t *testing.T) {
	for typ, want := range map[reflect.Type]string{
		reflect.TypeFor[map[string]any](): `{"type":"object"}`,
		reflect.TypeFor[struct{}]():       `{"type":"object","properties":{}}`,
		reflect.TypeFor[[]int]():          `{"type":"array","items":{"type":"integer"}}`,
	} {
		got, err := Infer(typ)
		if err != nil {
			t.Fatal(err)
		}
		if len(objectOf(got["properties"])) == 0 {
			delete(got, "properties")
		}
		wanted := parse(t, want)
		delete(wanted, "properties")
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", typ, diff)
		}
	}
}

func TestInferRefuses(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[struct{ A chan int }](), reflect.TypeFor[struct{ A []func() }](), reflect.TypeFor[map[int]string](), reflect.TypeFor[struct{ A complex128 }](),
	} {
		if got, err := Infer(typ); err == nil {
			t.Errorf("%v: %v", typ, got)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	got, err := Infer(reflect.TypeFor[item]())
	if err != nil {
		b.Fatal(err)
	}
	validator, err := Compile(got)
	if err != nil {
		b.Fatal(err)
	}
	value := map[string]any{"name": "x"}
	b.ReportAllocs()
	for b.Loop() {
		if items := validator.Validate(value); items != nil {
			b.Fatal(items)
		}
	}
}
