package apcore

import (
	"maps"
	"slices"
	"strings"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// StrictSchema returns the strict form of a schema (apcore A23), in which every
// object is closed and every property required, and what was optional may be
// null instead. x- keywords and defaults are left out. The schema itself is not
// changed; one that is no JSON fails with SCHEMA_PARSE_ERROR.
func StrictSchema(schema map[string]any) (map[string]any, error) {
	copied, err := jsonvalue.CloneObject(schema)
	if err != nil {
		return nil, NewError(CodeSchemaParse, "the schema is no JSON: %w", err)
	}
	return strictNode(withoutDefaults(withoutExtensions(copied))), nil
}

// Where schemas stand inside a schema: under names, in lists, alone. The strict
// form is defined for the first of each kind only (A23); what is taken out or
// replaced everywhere goes through all of them.
var (
	strictPlaces = schemaPlaces{named: []string{"properties", "$defs", "definitions"}, lists: []string{"prefixItems", "oneOf", "anyOf", "allOf"}, single: []string{"items"}}
	allPlaces    = schemaPlaces{
		named: append([]string{"patternProperties", "dependentSchemas"}, strictPlaces.named...),
		lists: strictPlaces.lists,
		single: append([]string{
			"additionalProperties", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "contains", "contentSchema", "not", "if", "then", "else",
		}, strictPlaces.single...),
	}
)

type schemaPlaces struct{ named, lists, single []string }

// each applies fn to the schemas directly inside a node.
func (p *schemaPlaces) each(node map[string]any, fn func(map[string]any) map[string]any) {
	for _, keyword := range p.named {
		if named, ok := node[keyword].(map[string]any); ok {
			for name, inner := range named {
				if schema, ok := inner.(map[string]any); ok {
					named[name] = fn(schema)
				}
			}
		}
	}
	for _, keyword := range p.lists {
		if list, ok := node[keyword].([]any); ok {
			for i, inner := range list {
				if schema, ok := inner.(map[string]any); ok {
					list[i] = fn(schema)
				}
			}
		}
	}
	for _, keyword := range p.single {
		if inner, ok := node[keyword].(map[string]any); ok {
			node[keyword] = fn(inner)
		}
	}
}

func withoutDefaults(node map[string]any) map[string]any {
	delete(node, "default")
	allPlaces.each(node, withoutDefaults)
	return node
}

func strictNode(node map[string]any) map[string]any {
	strictPlaces.each(node, strictNode)
	properties, ok := node["properties"].(map[string]any)
	if !ok || !isObjectNode(node) {
		return node
	}
	required := stringsOf(node["required"])
	names := slices.Sorted(maps.Keys(properties))
	for _, name := range names {
		if schema, ok := properties[name].(map[string]any); ok && !slices.Contains(required, name) {
			properties[name] = nullable(schema)
		}
	}
	node["additionalProperties"], node["required"] = false, anySlice(names)
	return node
}

// isObjectNode: properties beside a type that is no object mean nothing.
func isObjectNode(node map[string]any) bool {
	switch kind := node["type"].(type) {
	case nil:
		return true
	case string:
		return kind == "object"
	default:
		return slices.Contains(stringsOf(kind), "object")
	}
}

// nullable allows null in exactly one way.
func nullable(schema map[string]any) map[string]any {
	switch kind := schema["type"].(type) {
	case string:
		if kind != "null" {
			schema["type"] = []any{kind, "null"}
		}
	case []any:
		if !slices.Contains(kind, any("null")) {
			schema["type"] = append(slices.Clone(kind), "null")
		}
	default:
		return map[string]any{"anyOf": []any{schema, map[string]any{"type": "null"}}}
	}
	return schema
}

// withoutExtensions takes x- keywords out of a copy of a schema; names of
// properties stay, whatever they begin with.
func withoutExtensions(node map[string]any) map[string]any {
	maps.DeleteFunc(node, func(keyword string, _ any) bool { return strings.HasPrefix(keyword, "x-") })
	allPlaces.each(node, withoutExtensions)
	return node
}

// forModels lets x-llm-description stand where a description is.
func forModels(node map[string]any) map[string]any {
	if hint, ok := node["x-llm-description"].(string); ok && node["description"] != nil {
		node["description"] = hint
	}
	allPlaces.each(node, forModels)
	return node
}
