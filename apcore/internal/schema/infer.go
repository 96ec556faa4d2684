package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Infer makes a schema from a Go type, the way encoding/json writes it:
//
//   - numbers, texts, booleans, slices, arrays and maps with text keys are what
//     one expects; []byte is base64, time.Time a date-time, uuid.UUID a uuid;
//   - a struct is an object whose properties are its JSON fields, promoted ones
//     included; omitempty, omitzero and pointers make a field optional, and a
//     pointer may be null;
//   - a text type with a method Enum() []string lists its values;
//   - any and types that write themselves accept everything, types that write
//     themselves as text are texts;
//   - the tags jsonschema, jsonschema_description, jsonschema_extras and apcore
//     add constraints, see parseTags.
//
// The result is one document without references, but for types that contain
// themselves: they stand under $defs. Unknown properties are allowed. A type or
// tag without a JSON form fails with the field where it stands. A type gives the
// same schema each time.
func Infer(t reflect.Type) (map[string]any, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	b := &builder{open: map[reflect.Type]bool{}, names: map[reflect.Type]string{}, definitions: map[string]any{}}
	root, err := b.schemaOf(t, t.String())
	if err != nil {
		return nil, err
	}
	if name, recursive := b.names[t]; recursive {
		root = copyObject(objectOf(b.definitions[name]))
	}
	if len(b.definitions) > 0 {
		root["$defs"] = b.definitions
	}
	return root, nil
}

// builder collects the types that contain themselves.
type builder struct {
	open        map[reflect.Type]bool
	names       map[reflect.Type]string // of recursive types
	definitions map[string]any
}

// enumerated is a text type that knows its values.
type enumerated interface{ Enum() []string }

// wellKnown are types whose JSON form their kind does not tell.
var wellKnown = map[reflect.Type]func() map[string]any{
	reflect.TypeFor[time.Time]():       func() map[string]any { return map[string]any{"type": "string", "format": "date-time"} },
	reflect.TypeFor[uuid.UUID]():       func() map[string]any { return map[string]any{"type": "string", "format": "uuid"} },
	reflect.TypeFor[json.RawMessage](): func() map[string]any { return map[string]any{} },
	reflect.TypeFor[json.Number]():     func() map[string]any { return map[string]any{"type": "number"} },
	reflect.TypeFor[big.Int]():         func() map[string]any { return map[string]any{"type": "integer"} },
}

// schemaOf returns a fresh schema; place says where in the root type it stands.
func (b *builder) schemaOf(t reflect.Type, place string) (map[string]any, error) {
	if known := wellKnown[t]; known != nil {
		return known(), nil
	}
	if t.Kind() == reflect.Pointer {
		return b.pointer(t, place)
	}
	if own := selfWritten(t); own != nil {
		return own, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}, nil
	case reflect.String:
		return map[string]any{"type": "string"}, nil
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer"}, nil
	case reflect.Interface:
		return map[string]any{}, nil
	case reflect.Slice, reflect.Array:
		return b.list(t, place)
	case reflect.Map:
		return b.dictionary(t, place)
	case reflect.Struct:
		return b.structure(t, place)
	default:
		return nil, fmt.Errorf("%s is a %v, which has no JSON form", place, t)
	}
}

// selfWritten is the schema of a type with methods that encoding/json heeds, nil
// for others.
func selfWritten(t reflect.Type) map[string]any {
	switch {
	case t.Kind() == reflect.Interface:
		return nil
	case t.Kind() == reflect.String && implements[enumerated](t):
		values := []any{}
		for _, value := range reflect.New(t).Interface().(enumerated).Enum() { //nolint:forcetypeassert // checked
			values = append(values, value)
		}
		return map[string]any{"type": "string", "enum": values}
	case implements[json.Marshaler](t), implements[json.Unmarshaler](t):
		return map[string]any{}
	case implements[encoding.TextMarshaler](t), implements[encoding.TextUnmarshaler](t):
		return map[string]any{"type": "string"}
	default:
		return nil
	}
}

