package redact

import (
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// node is one schema object.
type node = map[string]any

// resolver finds the schemas that may apply to the parts of a value. Whether
// they do is a question of validation: a secret is hidden if any of them says so.
type resolver struct{ root node }

// all returns the given schemas, whose slice it reuses, and every one that may
// apply beside them: what they refer to and the branches of their unions. Each
// stands there once, so that schemas which refer to themselves come to an end.
func (r *resolver) all(seeds []node) []node {
	found := seeds[:0]
	for _, seed := range seeds {
		found = add(found, seed)
	}
	for i := 0; i < len(found); i++ {
		found = r.addBeside(found, found[i])
	}
	return found
}

// add appends a schema that is not there yet; it compares by identity.
func add(found []node, schema node) []node {
	if schema == nil {
		return found
	}
	pointer := reflect.ValueOf(schema).UnsafePointer()
	for _, known := range found {
		if reflect.ValueOf(known).UnsafePointer() == pointer {
			return found
		}
	}
	return append(found, schema)
}

// addBeside appends the schemas that apply where this one does.
func (r *resolver) addBeside(found []node, schema node) []node {
	for _, keyword := range [...]string{"$ref", "$dynamicRef"} {
		if reference, ok := schema[keyword].(string); ok {
			found = add(found, r.lookUp(reference))
		}
	}
	for _, keyword := range [...]string{"anyOf", "oneOf", "allOf"} {
		for _, branch := range arrayOf(schema[keyword]) {
			found = add(found, objectOf(branch))
		}
	}
	for _, keyword := range [...]string{"if", "then", "else"} {
		found = add(found, objectOf(schema[keyword]))
	}
	for _, dependent := range objectOf(schema["dependentSchemas"]) {
		found = add(found, objectOf(dependent))
	}
	return found
}

// property lists the schemas of one property.
func (r *resolver) property(schemas []node, name string) []node {
	if len(schemas) == 0 {
		return nil
	}
	var seeds []node
	for _, schema := range schemas {
		known := false
		if property, ok := objectOf(schema["properties"])[name]; ok {
			known = true
			seeds = append(seeds, objectOf(property))
		}
		for pattern, property := range objectOf(schema["patternProperties"]) {
			if matched, err := regexp.MatchString(pattern, name); matched || err != nil {
				known = true
				seeds = append(seeds, objectOf(property))
			}
		}
		if !known {
			seeds = append(seeds, objectOf(schema["additionalProperties"]))
		}
		seeds = append(seeds, objectOf(schema["unevaluatedProperties"]))
	}
	return r.all(seeds)
}

// item lists the schemas of one item.
func (r *resolver) item(schemas []node, index int) []node {
	if len(schemas) == 0 {
		return nil
	}
	var seeds []node
	for _, schema := range schemas {
		if prefix := arrayOf(schema["prefixItems"]); index < len(prefix) {
			seeds = append(seeds, objectOf(prefix[index]))
		} else {
			seeds = append(seeds, objectOf(schema["items"]))
		}
		seeds = append(seeds, objectOf(schema["contains"]), objectOf(schema["unevaluatedItems"]))
	}
	return r.all(seeds)
}

func marked(schemas []node) bool {
	for _, schema := range schemas {
		if schema["x-sensitive"] == true {
			return true
		}
	}
	return false
}

// lookUp follows a reference within the document: a pointer or an anchor.
func (r *resolver) lookUp(reference string) node {
	_, fragment, _ := strings.Cut(reference, "#")
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}
	if fragment != "" && fragment[0] != '/' {
		return findAnchor(r.root, fragment)
	}
	var current any = r.root
	for token := range strings.SplitSeq(strings.TrimPrefix(fragment, "/"), "/") {
		if fragment == "" {
			break
		}
		current = step(current, unescaper.Replace(token))
	}
	return objectOf(current)
}

var unescaper = strings.NewReplacer("~1", "/", "~0", "~")

func step(value any, token string) any {
	switch value := value.(type) {
	case map[string]any:
		return value[token]
	case []any:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(value) {
			return value[i]
		}
	}
	return nil
}

// findAnchor looks through the whole document; anchors are rare.
func findAnchor(value any, name string) node {
	switch value := value.(type) {
	case map[string]any:
		if value["$anchor"] == name || value["$dynamicAnchor"] == name {
			return value
		}
		for _, part := range value {
			if found := findAnchor(part, name); found != nil {
				return found
			}
		}
	case []any:
		for _, part := range value {
			if found := findAnchor(part, name); found != nil {
				return found
			}
		}
	}
	return nil
}

func objectOf(value any) map[string]any {
	object, _ := value.(map[string]any)
	return object
}

func arrayOf(value any) []any {
	array, _ := value.([]any)
	return array
}
