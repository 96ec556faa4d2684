package apcore_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// enforced is one value against one schema of a property "v", or of the root.
var enforced = []struct {
	name   string
	schema string
	value  string
	code   apcore.Code
	places string // path keyword, of each failure
}{
	{"required", `{"required":["v"]}`, `{}`, apcore.CodeSchemaValidation, " required"},
	{"no required", `{"required":[]}`, `{}`, "", ""},
	{"type", `{"properties":{"v":{"type":"integer"}}}`, `{"v":"42"}`, apcore.CodeSchemaValidation, "/v type"},
	{"integral", `{"properties":{"v":{"type":"integer"}}}`, `{"v":4.0}`, "", ""},
	{"fraction", `{"properties":{"v":{"type":"integer"}}}`, `{"v":4.5}`, apcore.CodeSchemaValidation, "/v type"},
	{"null", `{"properties":{"v":{"type":"string"}}}`, `{"v":null}`, apcore.CodeSchemaValidation, "/v type"},
	{"type list", `{"properties":{"v":{"type":["string","null"]}}}`, `{"v":null}`, "", ""},
	{"enum", `{"properties":{"v":{"enum":["a",null]}}}`, `{"v":"b"}`, apcore.CodeSchemaValidation, "/v enum"},
	{"enum with null", `{"properties":{"v":{"enum":["a",null]}}}`, `{"v":null}`, "", ""},
	{"minimum", `{"properties":{"v":{"minimum":2}}}`, `{"v":1}`, apcore.CodeSchemaValidation, "/v minimum"},
	{"maximum", `{"properties":{"v":{"maximum":2}}}`, `{"v":3}`, apcore.CodeSchemaValidation, "/v maximum"},
	{"big maximum", `{"properties":{"v":{"maximum":9007199254740992}}}`, `{"v":9007199254740993}`, apcore.CodeSchemaValidation, "/v maximum"},
	{"pattern", `{"properties":{"v":{"pattern":"^a+$"}}}`, `{"v":"ab"}`, apcore.CodeSchemaValidation, "/v pattern"},
	{"nested required", `{"properties":{"v":{"properties":{"w":{"required":["x"]}}}}}`, `{"v":{"w":{}}}`, apcore.CodeSchemaValidation, "/v/w required"},
	{"items", `{"properties":{"v":{"items":{"type":"string"}}}}`, `{"v":["a",1,"b",2]}`, apcore.CodeSchemaValidation, "/v/1 type,/v/3 type"},
	{"ref", `{"$defs":{"n":{"required":["x"],"properties":{"next":{"$ref":"#/$defs/n"}}}},"properties":{"v":{"$ref":"#/$defs/n"}}}`, `{"v":{"x":1,"next":{"x":1,"next":{}}}}`, apcore.CodeSchemaValidation, "/v/next/next required"},
	{"oneOf none", `{"properties":{"v":{"oneOf":[{"type":"string"},{"type":"boolean"}]}}}`, `{"v":1}`, apcore.CodeSchemaUnionNoMatch, "/v oneOf"},
	{"oneOf two", `{"properties":{"v":{"oneOf":[{"type":"integer"},{"type":"number"}]}}}`, `{"v":1}`, apcore.CodeSchemaUnionAmbiguous, "/v oneOf"},
	{"oneOf one", `{"properties":{"v":{"oneOf":[{"type":"integer"},{"type":"number"}]}}}`, `{"v":1.5}`, "", ""},
	{"anyOf none, deep", `{"properties":{"v":{"items":{"anyOf":[{"type":"string"},{"type":"null"}]}}}}`, `{"v":["a",1]}`, apcore.CodeSchemaUnionNoMatch, "/v/1 anyOf"},
	{"anyOf two", `{"properties":{"v":{"anyOf":[{"type":"integer"},{"type":"number"}]}}}`, `{"v":1}`, "", ""},
	{"extra, nothing said", `{"properties":{"v":{}}}`, `{"v":1,"w":2}`, "", ""},
	{"extra, allowed", `{"properties":{"v":{}},"additionalProperties":true}`, `{"v":1,"w":2}`, "", ""},
	{"extra, forbidden", `{"properties":{"v":{}},"additionalProperties":false}`, `{"v":1,"w":2}`, apcore.CodeSchemaValidation, " additionalProperties"},
	{"extra, of a schema", `{"properties":{"v":{}},"additionalProperties":{"type":"string"}}`, `{"v":1,"w":2}`, apcore.CodeSchemaValidation, "/w type"},
	{"extra, fits the schema", `{"properties":{"v":{}},"additionalProperties":{"type":"string"}}`, `{"v":1,"w":"2"}`, "", ""},
	{"format", `{"properties":{"v":{"format":"email"}}}`, `{"v":"nowhere"}`, "", ""},
	{"unknown keywords", `{"x-any":1,"properties":{"v":{"x-mine":1,"unheard":true}}}`, `{"v":1}`, "", ""},
	{"all failures", `{"required":["u"],"properties":{"v":{"type":"string"},"w":{"maximum":1}}}`, `{"v":1,"w":2}`, apcore.CodeSchemaValidation, " required,/v type,/w maximum"},
}