// implements reports whether a type or a pointer to it has the methods of I.
func implements[I any](t reflect.Type) bool {
	want := reflect.TypeFor[I]()
	return t.Implements(want) || reflect.PointerTo(t).Implements(want)
}

func (b *builder) pointer(t reflect.Type, place string) (map[string]any, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	inner, err := b.schemaOf(t, place)
	if err != nil || len(inner) == 0 { // {} accepts null
		return inner, err
	}
	return map[string]any{"anyOf": []any{inner, map[string]any{"type": "null"}}}, nil
}

func (b *builder) list(t reflect.Type, place string) (map[string]any, error) {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && selfWritten(t.Elem()) == nil {
		return map[string]any{"type": "string", "contentEncoding": "base64"}, nil
	}
	items, err := b.schemaOf(t.Elem(), place+"[]")
	if err != nil {
		return nil, err
	}
	schema := map[string]any{"type": "array", "items": items}
	if t.Kind() == reflect.Array {
		length := json.Number(strconv.Itoa(t.Len()))
		schema["minItems"], schema["maxItems"] = length, length
	}
	return schema, nil
}

func (b *builder) dictionary(t reflect.Type, place string) (map[string]any, error) {
	if t.Key().Kind() != reflect.String && !t.Key().Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return nil, fmt.Errorf("%s is a %v: its keys must be texts", place, t)
	}
	values, err := b.schemaOf(t.Elem(), place+"{}")
	if err != nil {
		return nil, err
	}
	schema := map[string]any{"type": "object"}
	if len(values) > 0 {
		schema["additionalProperties"] = values
	}
	return schema, nil
}

func (b *builder) structure(t reflect.Type, place string) (map[string]any, error) {
	if b.open[t] && b.names[t] == "" {
		b.names[t] = b.freeName(t)
	}
	if name := b.names[t]; name != "" {
		return map[string]any{"$ref": "#/$defs/" + name}, nil
	}
	b.open[t] = true
	defer delete(b.open, t)
	properties, required := map[string]any{}, []any{}
	for _, f := range fieldsOf(t) {
		at := place + "." + f.goName
		property, optional, err := b.property(f, at)
		if err != nil {
			return nil, err
		}
		properties[f.name] = property
		if !optional {
			required = append(required, f.name)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	if name := b.names[t]; name != "" { // found within itself
		b.definitions[name] = schema
		return map[string]any{"$ref": "#/$defs/" + name}, nil
	}
	return schema, nil
}

func (b *builder) property(f field, place string) (property map[string]any, optional bool, err error) {
	typ := f.typ
	if f.quoted { // written as a text, a nil pointer as null
		typ = quotedType(typ)
	}
	if property, err = b.schemaOf(typ, place); err != nil {
		return nil, false, err
	}
	tags, err := parseTags(f.tag)
	if err == nil {
		err = tags.apply(property)
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", place, err)
	}
	return property, f.optional && !tags.required, nil
}

func quotedType(t reflect.Type) reflect.Type {
	if pointee(t) != t {
		return reflect.TypeFor[*string]()
	}
	return reflect.TypeFor[string]()
}

// freeName makes a name for $defs that is fit for a reference and not taken.
func (b *builder) freeName(t reflect.Type) string {
	base := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_':
			return r
		default:
			return '_'
		}
	}, t.String())
	for name, n := base, 2; ; n++ {
		taken := false
		for _, other := range b.names {
			taken = taken || other == name
		}
		if !taken {
			return name
		}
		name = base + "_" + strconv.Itoa(n)
	}
}

func copyObject(object map[string]any) map[string]any {
	copied := make(map[string]any, len(object)+1)
	for key, value := range object {
		copied[key] = value
	}
	return copied
}

func objectOf(value any) map[string]any {
	object, _ := value.(map[string]any)
	return object
}

func arrayOf(value any) []any {
	array, _ := value.([]any)
	return array
}
