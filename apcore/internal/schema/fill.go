package schema

import "strings"

// FillNil replaces null by an empty list or object wherever an inferred schema
// asks for one: encoding/json writes a nil slice or map as null, which no Go
// author means. It changes value in place; a null that the schema allows stays.
func FillNil(schema, value map[string]any) {
	f := &filler{root: schema}
	f.object(schema, value)
}

type filler struct{ root map[string]any }

// fill returns what belongs in the place of value.
func (f *filler) fill(schema map[string]any, value any) any {
	schema = f.resolve(schema)
	switch value := value.(type) {
	case nil:
		switch {
		case schema["type"] == "array":
			return []any{}
		case schema["type"] == "object" && schema["properties"] == nil: // a map, not a struct
			return map[string]any{}
		case schema["contentEncoding"] == "base64":
			return ""
		}
	case map[string]any:
		f.object(f.present(schema), value)
	case []any:
		if items := objectOf(f.present(schema)["items"]); items != nil {
			for i := range value {
				value[i] = f.fill(items, value[i])
			}
		}
	}
	return value
}

func (f *filler) object(schema, value map[string]any) {
	schema = f.resolve(schema)
	properties, others := objectOf(schema["properties"]), objectOf(schema["additionalProperties"])
	for name, part := range value {
		if property := objectOf(properties[name]); property != nil {
			value[name] = f.fill(property, part)
		} else if others != nil {
			value[name] = f.fill(others, part)
		}
	}
}

// present is the branch of an inferred union for a value that is there.
func (f *filler) present(schema map[string]any) map[string]any {
	if branches := arrayOf(schema["anyOf"]); len(branches) > 0 {
		return f.resolve(objectOf(branches[0]))
	}
	return schema
}

func (f *filler) resolve(schema map[string]any) map[string]any {
	reference, _ := schema["$ref"].(string)
	if name, local := strings.CutPrefix(reference, "#/$defs/"); local {
		return objectOf(objectOf(f.root["$defs"])[name])
	}
	return schema
}
