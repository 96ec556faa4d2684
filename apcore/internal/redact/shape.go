package redact

import (
	"encoding/json"
	"reflect"
)

// misfit reports whether a value has not the shape that a schema with secrets
// inside describes, such as a text in the place of an object with a marked
// property. Inputs are redacted before they are validated: nobody can say which
// part of such a value is the secret, so all of it is hidden.
func (r *resolver) misfit(value any, schemas []node) bool {
	kind := kindOf(value)
	for _, schema := range schemas {
		if declared, ok := schema["type"].(string); ok && (declared == kind || declared != "object" && declared != "array") {
			continue
		}
		if kind != "object" && r.marksInside(schema, objectKeywords[:]) || kind != "array" && r.marksInside(schema, arrayKeywords[:]) {
			return true
		}
	}
	return false
}

var (
	objectKeywords = [...]string{"properties", "patternProperties", "additionalProperties"}
	arrayKeywords  = [...]string{"items", "prefixItems", "contains"}
)

// kindOf is "object", "array" or, for everything else, empty.
func kindOf(value any) string {
	switch value.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string, bool, json.Number:
		return ""
	}
	switch reflect.ValueOf(value).Kind() {
	case reflect.Map, reflect.Struct:
		return "object"
	case reflect.Slice, reflect.Array:
		return "array"
	default:
		return ""
	}
}

func (r *resolver) marksInside(schema node, keywords []string) bool {
	for _, keyword := range keywords {
		if inside, there := schema[keyword]; there && r.marks(inside, map[any]bool{}) {
			return true
		}
	}
	return false
}

// marks looks for a mark in a schema and all that it holds or refers to.
func (r *resolver) marks(schema any, seen map[any]bool) bool {
	switch schema := schema.(type) {
	case map[string]any:
		pointer := reflect.ValueOf(schema).Pointer()
		if seen[pointer] {
			return false
		}
		seen[pointer] = true
		if schema["x-sensitive"] == true {
			return true
		}
		if reference, ok := schema["$ref"].(string); ok && r.marks(r.lookUp(reference), seen) {
			return true
		}
		for _, inside := range schema {
			if r.marks(inside, seen) {
				return true
			}
		}
	case []any:
		for _, inside := range schema {
			if r.marks(inside, seen) {
				return true
			}
		}
	}
	return false
}
