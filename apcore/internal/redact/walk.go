package redact

import (
	"encoding/json"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// walk follows a value and the schemas that apply to it.
type walk struct {
	redactor *Redactor
	schemas  *resolver
	depth    int
}

// maxDepth is what package jsonvalue lets pass; what is deeper is hidden.
const maxDepth = 512

func (w *walk) object(data map[string]any, schemas []node) map[string]any {
	out := make(map[string]any, len(data))
	for name, value := range data {
		applicable := w.schemas.property(schemas, name)
		switch {
		case value == nil:
			out[name] = nil
		case protected[name]:
			out[name] = w.inside(value, applicable)
		case marked(applicable) || w.redactor.sensitive(name):
			out[name] = w.redactor.replacement
		default:
			out[name] = w.value(value, applicable)
		}
	}
	return out
}

func (w *walk) array(array []any, schemas []node) []any {
	out := make([]any, len(array))
	for i, item := range array {
		applicable := w.schemas.item(schemas, i)
		if item != nil && marked(applicable) {
			out[i] = w.redactor.replacement
			continue
		}
		out[i] = w.value(item, applicable)
	}
	return out
}

func (w *walk) value(value any, schemas []node) any {
	if text, ok := value.(string); ok && w.redactor.hides(text) {
		return w.redactor.replacement
	}
	if value != nil && len(schemas) > 0 && w.schemas.misfit(value, schemas) {
		return w.redactor.replacement
	}
	return w.inside(value, schemas)
}

// inside keeps a value itself and walks what it contains. Values outside the
// JSON data model become what they are in JSON; what cannot be looked into is
// hidden.
func (w *walk) inside(value any, schemas []node) any {
	switch value := value.(type) {
	case map[string]any:
		return w.deeper(func() any { return w.object(value, schemas) })
	case []any:
		return w.deeper(func() any { return w.array(value, schemas) })
	case nil, bool, string, json.Number, float32, float64, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return value
	}
	plain, err := jsonvalue.Clone(value)
	if err != nil {
		return w.redactor.replacement
	}
	switch plain.(type) {
	case map[string]any, []any:
		return w.inside(plain, schemas)
	case string:
		return w.value(plain, schemas)
	default:
		return plain
	}
}

func (w *walk) deeper(visit func() any) any {
	if w.depth >= maxDepth {
		return w.redactor.replacement
	}
	w.depth++
	defer func() { w.depth-- }()
	return visit()
}
