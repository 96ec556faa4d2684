package apcore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

type branch struct {
	Name string   `json:"name"`
	More []branch `json:"more"`
}

type listing struct {
	Items []string       `json:"items"`
	Index map[string]int `json:"index"`
	Raw   []byte         `json:"raw"`
}

func callFunc[Out any](t *testing.T, fn func(context.Context, struct{}) (Out, error)) (map[string]any, error) {
	t.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	if err := apcore.Register(registry, "test.output", fn, apcore.Spec{Description: "Returns as told"}); err != nil {
		return nil, err
	}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return executor.Call(t.Context(), "test.output", nil, nil)
}

// A nil slice or map is an empty one to a Go author, and so to the schema.
func TestNilCollectionsAreEmpty(t *testing.T) {
	got, err := callFunc(t, func(context.Context, struct{}) (listing, error) { return listing{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"items": []any{}, "index": map[string]any{}, "raw": ""}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A list of things that contain themselves is an output like any other.
func TestRecursiveOutput(t *testing.T) {
	got, err := callFunc(t, func(context.Context, struct{}) ([]branch, error) {
		return []branch{{Name: "a", More: []branch{{Name: "b"}}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"result": []any{map[string]any{"name": "a", "more": []any{map[string]any{"name": "b", "more": []any{}}}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is wrong with a schema has the standard's code.
func TestSchemaCodes(t *testing.T) {
	for want, schema := range map[apcore.Code]map[string]any{
		apcore.CodeSchemaParse:       {"type": "whatever"},
		apcore.CodeSchemaNotFound:    {"$ref": "#/$defs/none"},
		apcore.CodeSchemaCircularRef: {"$ref": "#/$defs/a", "$defs": map[string]any{"a": map[string]any{"$ref": "#/$defs/b"}, "b": map[string]any{"$ref": "#/$defs/a"}}},
	} {
		module, err := apcore.NewRawFunc(func(context.Context, map[string]any) (map[string]any, error) { return nil, nil },
			apcore.Spec{Description: "Has a bad schema", InputSchema: schema, OutputSchema: map[string]any{}})
		if err != nil {
			t.Fatal(err)
		}
		err = apcore.NewRegistry(apcore.RegistryOptions{}).Register("test.schema", module, apcore.RegisterOptions{})
		if !errors.Is(err, want) {
			t.Errorf("%v: %v, want %s", schema, err, want)
		}
	}
}
