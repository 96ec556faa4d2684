package redact

import (
	"reflect"
	"strings"
)

// walk follows a value and the schemas that apply to it.
type walk struct {
	redactor *Redactor
	root     map[string]any
}

// branches lists every schema object that may apply: the node itself, what it
// refers to, and the branches of its unions. Each stands there once, so that
// schemas which refer to themselves come to an end.
func (w *walk) branches(node map[string]any) []map[string]any {
	if node == nil {
		return nil
	}
	all := []map[string]any{node}
	for i := 0; i < len(all); i++ {
		for _, next := range w.beside(all[i]) {
			if next != nil && !contains(all, next) {
				all = append(all, next)
			}
		}
	}
	return all
}

// beside lists the schemas that apply where this one does.
func (w *walk) beside(node map[string]any) []map[string]any {
	var found []map[string]any
	if target := w.resolve(node); target != nil {
		found = append(found, target)
	}
	for _, keyword := range [...]string{"anyOf", "oneOf", "allOf"} {
		for _, branch := range arrayOf(node[keyword]) {
			found = append(found, objectOf(branch))
		}
	}
	for _, keyword := range [...]string{"if", "then", "else"} {
		found = append(found, objectOf(node[keyword]))
	}
	return found
}

// contains compares by identity.
func contains(schemas []map[string]any, schema map[string]any) bool {
	for _, known := range schemas {
		if reflect.ValueOf(known).UnsafePointer() == reflect.ValueOf(schema).UnsafePointer() {
			return true
		}
	}
	return false
}

// resolve follows a local reference.
func (w *walk) resolve(node map[string]any) map[string]any {
	reference, ok := node["$ref"].(string)
	if !ok || !strings.HasPrefix(reference, "#") {
		return nil
	}
	current := w.root
	for token := range strings.SplitSeq(strings.Trim(strings.TrimPrefix(reference, "#"), "/"), "/") {
		if token == "" {
			continue
		}
		current = objectOf(current[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)])
	}
	return current
}

func (w *walk) object(data map[string]any, schemas []map[string]any) map[string]any {
	out := make(map[string]any, len(data))
	for name, value := range data {
		applicable := w.property(schemas, name)
		switch {
		case protected[name]:
			out[name] = w.inside(value, applicable)
		case value != nil && (marked(applicable) || w.redactor.sensitive(name)):
			out[name] = w.redactor.replacement
		default:
			out[name] = w.value(value, applicable)
		}
	}
	return out
}

// property lists the schemas of one property.
func (w *walk) property(schemas []map[string]any, name string) []map[string]any {
	var found []map[string]any
	for _, schema := range schemas {
		if property := objectOf(objectOf(schema["properties"])[name]); property != nil {
			found = append(found, w.branches(property)...)
			continue
		}
		found = append(found, w.branches(objectOf(schema["additionalProperties"]))...)
	}
	return found
}

func marked(schemas []map[string]any) bool {
	for _, schema := range schemas {
		if schema["x-sensitive"] == true {
			return true
		}
	}
	return false
}

func (w *walk) value(value any, schemas []map[string]any) any {
	if text, ok := value.(string); ok {
		for _, pattern := range w.redactor.patterns {
			if pattern.MatchString(text) {
				return w.redactor.replacement
			}
		}
		return text
	}
	return w.inside(value, schemas)
}

// inside leaves a value itself and walks what it contains.
func (w *walk) inside(value any, schemas []map[string]any) any {
	switch value := value.(type) {
	case map[string]any:
		return w.object(value, schemas)
	case []any:
		return w.array(value, schemas)
	default:
		return value
	}
}

func (w *walk) array(array []any, schemas []map[string]any) []any {
	out := make([]any, len(array))
	for i, item := range array {
		applicable := w.item(schemas, i)
		if item != nil && marked(applicable) {
			out[i] = w.redactor.replacement
			continue
		}
		out[i] = w.value(item, applicable)
	}
	return out
}

func (w *walk) item(schemas []map[string]any, index int) []map[string]any {
	var found []map[string]any
	for _, schema := range schemas {
		if prefix := arrayOf(schema["prefixItems"]); index < len(prefix) {
			found = append(found, w.branches(objectOf(prefix[index]))...)
			continue
		}
		found = append(found, w.branches(objectOf(schema["items"]))...)
	}
	return found
}

func objectOf(value any) map[string]any {
	object, _ := value.(map[string]any)
	return object
}

func arrayOf(value any) []any {
	array, _ := value.([]any)
	return array
}
