package redact

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

func standard(t testing.TB) *Redactor {
	t.Helper()
	redactor, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	return redactor
}

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	object, err := jsonvalue.DecodeObject([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return object
}

// Wherever a schema can say that a value is secret, it is heard.
func TestWaysToMark(t *testing.T) {
	for schema, test := range map[string][2]string{
		`{"properties":{"a":{"x-sensitive":true}}}`:                                                                     {`{"a":1,"b":1}`, `{"a":"-","b":1}`},
		`{"properties":{"a":{"x-sensitive":false}}}`:                                                                    {`{"a":1}`, `{"a":1}`},
		`{"properties":{"a":{"x-sensitive":true}},"required":["a"]}`:                                                    {`{"a":null}`, `{"a":null}`},
		`{"properties":{"a":{"x-sensitive":true,"type":"object"}}}`:                                                     {`{"a":{"b":1}}`, `{"a":"-"}`},
		`{"patternProperties":{"^x":{"x-sensitive":true}}}`:                                                             {`{"x1":1,"y":1}`, `{"x1":"-","y":1}`},
		`{"properties":{"a":{}},"additionalProperties":{"x-sensitive":true}}`:                                           {`{"a":1,"b":1}`, `{"a":1,"b":"-"}`},
		`{"unevaluatedProperties":{"x-sensitive":true}}`:                                                                {`{"a":1}`, `{"a":"-"}`},
		`{"properties":{"a":{"items":{"x-sensitive":true}}}}`:                                                           {`{"a":[1,null,[2]]}`, `{"a":["-",null,"-"]}`},
		`{"properties":{"a":{"prefixItems":[{},{"x-sensitive":true}],"items":{}}}}`:                                     {`{"a":[1,2,3]}`, `{"a":[1,"-",3]}`},
		`{"properties":{"a":{"contains":{"x-sensitive":true}}}}`:                                                        {`{"a":[1]}`, `{"a":["-"]}`},
		`{"properties":{"a":{"items":{"items":{"properties":{"b":{"x-sensitive":true}}}}}}}`:                            {`{"a":[[{"b":1,"c":1}]]}`, `{"a":[[{"b":"-","c":1}]]}`},
		`{"anyOf":[{"properties":{"a":{"oneOf":[{"type":"null"},{"allOf":[{"x-sensitive":true}]}]}}}]}`:                 {`{"a":1}`, `{"a":"-"}`},
		`{"if":{},"then":{"properties":{"a":{"x-sensitive":true}}},"else":{"properties":{"b":{"x-sensitive":true}}}}`:   {`{"a":1,"b":1}`, `{"a":"-","b":"-"}`},
		`{"dependentSchemas":{"b":{"properties":{"a":{"x-sensitive":true}}}}}`:                                          {`{"a":1}`, `{"a":"-"}`},
		`{"properties":{"a":{"$ref":"#/$defs/s%20t"}},"$defs":{"s t":{"x-sensitive":true}}}`:                            {`{"a":1}`, `{"a":"-"}`},
		`{"properties":{"a":{"$ref":"#/$defs/s~1t"}},"$defs":{"s/t":{"x-sensitive":true}}}`:                             {`{"a":1}`, `{"a":"-"}`},
		`{"properties":{"a":{"$ref":"#/allOf/0"}},"allOf":[{"x-sensitive":true}]}`:                                      {`{"a":1}`, `{"a":"-"}`},
		`{"properties":{"a":{"$ref":"#secret"}},"$defs":{"s":{"$anchor":"secret","x-sensitive":true}}}`:                 {`{"a":1}`, `{"a":"-"}`},
		`{"properties":{"a":{"$dynamicRef":"#secret"}},"$defs":{"s":[{"$dynamicAnchor":"secret","x-sensitive":true}]}}`: {`{"a":1}`, `{"a":"-"}`},
		`{"$id":"https://x/y","properties":{"a":{"$ref":"y#/$defs/s"}},"$defs":{"s":{"x-sensitive":true}}}`:             {`{"a":1}`, `{"a":"-"}`},
		`{"properties":{"a":{"$ref":"#"},"b":{"x-sensitive":true}}}`:                                                    {`{"a":{"a":{"b":1}}}`, `{"a":{"a":{"b":"-"}}}`},
		`{"properties":{"a":{"$ref":"#/none/0/x"},"b":{"$ref":"#/properties/a/$ref"}}}`:                                 {`{"a":1,"b":1}`, `{"a":1,"b":1}`},
		`{"properties":{"module_id":{"x-sensitive":true,"properties":{"p":{"x-sensitive":true}}}}}`:                     {`{"module_id":{"p":1}}`, `{"module_id":{"p":"-"}}`},
		`{"properties":{"a":true},"items":false,"anyOf":[true]}`:                                                        {`{"a":1}`, `{"a":1}`},
	} {
		redactor, err := New(Config{SensitiveKeys: []string{}, Replacement: "-"})
		if err != nil {
			t.Fatal(err)
		}
		data, document := parse(t, test[0]), parse(t, schema)
		if diff := cmp.Diff(parse(t, test[1]), redactor.Object(data, document)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", schema, diff)
		}
		if diff := cmp.Diff(parse(t, test[0]), data); diff != "" {
			t.Errorf("%s changed its input:\n%s", schema, diff)
		}
	}
}

func TestNames(t *testing.T) {
	redactor := standard(t)
	for name, want := range map[string]bool{
		"password": true, "userPassword": true, "PASSWORD": true, "X-API-KEY": true, "apiKey": true, "api key": true, "AccessKey": true,
		"AWSAccessKeyID": true, "privateKey2": true, "_secret_x": true, "author": true, "_approval_token": true, "sessionId": true,
		"user_id": false, "key": false, "access": false, "pass": false, "accesskey": false, "": false,
		"trace_id": false, "span_id": false, "caller_id": false, "module_id": false, "target_id": false, "Trace_id": false,
	} {
		for range 2 { // decided, then remembered
			if got := redactor.sensitive(name); got != want {
				t.Errorf("%q: %v", name, got)
			}
		}
	}
	own, err := New(Config{SensitiveKeys: []string{"trace_id", "*_id", "[ab]", "x?z"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"trace_id": false, "user_id": true, "USER_ID": true, "id_x": false, "a": false, "[ab]": true, "x.z": true, "xz": false} {
		if got := own.sensitive(name); got != want {
			t.Errorf("own list, %q: %v", name, got)
		}
	}
}

// Names come from outside; remembering them must not fill the memory.
func TestNamesAreBounded(t *testing.T) {
	redactor := standard(t)
	for i := range 2 * maxNames {
		redactor.Object(map[string]any{fmt.Sprint("name", i): 1, strings.Repeat("x", maxNameLength+1): 1}, nil)
	}
	count := 0
	redactor.names.known.Range(func(name, _ any) bool {
		count++
		if len(name.(string)) > maxNameLength {
			t.Errorf("a name of %d bytes is kept", len(name.(string)))
		}
		return true
	})
	if count == 0 || count > maxNames {
		t.Errorf("%d names are kept", count)
	}
	if got := redactor.Object(map[string]any{"one_more_password": 1}, nil); got["one_more_password"] != Mask {
		t.Error("a name beyond the bound is not judged")
	}
}

type word string

func TestPatterns(t *testing.T) {
	redactor, err := New(Config{SensitiveKeys: []string{}, Patterns: []string{`sk-\d+`, `^\s+$|card`}, Replacement: "-"})
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]any{
		"a": "my SK-12", "b": []any{"CARD", "x", []any{"  "}}, "c": 12, "sk-1": "x", "trace_id": "sk-1", "d": map[string]any{"e": "sk-1"}, "f": "sk", "g": word("sk-1"),
	}
	want := map[string]any{
		"a": "-", "b": []any{"-", "x", []any{"-"}}, "c": 12, "sk-1": "x", "trace_id": "sk-1", "d": map[string]any{"e": "-"}, "f": "sk", "g": "-",
	}
	if diff := cmp.Diff(want, redactor.Object(data, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

type login struct {
	User     string `json:"user"`
	Password string `json:"password"`
}

// Values that are no plain JSON must not carry secrets past the rules.
func TestGoValues(t *testing.T) {
	cycle := map[string]any{"password": "s3cret"}
	cycle["again"] = cycle
	data := map[string]any{
		"login": login{"a", "s3cret"}, "list": []login{{"b", "s3cret"}}, "map": map[string]string{"token": "s3cret", "x": "y"},
		"pointer": &login{"c", "s3cret"}, "number": json.Number("1.0"), "raw": json.RawMessage(`{"secret":"s3cret"}`),
		"function": func() {}, "bytes": []byte("x"),
	}
	want := map[string]any{
		"login": map[string]any{"user": "a", "password": Mask}, "list": []any{map[string]any{"user": "b", "password": Mask}},
		"map": map[string]any{"token": Mask, "x": "y"}, "pointer": map[string]any{"user": "c", "password": Mask}, "number": json.Number("1.0"),
		"raw": map[string]any{"secret": Mask}, "function": Mask, "bytes": "eA==",
	}
	if diff := cmp.Diff(want, standard(t).Object(data, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := jsonvalue.Encode(standard(t).Object(cycle, nil)["again"].(map[string]any)["password"])
	if err != nil || strings.Contains(string(text), "s3cret") {
		t.Errorf("a cycle: %s, %v", text, err)
	}
}

// A schema that leads to itself in many ways is no reason to take long.
func TestManyWaysToOneSchema(t *testing.T) {
	schema := parse(t, `{"$ref":"#/$defs/d","$defs":{"d":{"allOf":[{"properties":{"n":{"$ref":"#/$defs/d"}}},{"properties":{"n":{"$ref":"#/$defs/d"}}}],
		"properties":{"n":{"anyOf":[{"$ref":"#/$defs/d"},{"$ref":"#"}]},"s":{"x-sensitive":true}}}}}`)
	data := map[string]any{"s": 1}
	for range 200 {
		data = map[string]any{"n": data, "s": 1}
	}
	begin := time.Now()
	got := standard(t).Object(data, schema)
	if spent := time.Since(begin); spent > 5*time.Second {
		t.Errorf("it took %v", spent)
	}
	for range 200 {
		if got["s"] != Mask {
			t.Fatal("a secret is shown")
		}
		got = got["n"].(map[string]any)
	}
}

func TestSecretsNeverGetThrough(t *testing.T) {
	redactor := standard(t)
	var anyValue func(depth int) *rapid.Generator[any]
	name := rapid.SampledFrom([]string{"a", "token", "Password", "x", "trace_id", "X-Auth"})
	anyValue = func(depth int) *rapid.Generator[any] {
		leaf := rapid.OneOf(rapid.Just[any]("s3cret"), rapid.Just[any](nil), rapid.Int().AsAny())
		if depth == 0 {
			return leaf
		}
		deeper := rapid.Deferred(func() *rapid.Generator[any] { return anyValue(depth - 1) })
		return rapid.OneOf(leaf, rapid.SliceOfN(deeper, 0, 3).AsAny(), rapid.MapOfN(name, deeper, 0, 3).AsAny())
	}
	rapid.Check(t, func(t *rapid.T) {
		data := map[string]any{"password": anyValue(2).Draw(t, "secret"), "open": anyValue(3).Draw(t, "open")}
		before, _ := jsonvalue.Encode(data)
		got := redactor.Object(data, nil)
		if after, _ := jsonvalue.Encode(data); string(after) != string(before) {
			t.Fatalf("%s became %s", before, after)
		}
		checkRedacted(t, data, got)
		if again := redactor.Object(got, nil); cmp.Diff(got, again) != "" {
			t.Fatalf("redacting twice: %v", again)
		}
	})
}

var secretNames = []string{"password", "token", "Password", "X-Auth"}

// checkRedacted compares a value with its redacted copy, name by name.
func checkRedacted(t *rapid.T, data, got any) {
	switch data := data.(type) {
	case map[string]any:
		copied := got.(map[string]any)
		for name, value := range data {
			if !slices.Contains(secretNames, name) || value == nil {
				checkRedacted(t, value, copied[name])
			} else if copied[name] != Mask {
				t.Fatalf("%s shows %v", name, copied[name])
			}
		}
	case []any:
		for i, item := range data {
			checkRedacted(t, item, got.([]any)[i])
		}
	default:
		if data != got {
			t.Fatalf("%v became %v", data, got)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	redactor := standard(t)
	schema := parse(t, `{"properties":{"a":{"$ref":"#/$defs/s"}},"$defs":{"s":{"x-sensitive":true}}}`)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 50 {
				if got := redactor.Object(map[string]any{"a": 1, fmt.Sprint("token", i): 1}, schema); got["a"] != Mask {
					t.Errorf("%v", got)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkObject(b *testing.B) {
	redactor := standard(b)
	schema := parse(b, `{"properties":{"id":{},"card":{"x-sensitive":true},"lines":{"type":"array","items":{"$ref":"#/$defs/l"}}},"$defs":{"l":{"properties":{"sku":{}}}}}`)
	data := map[string]any{"id": "a", "card": "1", "password": "x", "lines": []any{map[string]any{"sku": "x"}, map[string]any{"sku": "y"}}}
	b.ReportAllocs()
	for b.Loop() {
		redactor.Object(data, schema)
	}
}
