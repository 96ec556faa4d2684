package apcore_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// planted is a secret that stands nowhere else in a fuzzed value.
const planted = "planted-secret-5d1c"

// plant puts a secret beside fuzzed data in every way in which it is secret.
func plant(data, schema obj) (object, withSecrets obj) {
	object = obj{
		"fuzzed": data, "marked": planted, "_secret_x": planted, "apiKey": obj{"inside": []any{planted}},
		"list": []any{obj{"pin": planted}, obj{"password": data, "pin": []any{planted}}}, "codes": []any{planted, planted}, "either": planted,
		"tuple": []any{1, planted}, "free": obj{"any": planted}, "x-7": planted, "again": obj{"again": obj{"marked": planted}}, "module_id": "m",
	}
	secret := obj{"x-sensitive": true}
	return object, obj{
		"properties": obj{
			"fuzzed": schema, "marked": secret, "list": obj{"items": obj{"properties": obj{"pin": secret}}}, "codes": obj{"items": secret},
			"either": obj{"anyOf": []any{schema, obj{"oneOf": []any{obj{"allOf": []any{secret}}}}}}, "tuple": obj{"prefixItems": []any{obj{}, secret}},
			"free": obj{"additionalProperties": secret}, "again": obj{"$ref": "#"},
		},
		"patternProperties": obj{"^x-[0-9]$": secret},
	}
}

// FuzzRedact: a secret never appears in the result, the caller's value stays as
// it was, and redacting what is redacted changes nothing.
func FuzzRedact(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"card":"4111","list":[{"password":1},null,[["x"]]],"author":"a","n":9007199254740993}`, `{"properties":{"card":{"x-sensitive":true}}}`},
		{`{"a":{"b":{"c":null,"d":false}}}`, `{"$ref":"#/properties/fuzzed","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"properties":{"b":{"x-sensitive":true}}}}}`},
		{`{"trace_id":"t","module_id":{"secret":"s"},"ключ":"я","":{"":""}}`, `{"patternProperties":{"[":{"x-sensitive":true},"^t":{"x-sensitive":true}},"additionalProperties":{"items":true}}`},
		{`{"x":"***REDACTED***"}`, `{"anyOf":[{"properties":{"x":{"x-sensitive":"yes"}}},7,null],"properties":[]}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	redactor, err := apcore.NewRedactor(apcore.RedactionConfig{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, rawData, rawSchema []byte) {
		data, dataErr := apcore.DecodeObject(rawData)
		schema, schemaErr := apcore.DecodeObject(rawSchema)
		if dataErr != nil || schemaErr != nil || strings.Contains(string(rawData), planted) {
			return
		}
		value, marks := plant(data, schema)
		before, _ := apcore.EncodeJSON(value)
		redacted := redactor.Redact(value, marks)
		if after, _ := apcore.EncodeJSON(value); string(after) != string(before) {
			t.Fatalf("the caller's value was %s and is %s", before, after)
		}
		text, err := json.Marshal(redacted)
		if err != nil {
			t.Fatalf("the result is no JSON: %v", err)
		}
		if strings.Contains(string(text), planted) {
			t.Fatalf("a secret shows: %s", text)
		}
		if path := unhidden(data, object(redacted["fuzzed"]), schema); path != "" {
			t.Fatalf("%s is marked and shows: %s", path, text)
		}
		if again := redactor.Redact(redacted, marks); !reflect.DeepEqual(again, redacted) {
			t.Fatalf("redacted once: %v\ntwice: %v", redacted, again)
		}
	})
}

// unhidden is an oracle of its own for the plain case: a property that its schema
// marks must be replaced, unless it is null or one of the names that stay.
func unhidden(data, redacted, schema obj) (path string) {
	for name, property := range object(schema["properties"]) {
		value, there := data[name]
		if !there || value == nil {
			continue
		}
		marks := object(property)
		switch name {
		case "trace_id", "span_id", "caller_id", "module_id", "target_id":
		default:
			if marks["x-sensitive"] == true && redacted[name] != masked {
				return "/" + name
			}
		}
		inner, isObject := redacted[name].(obj)
		if original, both := value.(obj); isObject && both {
			if below := unhidden(original, inner, marks); below != "" {
				return "/" + name + below
			}
		}
	}
	return ""
}
