package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

func compiled(t testing.TB, schema string) *Validator {
	t.Helper()
	validator, err := Compile(parse(t, schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return validator
}

func decoded(t testing.TB, text string) any {
	t.Helper()
	value, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

func places(items []Item) []string {
	found := []string{}
	for _, item := range items {
		found = append(found, item.Path+" "+item.Keyword)
	}
	return found
}

// Every keyword that fails is reported once, where the standard wants it.
func TestKeywords(t *testing.T) {
	for _, test := range []struct {
		schema, value string
		want          []string
	}{
		{`{}`, `{"a":1}`, nil},
		{`{"type":"string","enum":["x"]}`, `7`, []string{" enum", " type"}},
		{`{"type":"string","enum":["x"],"minLength":3,"pattern":"z"}`, `"y"`, []string{" enum", " minLength", " pattern"}},
		{`{"const":{"a":[1,2.0]}}`, `{"a":[1.0,2]}`, nil},
		{`{"const":"1"}`, `1`, []string{" const"}},
		{`{"enum":[1,null,false]}`, `0`, []string{" enum"}},
		{`{"enum":[1,null,false]}`, `1.0`, nil},
		{`{"type":["string","null"],"enum":["a",null]}`, `null`, nil},
		{`{"type":"integer"}`, `4.0`, nil},
		{`{"type":"integer"}`, `1e2`, nil},
		{`{"type":"integer"}`, `1.5`, []string{" type"}},
		{`{"type":"number"}`, `1e999999999`, nil},
		{`{"type":"integer"}`, `1e999999999`, []string{" type"}},
		{`{"minimum":1}`, `1e999999999`, []string{" type"}},
		{`{"minimum":1}`, `1e9999`, []string{" type"}},
		{`{"minimum":1}`, `"1"`, nil},
		{`{"minimum":9007199254740993}`, `9007199254740992`, []string{" minimum"}},
		{`{"maximum":18446744073709551615}`, `18446744073709551616`, []string{" maximum"}},
		{`{"maximum":18446744073709551615}`, `18446744073709551615`, nil},
		{`{"exclusiveMinimum":0,"exclusiveMaximum":0}`, `0`, []string{" exclusiveMaximum", " exclusiveMinimum"}},
		{`{"multipleOf":0.1}`, `0.3`, nil},
		{`{"multipleOf":0.1}`, `0.35`, []string{" multipleOf"}},
		{`{"multipleOf":3}`, `10`, []string{" multipleOf"}},
		{`{"minLength":2,"maxLength":2}`, `"日本"`, nil},
		{`{"maxLength":1}`, `"日本"`, []string{" maxLength"}},
		{`{"minProperties":1}`, `{}`, []string{" minProperties"}},
		{`{"maxProperties":1}`, `{"a":1,"b":2}`, []string{" maxProperties"}},
		{`{"required":["a","b"]}`, `{}`, []string{" required"}},
		{`{"required":[]}`, `{}`, nil},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, []string{" dependentRequired"}},
		{`{"dependencies":{"a":["b"],"c":{"required":["d"]}}}`, `{"a":1,"c":1}`, []string{" dependencies", " required"}},
		{`{"dependentSchemas":{"a":{"properties":{"b":{"type":"string"}}}}}`, `{"a":1,"b":2}`, []string{"/b type"}},
		{`{"properties":{"o":{"propertyNames":{"pattern":"^[a-z]$"}}}}`, `{"o":{"B":1,"c":2,"DD":1}}`, []string{"/o propertyNames"}},
		{`{"properties":{"a":{}},"additionalProperties":false}`, `{"a":1,"b":2,"c":3}`, []string{" additionalProperties"}},
		{`{"additionalProperties":{"type":"string"}}`, `{"a/b":1,"c~d":2}`, []string{"/a~1b type", "/c~0d type"}},
		{`{"patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false}`, `{"x-a":1}`, []string{"/x-a type"}},
		{`{"properties":{"a":false}}`, `{"a":1}`, []string{" properties"}},
		{`{"items":false}`, `[1]`, []string{" items"}},
		{`{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`, `[1,"x",2]`, []string{"/0 type", "/1 type"}},
		{`{"minItems":2}`, `[1]`, []string{" minItems"}},
		{`{"maxItems":0}`, `[1]`, []string{" maxItems"}},
		{`{"uniqueItems":true}`, `[{"a":1},{"a":1.0}]`, []string{" uniqueItems"}},
		{`{"uniqueItems":true}`, `["a",1,"b","a"]`, []string{" uniqueItems"}},
		{`{"uniqueItems":true}`, `[1,"1",true,null,[1],{"a":1}]`, nil},
		{`{"contains":{"const":1}}`, `[2]`, []string{" contains"}},
		{`{"contains":{"const":1},"minContains":2}`, `[1]`, []string{" minContains"}},
		{`{"contains":{"const":1},"minContains":0}`, `[]`, nil},
		{`{"contains":{"const":1},"maxContains":1}`, `[1,1]`, []string{" maxContains"}},
		{`{"not":{"const":"deleted"}}`, `"deleted"`, []string{" not"}},
		{`{"allOf":[{"minimum":5},{"minimum":9},{"maximum":0}]}`, `3`, []string{" maximum", " minimum"}},
		{`{"allOf":[false]}`, `3`, []string{" allOf"}},
		{`{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"a":1}`, []string{" required"}},
		{`{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"c":1}`, nil},
		{`{"format":"email","contentEncoding":"base64","contentMediaType":"application/json"}`, `"?"`, nil},
		{`{"unevaluatedProperties":false,"allOf":[{"properties":{"a":{}}}],"anyOf":[{"properties":{"b":{}}},{"properties":{"c":{"type":"null"}}}]}`,
			`{"a":1,"b":2,"c":3,"d":4}`, []string{" unevaluatedProperties"}},
		{`{"unevaluatedProperties":{"type":"string"},"if":{"required":["a"],"properties":{"a":{}}}}`, `{"a":1,"b":2}`, []string{"/b type"}},
		{`{"unevaluatedItems":false,"prefixItems":[{}],"contains":{"type":"string"}}`, `[1,"x",2]`, []string{" unevaluatedItems"}},
		{`{"oneOf":[{"properties":{"k":{"const":1}},"unevaluatedProperties":false}],"properties":{"z":{}}}`, `{"k":1,"z":1}`, []string{" oneOf"}},
		{`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"},"v":{"type":"string"}}}}}`,
			`{"next":{"next":{"v":1}}}`, []string{"/next/next/v type"}},
		{`{"$dynamicRef":"#n","$defs":{"n":{"$dynamicAnchor":"n","type":"object","additionalProperties":{"$dynamicRef":"#n"}}}}`,
			`{"a":{"b":1}}`, []string{"/a/b type"}},
		{`{"$id":"https://example.com/x","$ref":"x#/$defs/n","$defs":{"n":{"type":"string"}}}`, `1`, []string{" type"}},
	} {
		got := places(compiled(t, test.schema).Validate(decoded(t, test.value)))
		if diff := cmp.Diff(append([]string{}, test.want...), got); diff != "" {
			t.Errorf("%s on %s (-want +got):\n%s", test.schema, test.value, diff)
		}
	}
}

// A union that fails is one failure; the message says what the caller most
// likely meant, and still no value.
func TestUnionMessages(t *testing.T) {
	const address = `{"anyOf":[{"type":"object","required":["zip"],"properties":{"zip":{"type":"integer"}}},{"type":"null"}]}`
	for value, want := range map[string]string{
		`{"zip":"hidden"}`: "/zip is of type string, want integer",
		`{}`:               `lacks "zip"`,
		`"hidden"`:         "no branch",
	} {
		items := compiled(t, address).Validate(decoded(t, value))
		if len(items) != 1 || items[0].Union != UnionNoMatch || items[0].Keyword != "anyOf" {
			t.Fatalf("%s: %+v", value, items)
		}
		if !strings.Contains(items[0].Message, want) || strings.Contains(items[0].Message, "hidden") {
			t.Errorf("%s: %q, want %q", value, items[0].Message, want)
		}
	}
	if items := compiled(t, `{"oneOf":[{"minimum":1},{"minimum":2}]}`).Validate(5); len(items) != 1 || items[0].Union != UnionAmbiguous {
		t.Errorf("ambiguous: %+v", items)
	}
}

// No message holds a value, whatever fails.
func TestMessagesHoldNoValues(t *testing.T) {
	validator := compiled(t, `{"properties":{
		"a":{"const":"x"},"b":{"enum":["x"]},"c":{"pattern":"^x$","maxLength":1},"d":{"type":"integer"},"e":{"maximum":1},
		"f":{"not":{"type":"string"}},"g":{"oneOf":[{"const":"x"},{"const":"y"}]},"h":{"items":{"type":"null"},"uniqueItems":true},
		"i":{"multipleOf":2},"j":{"anyOf":[{"type":"string","pattern":"x"},{"type":"null"}]}}}`)
	value := map[string]any{
		"a": "s3cret", "b": "s3cret", "c": "s3cret", "d": "s3cret", "e": 777333777, "f": "s3cret", "g": "s3cret",
		"h": []any{"s3cret", "s3cret"}, "i": 777333777, "j": "s3cret",
	}
	items := validator.Validate(value)
	if len(items) < len(value) {
		t.Fatalf("only %d failures: %v", len(items), items)
	}
	for _, item := range items {
		if text := fmt.Sprint(item); strings.Contains(text, "s3cret") || strings.Contains(text, "777333777") || item.Message == "" {
			t.Errorf("%q", text)
		}
	}
}

func TestGoValues(t *testing.T) {
	type named int
	validator := compiled(t, `{"type":"object","properties":{"n":{"type":"integer","minimum":1,"maximum":10},
		"f":{"const":0.1},"l":{"type":"array","items":{"type":"string"}},"o":{"type":"object"}}}`)
	for _, n := range []any{
		1, int8(1), int16(1), int32(1), int64(1), uint(1), uint8(1), uint16(1), uint32(1), uint64(1), 1.0, float32(1), json.Number("1.0"), named(1),
	} {
		if items := validator.Validate(map[string]any{"n": n}); items != nil {
			t.Errorf("%T: %v", n, items)
		}
	}
	for value, want := range map[any]string{
		uint64(math.MaxUint64): "/n maximum", 1.5: "/n type", float32(1.5): "/n type", math.NaN(): "/n type", math.Inf(1): "/n type",
		int64(math.MinInt64): "/n minimum", 1e300: "/n maximum", json.Number("11"): "/n maximum", "1": "/n type",
	} {
		if got := places(validator.Validate(map[string]any{"n": value})); !slices.Equal(got, []string{want}) {
			t.Errorf("%T %v: %v, want %s", value, value, got, want)
		}
	}
	list := []string{"a"}
	fine := map[string]any{"f": float32(0.1), "l": list, "o": map[string]string{"x": "y"}}
	if items := validator.Validate(fine); items != nil {
		t.Errorf("typed values: %v", items)
	}
	if got := places(validator.Validate(map[string]any{"l": func() {}})); !slices.Equal(got, []string{"/l type"}) {
		t.Errorf("a function: %v", got)
	}
}

func TestValidateEndsOnCycles(t *testing.T) {
	cycle := map[string]any{}
	cycle["a"] = cycle
	validator := compiled(t, `{"additionalProperties":{"$ref":"#"}}`)
	if items := validator.Validate(cycle); len(items) != 1 {
		t.Errorf("%d failures", len(items))
	}
}

func TestOrderIsStable(t *testing.T) {
	validator := compiled(t, `{"additionalProperties":{"type":"string","minimum":5},"required":["z"]}`)
	value := map[string]any{"b": 1, "a": 2, "c": 3, "d": "x"}
	want := []string{" required", "/a minimum", "/a type", "/b minimum", "/b type", "/c minimum", "/c type"}
	for range 20 {
		if diff := cmp.Diff(want, places(validator.Validate(value))); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	chain := func(links int) string {
		defs := []string{fmt.Sprintf(`"d%d":{"type":"string"}`, links)}
		for i := range links {
			defs = append(defs, fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, i+1))
		}
		return `{"properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{` + strings.Join(defs, ",") + `}}`
	}
	for _, test := range []struct {
		schema string
		kind   CompileKind
		ref    string
	}{
		{`{"type":"whatever"}`, KindParse, ""},
		{`{"properties":{"a":{"minimum":"x"}}}`, KindParse, ""},
		{`{"required":"a"}`, KindParse, ""},
		{`{"properties":[]}`, KindParse, ""},
		{`{"items":[{}]}`, KindParse, ""},
		{`{"pattern":"("}`, KindParse, ""},
		{`{"pattern":"(?=a)"}`, KindParse, ""},
		{`{"minimum":1e999999999}`, KindParse, "/minimum"},
		{`{"properties":{"a":{"multipleOf":1e-999999999}}}`, KindParse, "/properties/a/multipleOf"},
		{`{"$schema":"http://json-schema.org/draft-07/schema#"}`, KindParse, "$schema"},
		{`{"properties":{"a":{"$recursiveRef":"#"}}}`, KindParse, ""},
		{`{"$ref":"#/$defs/none"}`, KindNotFound, "#/$defs/none"},
		{`{"$ref":"#none"}`, KindNotFound, "#none"},
		{`{"$ref":"https://example.com/schema.json"}`, KindNotFound, "https://example.com/schema.json"},
		{`{"$ref":"file:///etc/passwd"}`, KindNotFound, "file:///etc/passwd"},
		{`{"$ref":"other.json"}`, KindNotFound, "other.json"},
		{`{"$ref":"#"}`, KindCircularRef, "#"},
		{`{"properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"$ref":"#/$defs/y"},"y":{"anyOf":[{"$ref":"#/$defs/x"}]}}}`, KindCircularRef, "#/$defs/x"},
		{`{"not":{"$ref":"#"}}`, KindCircularRef, "#"},
		{`{"dependentSchemas":{"a":{"$ref":"#"}}}`, KindCircularRef, "#"},
		{chain(MaxRefDepth), KindMaxDepth, ""},
	} {
		_, err := Compile(parse(t, test.schema))
		var failure *CompileError
		if !errors.As(err, &failure) || failure.Kind != test.kind || failure.Reason == "" {
			t.Errorf("%s: %#v, want %s", test.schema, err, test.kind)
			continue
		}
		if test.ref != "" && strings.ReplaceAll(failure.Ref, "%24", "$") != test.ref {
			t.Errorf("%s: at %q, want %q", test.schema, failure.Ref, test.ref)
		}
		if strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), location) {
			t.Errorf("%s: message %q", test.schema, err)
		}
	}
	for _, schema := range []string{
		chain(MaxRefDepth - 1), `{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, `{"x-own":{"a":[1]},"unknown":true}`,
		`{"properties":{"a":{"$ref":"#"}}}`, `{"items":{"$ref":"#"}}`, `{"default":1e400,"definitions":{"a":{}},"properties":{"b":{"$ref":"#/definitions/a"}}}`,
	} {
		if _, err := Compile(parse(t, schema)); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
	if _, err := Compile(map[string]any{"const": func() {}}); err == nil {
		t.Error("a function is no schema")
	}
}

func TestCompileKeepsNothing(t *testing.T) {
	given := parse(t, `{"properties":{"a":{"enum":["x"]}}}`)
	validator, err := Compile(given)
	if err != nil {
		t.Fatal(err)
	}
	given["properties"].(map[string]any)["a"].(map[string]any)["enum"].([]any)[0] = "y"
	if items := validator.Validate(map[string]any{"a": "x"}); items != nil {
		t.Errorf("the validator follows the caller's schema: %v", items)
	}
}

func TestConcurrentUse(t *testing.T) {
	validator := compiled(t, `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}],"unevaluatedProperties":false}}}`)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 50 {
				if got := len(validator.Validate(map[string]any{"a": i})); got != 1 {
					t.Errorf("%d failures", got)
				}
			}
		})
	}
	group.Wait()
}

// The verdict is the library's; only what is reported is this package's own.
func TestAgreesWithTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := anySchema(3).Draw(t, "schema")
		root, ok := schema.(map[string]any)
		if !ok {
			root = map[string]any{"allOf": []any{schema}}
		}
		root["$defs"] = map[string]any{"d": anySchema(1).Draw(t, "definition")}
		validator, err := Compile(root)
		if err != nil {
			t.Skip(err)
		}
		value := anyValue(3).Draw(t, "value")
		items, theirs := validator.Validate(value), libraryVerdict(t, root, value)
		if (len(items) == 0) != (theirs == nil) {
			t.Fatalf("ours: %v\ntheirs: %v", items, theirs)
		}
	})
}

func libraryVerdict(t *rapid.T, schema map[string]any, value any) error {
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(location, schema); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile(location)
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Validate(value)
}

var propertyName = rapid.SampledFrom([]string{"a", "b", "c"})

func scalar() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.IntRange(-2, 6).AsAny(), rapid.SampledFrom([]string{"", "a", "bb", "日本語"}).AsAny(),
		rapid.SampledFrom([]float64{0.5, 1, 2.5, 1e30}).AsAny(), rapid.SampledFrom([]json.Number{"1.0", "2", "0.1", "1e2"}).AsAny(),
	)
}

func anyValue(depth int) *rapid.Generator[any] {
	if depth == 0 {
		return scalar()
	}
	return rapid.OneOf(
		scalar(), rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] { return anyValue(depth - 1) }), 0, 4).AsAny(),
		rapid.MapOfN(propertyName, rapid.Deferred(func() *rapid.Generator[any] { return anyValue(depth - 1) }), 0, 3).AsAny(),
	)
}

func anySchema(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if rapid.IntRange(0, 9).Draw(t, "boolean") == 0 {
			return rapid.Bool().Draw(t, "verdict")
		}
		schema := map[string]any{}
		for range rapid.IntRange(0, 4).Draw(t, "keywords") {
			keyword := rapid.SampledFrom(keywordNames).Draw(t, "keyword")
			schema[keyword] = keywordValue(t, keyword, depth)
		}
		return schema
	})
}

var keywordNames = []string{
	"type", "const", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern",
	"minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains", "prefixItems", "items", "unevaluatedItems",
	"minProperties", "maxProperties", "required", "dependentRequired", "properties", "patternProperties", "additionalProperties",
	"propertyNames", "dependentSchemas", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "format",
}

func keywordValue(t *rapid.T, keyword string, depth int) any {
	sub := func() any {
		if depth == 0 {
			return map[string]any{"type": typeName.Draw(t, "type")}
		}
		return anySchema(depth-1).Draw(t, keyword)
	}
	switch keyword {
	case "type":
		return typeName.Draw(t, "type")
	case "const":
		return anyValue(1).Draw(t, "const")
	case "enum":
		return rapid.SliceOfN(anyValue(1), 1, 3).Draw(t, "enum")
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return rapid.SampledFrom([]any{1, 2.5, json.Number("3.0")}).Draw(t, "bound")
	case "multipleOf":
		return rapid.SampledFrom([]any{2, 0.5, json.Number("0.1")}).Draw(t, "factor")
	case "pattern":
		return rapid.SampledFrom([]string{"^a", "b+", "語$"}).Draw(t, "pattern")
	case "format":
		return "email"
	case "uniqueItems":
		return true
	case "required":
		return []any{propertyName.Draw(t, "required")}
	case "dependentRequired":
		return map[string]any{propertyName.Draw(t, "name"): []any{propertyName.Draw(t, "needs")}}
	case "properties", "dependentSchemas":
		return map[string]any{propertyName.Draw(t, "name"): sub()}
	case "patternProperties":
		return map[string]any{"^[ab]": sub()}
	case "prefixItems", "allOf", "anyOf", "oneOf":
		list := []any{sub()}
		for range rapid.IntRange(0, 2).Draw(t, "more") {
			list = append(list, sub())
		}
		return list
	case "$ref":
		return "#/$defs/d"
	}
	if strings.HasPrefix(keyword, "min") || strings.HasPrefix(keyword, "max") {
		return rapid.IntRange(0, 3).Draw(t, "limit")
	}
	return sub()
}

var typeName = rapid.SampledFrom([]string{"null", "boolean", "number", "integer", "string", "array", "object"})

func FuzzCompile(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"type":"object"}`, `{}`}, {`{"$ref":"#"}`, `1`}, {`{"minimum":1e400}`, `1e400`}, {`{"properties":{"a":{"$ref":"#"}}}`, `{"a":{}}`},
		{`{"$id":"a","$dynamicRef":"#x","$defs":{"x":{"$id":"b","$dynamicAnchor":"x"}}}`, `[]`}, {`{"dependencies":{"a":[]}}`, `{"a":1}`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, schema, value string) {
		document, err := jsonvalue.DecodeObject([]byte(schema))
		if err != nil {
			return
		}
		instance, err := jsonvalue.Decode([]byte(value))
		if err != nil {
			return
		}
		begin := time.Now()
		if validator, err := Compile(document); err == nil {
			validator.Validate(instance)
		}
		if spent := time.Since(begin); spent > 10*time.Second {
			t.Errorf("it took %v", spent)
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	schema := parse(b, orderSchema)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(schema); err != nil {
			b.Fatal(err)
		}
	}
}

const orderSchema = `{"type":"object","required":["id","lines"],"additionalProperties":false,"properties":{
	"id":{"type":"string","minLength":1,"maxLength":64},"amount":{"type":"integer","minimum":0,"maximum":1000000},
	"level":{"enum":["low","high"]},"note":{"anyOf":[{"type":"string"},{"type":"null"}]},
	"lines":{"type":"array","items":{"type":"object","required":["sku"],"properties":{"sku":{"type":"string"},"n":{"type":"integer"}}}}}}`

func BenchmarkValidateOrder(b *testing.B) {
	validator := compiled(b, orderSchema)
	for name, value := range map[string]any{
		"json": parse(b, `{"id":"a","amount":5,"level":"high","note":null,"lines":[{"sku":"x","n":1},{"sku":"y","n":2}]}`),
		"go": map[string]any{"id": "a", "amount": 5, "level": "high", "note": nil, "lines": []any{
			map[string]any{"sku": "x", "n": 1}, map[string]any{"sku": "y", "n": 2}}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if items := validator.Validate(value); items != nil {
					b.Fatal(items)
				}
			}
		})
	}
}
