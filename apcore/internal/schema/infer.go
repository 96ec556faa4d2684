package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/google/uuid"
	"github.com/invopop/jsonschema"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// Infer makes a schema from a Go type: json tags name properties, jsonschema
// tags add constraints, apcore tags mark secrets. A pointer may be null and need
// not be there; omitempty and omitzero make optional. Named structs are written
// in place, recursive ones under $defs. Types without a JSON form fail with the
// place where they stand.
func Infer(t reflect.Type) (map[string]any, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if err := checkType(t, t.String(), map[reflect.Type]bool{}); err != nil {
		return nil, err
	}
	reflector := &jsonschema.Reflector{
		Anonymous: true, AllowAdditionalProperties: true,
		Mapper: mapType, Namer: nameType,
	}
	text, err := json.Marshal(reflector.ReflectFromType(t))
	if err != nil {
		return nil, fmt.Errorf("schema of %v: %w", t, err)
	}
	document, err := jsonvalue.DecodeObject(text)
	if err != nil {
		return nil, fmt.Errorf("schema of %v: %w", t, err)
	}
	delete(document, "$schema")
	decorator := &decorator{definitions: objectOf(document["$defs"]), done: map[reflect.Type]bool{}}
	decorator.decorate(t, document)
	return inline(document), nil
}

// nameType keeps types of one name in different packages apart.
func nameType(t reflect.Type) string {
	if t.Name() == "" {
		return ""
	}
	return escaper.Replace(t.String())
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	uuidType     = reflect.TypeFor[uuid.UUID]()
	rawType      = reflect.TypeFor[json.RawMessage]()
	numberType   = reflect.TypeFor[json.Number]()
	bytesType    = reflect.TypeFor[[]byte]()
	enumType     = reflect.TypeFor[enumerated]()
)

// enumerated is a text type that knows its values.
type enumerated interface{ Enum() []string }

// mapType gives the schemas of types that are not what their kind says.
func mapType(t reflect.Type) *jsonschema.Schema {
	switch {
	case t == timeType:
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case t == uuidType:
		return &jsonschema.Schema{Type: "string", Format: "uuid"}
	case t == rawType:
		return jsonschema.TrueSchema
	case t == numberType:
		return &jsonschema.Schema{Type: "number"}
	case t == bytesType:
		return &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}
	case t.Kind() == reflect.String && t.Implements(enumType):
		return enumSchema(reflect.Zero(t))
	default:
		return nil
	}
}

func enumSchema(value reflect.Value) *jsonschema.Schema {
	schema := &jsonschema.Schema{Type: "string"}
	for _, text := range value.Interface().(enumerated).Enum() { //nolint:forcetypeassert // checked by Implements
		schema.Enum = append(schema.Enum, text)
	}
	return schema
}

// special types are not looked into.
func special(t reflect.Type) bool { return mapType(t) != nil || t == durationType }

// checkType refuses what has no JSON form.
func checkType(t reflect.Type, place string, seen map[reflect.Type]bool) error {
	if seen[t] || special(t) {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer, reflect.Uintptr:
		return fmt.Errorf("%s is a %v, which has no JSON form", place, t)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return fmt.Errorf("%s is a %v: its keys must be texts", place, t)
		}
		return checkType(t.Elem(), place, seen)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return checkType(t.Elem(), place, seen)
	case reflect.Struct:
		for _, field := range fieldsOf(t) {
			if err := checkType(field.typ, place+"."+field.goName, seen); err != nil {
				return err
			}
		}
	}
	return nil
}
