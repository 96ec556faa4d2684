package apcore_test

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// spoils writes to everything it is given.
func spoils(value any) {
	switch value := value.(type) {
	case obj:
		for key, item := range value {
			spoils(item)
			value[key] = "spoiled"
		}
		value["more"] = true
	case []any:
		for i, item := range value {
			spoils(item)
			value[i] = "spoiled"
		}
	}
}

func givenInputs() obj {
	return obj{
		"n": 4.0, "text": "x", "nothing": nil, "list": []any{1.0, obj{"deep": []any{"y"}}}, "object": obj{"k": obj{"l": 1}},
		"password": "hunter2", apcore.ApprovalTokenKey: "id-1",
	}
}

var defaults = obj{"type": "object", "properties": obj{
	"n": obj{"type": "integer"}, "currency": obj{"type": "string", "default": "EUR"},
	"object": obj{"properties": obj{"k": obj{"properties": obj{"m": obj{"default": 5}}}}},
}}

// spoiling is a host in which every participant writes to what it sees.
func spoiling(t *testing.T) *host {
	t.Helper()
	h := newHost(t, apcore.ExecutorOptions{
		RewriteAfterApproval: true,
		ApprovalHandler:      approves(),
		Middleware: []apcore.Middleware{&hook{
			before: func(call *apcore.MiddlewareCall) (obj, error) {
				for key, item := range call.Inputs {
					if key != "n" {
						spoils(item)
					}
				}
				spoils(call.Context.RedactedInputs())
				spoils(call.Context.Serialize())
				if got := call.Context.RedactedInputs()["object"]; !cmp.Equal(got, givenInputs()["object"]) {
					t.Errorf("a hook changed the redacted inputs: %v", got)
				}
				return nil, nil
			},
			after: func(call *apcore.MiddlewareCall, output obj) (obj, error) {
				spoils(call.Inputs)
				spoils(output)
				return nil, nil
			},
		}},
	})
	return h.module("m", func(_ context.Context, in obj, _ *apcore.Context) (obj, error) {
		out := obj{"got": in["list"]}
		spoils(in)
		return out, nil
	}, gated, inputSchema(obj{"properties": obj{"n": obj{"type": "integer"}}}))
}

// TestInputsStayAsTheyAre is scenario 60: a call changes nothing in its caller's
// map, whoever writes to the inputs on the way, also when it fails.
func TestInputsStayAsTheyAre(t *testing.T) {
	tests := []struct {
		name   string
		schema obj
		code   apcore.Code
	}{
		{"success", defaults, ""},
		{"validation fails", obj{"required": []any{"absent"}, "properties": defaults["properties"]}, apcore.CodeSchemaValidation},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHost(t, apcore.ExecutorOptions{ApprovalHandler: approves()}).module("m", func(_ context.Context, in obj, _ *apcore.Context) (obj, error) {
				spoils(in)
				return obj{}, nil
			}, gated, inputSchema(test.schema))
			inputs := givenInputs()
			for range 2 {
				if _, err := h.call("m", inputs, nil); apcore.CodeOf(err) != test.code {
					t.Errorf("%v, want %q", err, test.code)
				}
				if diff := cmp.Diff(givenInputs(), inputs); diff != "" {
					t.Errorf("inputs (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestInputsAreShared is scenario 60: one map serves 50 calls at a time. Run
// with -race.
func TestInputsAreShared(t *testing.T) {
	h := spoiling(t)
	inputs := givenInputs()
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			if _, err := h.call("m", inputs, nil); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if h.effects.count() != 50 {
		t.Errorf("%d effects", h.effects.count())
	}
	if diff := cmp.Diff(givenInputs(), inputs); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}
}

// TestOutputIsACopy: a module may keep and change what it returned.
func TestOutputIsACopy(t *testing.T) {
	kept := obj{"list": []any{1}}
	h := newHost(t, apcore.ExecutorOptions{}).module("m", func(context.Context, obj, *apcore.Context) (obj, error) { return kept, nil })
	outcome, err := h.call("m", nil, nil)
	h.wants(err, "", 1)
	spoils(kept)
	if diff := cmp.Diff(obj{"list": []any{1}}, outcome.Output); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