// Scenario 59: what a schema declares is enforced, on both sides of a module, in
// calls as in checks, with place and keyword; nothing runs behind bad inputs and
// no bad output comes out.
func TestDeclaredIsEnforced(t *testing.T) {
	for _, test := range enforced {
		t.Run(test.name, func(t *testing.T) {
			schema, value := parseObject(t, test.schema), parseObject(t, test.value)
			h := newHost(t, apcore.ExecutorOptions{})
			h.module("in", nil, inputSchema(schema))
			h.module("out", func(context.Context, obj, *apcore.Context) (obj, error) { return value, nil }, outputSchema(schema))
			for name, do := range map[string]func() error{
				"inputs": func() error { _, err := h.call("in", value, nil); return err },
				"output": func() error { _, err := h.call("out", nil, nil); return err },
				"check": func() error {
					result := h.Validate(t.Context(), "in", value, nil)
					if len(result.Errors) == 0 {
						return nil
					}
					return result.Errors[0]
				},
			} {
				err := do()
				places := failedPlaces(err)
				slices.Sort(places)
				if apcore.CodeOf(err) != test.code || strings.Join(places, ",") != test.places {
					t.Errorf("%s: %v at %q; want %q at %q", name, err, places, test.code, test.places)
				}
				if err == nil {
					continue
				}
				for _, item := range list(apcore.AsError(err).Details["errors"]) {
					if fields := object(item); len(fields) != 3 || text(fields["message"]) == "" {
						t.Errorf("%s: item %v", name, item)
					}
				}
			}
			ran := slices.DeleteFunc(h.effects.all(), func(id string) bool { return id == "out" })
			if (len(ran) == 1) != (test.code == "") {
				t.Errorf("the module ran: %v", ran)
			}
		})
	}
}

// Scenario 59: what was validated is what runs: a middleware that makes good
// inputs bad is found out.
func TestMiddlewareCannotBreakTheSchema(t *testing.T) {
	schema := obj{"properties": obj{"v": obj{"type": "integer"}}}
	for name, test := range map[string]struct {
		hook    *hook
		code    apcore.Code
		effects int
	}{
		"leaves them":       {&hook{}, "", 1},
		"replaces inputs":   {&hook{before: func(*apcore.MiddlewareCall) (obj, error) { return obj{"v": "bad"}, nil }}, apcore.CodeSchemaValidation, 0},
		"changes in place":  {&hook{before: func(c *apcore.MiddlewareCall) (obj, error) { c.Inputs["v"] = "bad"; return nil, nil }}, apcore.CodeSchemaValidation, 0},
		"makes them better": {&hook{before: func(*apcore.MiddlewareCall) (obj, error) { return obj{"v": 2}, nil }}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, apcore.ExecutorOptions{Middleware: []apcore.Middleware{test.hook}})
			var saw any
			h.module("m", func(_ context.Context, in obj, _ *apcore.Context) (obj, error) { saw = in["v"]; return obj{}, nil }, inputSchema(schema))
			_, err := h.call("m", obj{"v": 1}, nil)
			h.wants(err, test.code, test.effects)
			if want := map[string]any{"leaves them": 1, "makes them better": 2}[name]; fmt.Sprint(saw) != fmt.Sprint(want) {
				t.Errorf("the module saw %v, want %v", saw, want)
			}
		})
	}
}

// Scenario 60: neither a check nor a call nor a resumed call changes the caller's
// map, also with 50 at once; a check asks nobody and has no effect. Run with
// -race.
func TestOneMapServesAll(t *testing.T) {
	handler := &answering{result: &apcore.ApprovalResult{Status: apcore.ApprovalPending, ApprovalID: "id-1"}}
	h := newHost(t, apcore.ExecutorOptions{ApprovalHandler: handler})
	h.module("m", func(_ context.Context, in obj, _ *apcore.Context) (obj, error) { spoils(in); return obj{}, nil }, gated, inputSchema(defaults))
	inputs := givenInputs()
	same := func(when string) {
		t.Helper()
		if diff := cmp.Diff(givenInputs(), inputs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	result := h.Validate(t.Context(), "m", inputs, nil)
	if !result.Valid || !result.RequiresApproval || h.effects.count() != 0 || len(handler.asked.all()) != 0 {
		t.Errorf("a check: %+v; effects %v; asked %v", result, h.effects.all(), handler.asked.all())
	}
	same("checked")
	_, err := h.call("m", inputs, nil)
	h.wants(err, apcore.CodeApprovalPending, 0)
	same("pending")
	handler.result = &apcore.ApprovalResult{Status: apcore.ApprovalApproved}
	_, err = h.call("m", inputs, nil)
	h.wants(err, "", 1)
	same("resumed")
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			if i%2 == 0 {
				h.Validate(t.Context(), "m", inputs, nil)
			} else if _, err := h.call("m", inputs, nil); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	h.wants(nil, "", 26)
	same("shared")
}
