package schema

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// field is a struct field as encoding/json sees it.
type field struct {
	name, goName string
	typ          reflect.Type
	sensitive    bool
}

// fieldsOf lists the fields with JSON names, promoted ones included.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" && f.Tag.Get("json") == "-" || !f.IsExported() || f.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		sensitive := slices.Contains(strings.Split(f.Tag.Get("apcore"), ","), "sensitive")
		fields = append(fields, field{name: name, goName: f.Name, typ: f.Type, sensitive: sensitive})
	}
	return fields
}

// decorator adds to an inferred schema what the library does not know: secrets
// and pointers that may be null.
type decorator struct {
	definitions map[string]any
	done        map[reflect.Type]bool
}

func (d *decorator) decorate(t reflect.Type, node map[string]any) {
	if special(t) || node == nil {
		return
	}
	if target := d.resolve(node); target != nil {
		node = target
	}
	switch t.Kind() {
	case reflect.Pointer:
		d.decorate(t.Elem(), node)
	case reflect.Slice, reflect.Array:
		d.decorate(t.Elem(), objectOf(node["items"]))
	case reflect.Map:
		d.decorate(t.Elem(), objectOf(node["additionalProperties"]))
	case reflect.Struct:
		if !d.done[t] {
			d.done[t] = true
			d.decorateFields(t, node)
		}
	}
}

func (d *decorator) decorateFields(t reflect.Type, node map[string]any) {
	properties := objectOf(node["properties"])
	for _, field := range fieldsOf(t) {
		property, described := properties[field.name]
		if !described {
			continue
		}
		schema, ok := property.(map[string]any)
		if !ok { // true: anything
			schema = map[string]any{}
		}
		d.decorate(field.typ, schema)
		if field.typ.Kind() == reflect.Pointer {
			schema = map[string]any{"anyOf": []any{schema, map[string]any{"type": "null"}}}
			node["required"] = without(node["required"], field.name)
		}
		if field.sensitive {
			schema["x-sensitive"] = true
		}
		properties[field.name] = schema
	}
	if required, ok := node["required"].([]any); ok && len(required) == 0 {
		delete(node, "required")
	}
}

func without(list any, name string) []any {
	kept := []any{}
	for _, item := range arrayOf(list) {
		if item != name {
			kept = append(kept, item)
		}
	}
	return kept
}

const definitionPrefix = "#/$defs/"

func (d *decorator) resolve(node map[string]any) map[string]any {
	if name, ok := definitionName(node); ok {
		return objectOf(d.definitions[name])
	}
	return nil
}

// definitionName reads a local reference.
func definitionName(node map[string]any) (string, bool) {
	reference, _ := node["$ref"].(string)
	name, local := strings.CutPrefix(reference, definitionPrefix)
	return name, local
}

// inline writes definitions in place of references to them; those that contain
// themselves stay under $defs.
func inline(document map[string]any) map[string]any {
	definitions := objectOf(document["$defs"])
	delete(document, "$defs")
	in := &inliner{definitions: definitions, kept: map[string]any{}}
	result := objectOf(in.walk(document, nil))
	if name, ok := definitionName(result); ok { // the root refers to itself further down
		result = maps.Clone(objectOf(in.kept[name]))
	}
	if len(in.kept) > 0 {
		result["$defs"] = in.kept
	}
	return result
}

type inliner struct {
	definitions map[string]any
	kept        map[string]any
}

func (in *inliner) walk(value any, within []string) any {
	switch value := value.(type) {
	case map[string]any:
		if name, ok := definitionName(value); ok {
			return in.reference(value, name, within)
		}
		copied := make(map[string]any, len(value))
		for key, item := range value {
			copied[key] = in.walk(item, within)
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for i, item := range value {
			copied[i] = in.walk(item, within)
		}
		return copied
	default:
		return value
	}
}

func (in *inliner) reference(node map[string]any, name string, within []string) any {
	if _, kept := in.kept[name]; kept {
		return node
	}
	if in.recursive(name) {
		in.kept[name] = true // a placeholder, so that references inside stay
		in.kept[name] = in.walk(in.definitions[name], append(within, name))
		return node
	}
	target := objectOf(in.walk(in.definitions[name], append(within, name)))
	for key, item := range node { // keywords beside the reference
		if key != "$ref" {
			target[key] = item
		}
	}
	return target
}

// recursive reports whether a definition leads back to itself.
func (in *inliner) recursive(name string) bool {
	seen := map[string]bool{}
	var leads func(value any) bool
	leads = func(value any) bool {
		switch value := value.(type) {
		case map[string]any:
			if next, ok := definitionName(value); ok {
				if next == name {
					return true
				}
				if !seen[next] {
					seen[next] = true
					return leads(in.definitions[next])
				}
				return false
			}
			for _, item := range value {
				if leads(item) {
					return true
				}
			}
		case []any:
			return slices.ContainsFunc(value, leads)
		}
		return false
	}
	return leads(in.definitions[name])
}

func objectOf(value any) map[string]any {
	object, _ := value.(map[string]any)
	return object
}

func arrayOf(value any) []any {
	array, _ := value.([]any)
	return array
}
