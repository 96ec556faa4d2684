package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// fieldTags is what the tags of a field add to its schema.
type fieldTags struct {
	required  bool
	sensitive bool
	// pairs are keywords with their texts, in the order of the tag.
	pairs [][2]string
	// extras are x- keywords.
	extras map[string]any
}

// flags are keywords that may stand without a value.
var flags = []string{"uniqueItems", "readOnly", "writeOnly", "deprecated"}

// parseTags reads the four tags of a field:
//
//   - jsonschema: keyword=value separated by commas, a comma in a value written
//     \,: title, description, default, example, deprecated, readOnly, writeOnly;
//     enum (once for each value), const; minLength, maxLength, pattern, format;
//     minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf; minItems,
//     maxItems, uniqueItems; minProperties, maxProperties; and required. On a
//     slice, what is no keyword of arrays goes to the items.
//   - jsonschema_description: a description that may contain commas.
//   - jsonschema_extras: x-keyword=value separated by commas.
//   - apcore: sensitive, which marks a secret.
//
// Words they do not know are errors: a misspelt constraint must not get lost.
func parseTags(tag reflect.StructTag) (*fieldTags, error) {
	t := &fieldTags{extras: map[string]any{}}
	for _, entry := range splitTag(tag.Get("jsonschema")) {
		keyword, value, valued := strings.Cut(entry, "=")
		switch {
		case entry == "required":
			t.required = true
		case valued || slices.Contains(flags, keyword):
			t.pairs = append(t.pairs, [2]string{keyword, value})
		default:
			return nil, fmt.Errorf("jsonschema tag: %q is no keyword=value; write description=%s for a description", entry, entry)
		}
	}
	if text := tag.Get("jsonschema_description"); text != "" {
		t.pairs = append(t.pairs, [2]string{"description", text})
	}
	for _, entry := range splitTag(tag.Get("jsonschema_extras")) {
		keyword, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(keyword, "x-") {
			return nil, fmt.Errorf("jsonschema_extras tag: %q does not begin with x-", keyword)
		}
		t.extras[keyword] = looseValue(value)
	}
	for _, word := range splitTag(tag.Get("apcore")) {
		if word != "sensitive" {
			return nil, fmt.Errorf("apcore tag: %q is unknown; the only word is sensitive", word)
		}
		t.sensitive = true
	}
	return t, nil
}

// splitTag splits at commas that no backslash precedes.
func splitTag(tag string) (entries []string) {
	const comma = "\x00"
	for entry := range strings.SplitSeq(strings.ReplaceAll(tag, `\,`, comma), ",") {
		if entry = strings.ReplaceAll(strings.TrimSpace(entry), comma, ","); entry != "" {
			entries = append(entries, entry)
		}
	}
	return entries
}

// apply adds to a property. What describes goes to the property, what constrains
// to the type behind a pointer.
func (t *fieldTags) apply(property map[string]any) error {
	target := property
	if branches := arrayOf(property["anyOf"]); len(branches) > 0 {
		target = objectOf(branches[0])
	}
	for _, pair := range t.pairs {
		if err := applyKeyword(property, target, pair[0], pair[1]); err != nil {
			return fmt.Errorf("jsonschema tag: %s: %w", pair[0], err)
		}
	}
	for keyword, value := range t.extras {
		property[keyword] = value
	}
	if t.sensitive {
		property["x-sensitive"] = true
	}
	return nil
}

// keywordTypes says to which types a constraint applies.
var keywordTypes = map[string][]string{
	"minLength": {"string"}, "maxLength": {"string"}, "pattern": {"string"}, "format": {"string"},
	"minimum": {"integer", "number"}, "maximum": {"integer", "number"}, "multipleOf": {"integer", "number"},
	"exclusiveMinimum": {"integer", "number"}, "exclusiveMaximum": {"integer", "number"},
	"minItems": {"array"}, "maxItems": {"array"}, "uniqueItems": {"array"},
	"minProperties": {"object"}, "maxProperties": {"object"},
	"enum": {"string", "integer", "number", "boolean"}, "const": {"string", "integer", "number", "boolean"},
}

func applyKeyword(property, target map[string]any, keyword, text string) error {
	switch keyword {
	case "title", "description":
		property[keyword] = text
		return nil
	case "readOnly", "writeOnly", "deprecated":
		return setFlag(property, keyword, text)
	case "default":
		value, err := typedValue(target, text)
		property["default"] = value
		return err
	case "example":
		value, err := typedValue(target, text)
		property["examples"] = append(arrayOf(property["examples"]), value)
		return err
	}
	types, known := keywordTypes[keyword]
	if !known {
		return errors.New("it is unknown")
	}
	if target["type"] == "array" && !slices.Contains(types, "array") {
		return applyKeyword(property, objectOf(target["items"]), keyword, text)
	}
	name, _ := target["type"].(string)
	if !slices.Contains(types, name) {
		return fmt.Errorf("it does not apply to a field of type %s", typeText(name))
	}
	return constrain(target, keyword, text)
}

func typeText(name string) string {
	if name == "" {
		return "any"
	}
	return name
}

func constrain(target map[string]any, keyword, text string) error {
	switch keyword {
	case "pattern", "format":
		target[keyword] = text
		return nil
	case "uniqueItems":
		return setFlag(target, keyword, text)
	case "enum", "const":
		value, err := typedValue(target, text)
		if keyword == "const" {
			target["const"] = value
		} else {
			target["enum"] = append(arrayOf(target["enum"]), value)
		}
		return err
	default:
		value, err := numberText(text)
		target[keyword] = value
		return err
	}
}

func setFlag(target map[string]any, keyword, text string) error {
	if text != "" && text != "true" && text != "false" {
		return errors.New("want true or false")
	}
	target[keyword] = text != "false"
	return nil
}

func numberText(text string) (json.Number, error) {
	if looseNumber(text) {
		return json.Number(text), nil
	}
	return "", errors.New("want a number")
}

func looseNumber(text string) bool {
	return text != "" && strings.ContainsAny(text[:1], "-0123456789") && json.Valid([]byte(text))
}

// typedValue reads a value as the type of its field.
func typedValue(target map[string]any, text string) (any, error) {
	switch target["type"] {
	case "string":
		return text, nil
	case "integer", "number":
		return numberText(text)
	case "boolean":
		if text != "true" && text != "false" {
			return nil, errors.New("want true or false")
		}
		return text == "true", nil
	default:
		return looseValue(text), nil
	}
}

// looseValue is a boolean or a number if it looks like one, else a text.
func looseValue(text string) any {
	switch {
	case text == "true" || text == "false":
		return text == "true"
	case looseNumber(text):
		return json.Number(text)
	default:
		return text
	}
}
