package apcore

import (
	"context"
	"reflect"
	"strings"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
	"github.com/apcore-temporal/apcore-temporal/apcore/internal/schema"
)

// Spec describes a function module. Only Description is required; the schemas
// are inferred from the Go types unless they are given.
type Spec struct {
	Description   string
	Annotations   Annotations
	Name          string
	Documentation string
	Tags          []string
	// Version is a semantic version; empty means 1.0.0.
	Version  string
	Metadata map[string]any
	Examples []Example
	// Timeout is the module's own timer: zero means the executor's default,
	// [NoTimeout] none.
	Timeout time.Duration
	// InputSchema replaces the inferred schema; required for [NewRawFunc].
	InputSchema map[string]any
	// OutputSchema replaces the inferred schema; required for [NewRawFunc].
	OutputSchema map[string]any
}

// FuncModule is a module made of a function, see [NewFunc] and [NewRawFunc].
type FuncModule struct {
	spec    Spec
	execute func(ctx context.Context, inputs map[string]any) (map[string]any, error)
	// begin is how the executor runs a typed function; nil for a raw one. The
	// inputs are JSON and may only be read.
	begin func(inputs map[string]any) invocation
}

// NewFunc makes a module of an ordinary function (apcore §5.11). In and Out are
// structs or maps with JSON tags; the schemas come from them, see the package
// documentation for the tags. An Out that is no object arrives as
// {"result": value}. fn finds the call's [Context] with [FromContext].
//
// It fails with FUNC_MISSING_TYPE_HINT or FUNC_MISSING_RETURN_TYPE when a type
// has no schema, and with GENERAL_INVALID_INPUT when Description is empty.
func NewFunc[In, Out any](fn func(ctx context.Context, in In) (Out, error), spec Spec) (*FuncModule, error) {
	if fn == nil {
		return nil, NewError(CodeInvalidInput, "the function of a module is nil")
	}
	if spec.InputSchema == nil {
		inferred, err := schema.Infer(reflect.TypeFor[In]())
		if err != nil {
			return nil, NewError(CodeFuncMissingTypeHint, "no input schema for %v: %w", reflect.TypeFor[In](), err)
		}
		spec.InputSchema = inferred
	}
	wrap, inferredOutput := !isObjectType(reflect.TypeFor[Out]()), spec.OutputSchema == nil
	if inferredOutput {
		inferred, err := schema.Infer(reflect.TypeFor[Out]())
		if err != nil {
			return nil, NewError(CodeFuncMissingReturnType, "no output schema for %v: %w", reflect.TypeFor[Out](), err)
		}
		if wrap {
			inferred = resultSchema(inferred)
		}
		spec.OutputSchema = inferred
	}
	shape := newShape(reflect.TypeFor[In](), reflect.TypeFor[Out](), wrap)
	if inferredOutput {
		shape.schema = spec.OutputSchema
	}
	module, err := newFuncModule(spec, func(ctx context.Context, inputs map[string]any) (map[string]any, error) {
		checked, err := jsonvalue.CloneObject(inputs)
		if err != nil {
			return nil, NewError(CodeInvalidInput, "inputs are no JSON object: %w", err)
		}
		call := &typedCall[In, Out]{fn: fn, shape: shape, inputs: checked}
		if err := call.run(ctx, nil); err != nil {
			return nil, err
		}
		return call.result()
	})
	if err == nil {
		module.begin = func(inputs map[string]any) invocation { return beginTyped(fn, shape, inputs) }
	}
	return module, err
}

// NewRawFunc makes a module of a function over JSON objects, for those who
// bring their own schemas; both are required. A nil result means {}. Numbers in
// inputs are what the caller gave: Go numbers in process, json.Number when they
// came as JSON.
func NewRawFunc(fn func(ctx context.Context, inputs map[string]any) (map[string]any, error), spec Spec) (*FuncModule, error) {
	switch {
	case fn == nil:
		return nil, NewError(CodeInvalidInput, "the function of a module is nil")
	case spec.InputSchema == nil:
		return nil, NewError(CodeFuncMissingTypeHint, "a raw function needs Spec.InputSchema; {} accepts any object")
	case spec.OutputSchema == nil:
		return nil, NewError(CodeFuncMissingReturnType, "a raw function needs Spec.OutputSchema; {} accepts any object")
	}
	return newFuncModule(spec, func(ctx context.Context, inputs map[string]any) (map[string]any, error) {
		out, err := fn(ctx, inputs)
		if out == nil && err == nil {
			out = map[string]any{}
		}
		return out, err
	})
}

func newFuncModule(spec Spec, execute func(context.Context, map[string]any) (map[string]any, error)) (*FuncModule, error) {
	if strings.TrimSpace(spec.Description) == "" {
		return nil, NewError(CodeInvalidInput, "a module needs a description: set Spec.Description")
	}
	return &FuncModule{spec: spec, execute: execute}, nil
}

// Register makes a module with [NewFunc] and registers it, the usual way to
// bring a function into a registry. Its errors are those of both.
func Register[In, Out any](r *Registry, id string, fn func(ctx context.Context, in In) (Out, error), spec Spec) error {
	module, err := NewFunc(fn, spec)
	if err != nil {
		return AsError(err).WithDetail("module_id", id)
	}
	return r.Register(id, module, RegisterOptions{})
}

// Execute runs the function; the executor calls it.
func (m *FuncModule) Execute(ctx context.Context, inputs map[string]any, _ *Context) (map[string]any, error) {
	return m.execute(ctx, inputs)
}

// Description returns Spec.Description.
func (m *FuncModule) Description() string { return m.spec.Description }

// InputSchema returns the given or inferred schema.
func (m *FuncModule) InputSchema() map[string]any { return m.spec.InputSchema }

// OutputSchema returns the given or inferred schema.
func (m *FuncModule) OutputSchema() map[string]any { return m.spec.OutputSchema }

// Annotations returns Spec.Annotations.
func (m *FuncModule) Annotations() Annotations { return m.spec.Annotations.Clone() }

// Name returns Spec.Name.
func (m *FuncModule) Name() string { return m.spec.Name }

// Documentation returns Spec.Documentation.
func (m *FuncModule) Documentation() string { return m.spec.Documentation }

// Tags returns Spec.Tags.
func (m *FuncModule) Tags() []string { return m.spec.Tags }

// Version returns Spec.Version.
func (m *FuncModule) Version() string { return m.spec.Version }

// Metadata returns Spec.Metadata.
func (m *FuncModule) Metadata() map[string]any { return m.spec.Metadata }

// Examples returns Spec.Examples.
func (m *FuncModule) Examples() []Example { return m.spec.Examples }

// Timeout returns Spec.Timeout.
func (m *FuncModule) Timeout() time.Duration { return m.spec.Timeout }

// resultSchema is the schema of {"result": value}; definitions of the value's
// schema move to the root, where references look for them.
func resultSchema(inner map[string]any) map[string]any {
	wrapped := map[string]any{
		"type": "object", "properties": map[string]any{"result": inner}, "required": []any{"result"},
	}
	if definitions, ok := inner["$defs"]; ok {
		wrapped["$defs"] = definitions
		delete(inner, "$defs")
	}
	return wrapped
}

func isObjectType(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Map {
		return true
	}
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]()
}
