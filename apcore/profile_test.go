package apcore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

func parseObject(t testing.TB, text string) map[string]any {
	t.Helper()
	object, err := apcore.DecodeObject([]byte(text))
	must(t, err)
	return object
}

// A23: closed objects, everything required, optional things nullable in exactly
// one way, authors' unions left alone.
func TestStrictSchema(t *testing.T) {
	for name, test := range map[string]struct{ given, want string }{
		"optional": {
			`{"type":"object","properties":{"b":{"type":"string","x-sensitive":true,"default":"x"},"a":{"type":"integer"}},"required":["a"]}`,
			`{"type":"object","properties":{"b":{"type":["string","null"]},"a":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}`,
		},
		"without type": {
			`{"properties":{"r":{"$ref":"#/$defs/n"},"u":{"oneOf":[{"type":"string"},{"type":"null"}]}},"$defs":{"n":{"type":"object","properties":{"v":{"type":["integer","null"]}}}}}`,
			`{"properties":{"r":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]},"u":{"anyOf":[{"oneOf":[{"type":"string"},{"type":"null"}]},{"type":"null"}]}},"required":["r","u"],"additionalProperties":false,
			  "$defs":{"n":{"type":"object","properties":{"v":{"type":["integer","null"]}},"required":["v"],"additionalProperties":false}}}`,
		},
		"nested": {
			`{"type":"array","items":{"type":"object","properties":{"x-name":{"type":"string"}},"required":["x-name"]}}`,
			`{"type":"array","items":{"type":"object","properties":{"x-name":{"type":"string"}},"required":["x-name"],"additionalProperties":false}}`,
		},
		"keywords anywhere": {
			`{"patternProperties":{"^x-":{"default":1,"x-a":1}},"additionalProperties":{"x-b":1,"not":{"x-c":1,"default":2}},"if":{"contains":{"x-d":1}},"enum":[{"x-e":1,"default":3}]}`,
			`{"patternProperties":{"^x-":{}},"additionalProperties":{"not":{}},"if":{"contains":{}},"enum":[{"x-e":1,"default":3}]}`,
		},
		"a property named default": {
			`{"properties":{"default":{"type":"string","default":"x"}},"required":["default"]}`,
			`{"properties":{"default":{"type":"string"}},"required":["default"],"additionalProperties":false}`,
		},
		"inert properties": {`{"type":"string","properties":{"a":{"type":"string"}}}`, `{"type":"string","properties":{"a":{"type":"string"}}}`},
		"no properties":    {`{"type":"object"}`, `{"type":"object"}`},
	} {
		given := parseObject(t, test.given)
		got, err := apcore.StrictSchema(given)
		must(t, err)
		if diff := cmp.Diff(wire(parseObject(t, test.want)), wire(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(parseObject(t, test.given), given); diff != "" {
			t.Errorf("%s: the schema was changed:\n%s", name, diff)
		}
	}
}

func TestProfiles(t *testing.T) {
	r := apcore.NewRegistry(apcore.RegistryOptions{})
	must(t, apcore.Register(r, "mail.send", func(context.Context, struct {
		To     string `json:"to"`
		Secret string `json:"secret,omitempty" apcore:"sensitive"`
	}) (map[string]any, error) {
		return nil, nil
	}, apcore.Spec{
		Description: "Sends mail", Annotations: apcore.Annotations{Idempotent: true, RequiresApproval: true},
		Metadata: map[string]any{"x-llm-description": "Use it to send mail"}, Examples: []apcore.Example{{Title: "one", Inputs: map[string]any{"to": "a"}}},
	}))
	d := r.Definition("mail.send")
	for profile, want := range map[apcore.Profile]string{
		apcore.ProfileGeneric: `{"module_id":"mail.send","description":"Sends mail","output_schema":{"type":"object"},
			"input_schema":{"type":"object","properties":{"to":{"type":"string"},"secret":{"type":"string","x-sensitive":true}},"required":["to"]}}`,
		apcore.ProfileMCP: `{"name":"mail.send","description":"Sends mail","annotations":{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":true},
			"inputSchema":{"type":"object","properties":{"to":{"type":"string"},"secret":{"type":"string","x-sensitive":true}},"required":["to"]},
			"_meta":{"cacheable":false,"cacheTtl":0,"cacheKeyFields":null,"paginated":false,"paginationStyle":"cursor","requiresApproval":true}}`,
		apcore.ProfileOpenAI: `{"type":"function","function":{"name":"mail_send","description":"Use it to send mail","strict":true,
			"parameters":{"type":"object","properties":{"to":{"type":"string"},"secret":{"type":["string","null"]}},"required":["secret","to"],"additionalProperties":false}}}`,
		apcore.ProfileAnthropic: `{"name":"mail_send","description":"Use it to send mail","input_examples":[{"to":"a"}],
			"input_schema":{"type":"object","properties":{"to":{"type":"string"},"secret":{"type":"string"}},"required":["to"]}}`,
	} {
		got, err := d.Export(profile)
		must(t, err)
		if diff := cmp.Diff(wire(parseObject(t, want)), wire(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", profile, diff)
		}
	}
	if _, err := d.Export("other"); !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("unknown profile: %v", err)
	}
	plain, err := r.ExportSchema("mail.send", false)
	must(t, err)
	strict, err := r.ExportSchema("mail.send", true)
	must(t, err)
	if len(plain) != 4 || len(strict) != 4 || object(strict["input_schema"])["additionalProperties"] != false || object(plain["input_schema"])["additionalProperties"] != nil {
		t.Errorf("plain %v\nstrict %v", plain, strict)
	}
	if unknown, err := r.ExportSchema("no.such", true); unknown != nil || err != nil {
		t.Errorf("unknown module: %v, %v", unknown, err)
	}
}

// Whatever place a keyword stands in, models see no x- keyword, and the text that
// is meant for them.
func TestModelsSeeNoExtensions(t *testing.T) {
	r := quiet()
	schema := parseObject(t, `{"properties":{"x-p":{"description":"for people","x-llm-description":"for models"},
		"map":{"type":"object","additionalProperties":{"x-sensitive":true,"type":"string","description":"d","x-llm-description":"m"}}},"x-root":1}`)
	must(t, r.Register("a.b", &testModule{input: schema}, apcore.RegisterOptions{}))
	for profile, want := range map[apcore.Profile]string{
		apcore.ProfileAnthropic: `{"properties":{"x-p":{"description":"for models"},"map":{"type":"object","additionalProperties":{"type":"string","description":"m"}}}}`,
		apcore.ProfileOpenAI: `{"properties":{"x-p":{"anyOf":[{"description":"for models"},{"type":"null"}]},
			"map":{"type":["object","null"],"additionalProperties":{"type":"string","description":"m"}}},"required":["map","x-p"],"additionalProperties":false}`,
	} {
		exported, err := r.Definition("a.b").Export(profile)
		must(t, err)
		got := object(exported["input_schema"])
		if profile == apcore.ProfileOpenAI {
			got = object(object(exported["function"])["parameters"])
		}
		if diff := cmp.Diff(wire(parseObject(t, want)), wire(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", profile, diff)
		}
	}
}
