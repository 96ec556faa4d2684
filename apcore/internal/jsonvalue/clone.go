// Package jsonvalue keeps Go values within the JSON data model: objects are
// map[string]any, arrays []any, numbers whatever keeps their digits.
package jsonvalue

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds nesting; what is deeper is taken for a cycle.
const maxDepth = 512

// Error says which part of a value is no JSON, and why.
type Error struct {
	// Path is an RFC 6901 pointer, empty for the value itself.
	Path string
	// Reason never holds the value.
	Reason string
}

// Error names the place and the reason.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Reason
	}
	return e.Path + ": " + e.Reason
}

// The reasons that several functions give.
const (
	reasonText   = "a text is not valid UTF-8"
	reasonKey    = "a key is not valid UTF-8"
	reasonFinite = "a number is not finite"
	reasonNumber = "a json.Number is no number"
	reasonDepth  = "it is nested deeper than 512 levels, or contains itself"
)

// within moves a failure up one level; only failures pay for their path.
func within(err error, key string) error {
	fault, ok := err.(*Error) //nolint:errorlint // made in this package, never wrapped
	if !ok {
		return err
	}
	fault.Path = "/" + escaper.Replace(key) + fault.Path
	return fault
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// Clone copies a value deeply into the JSON data model. Plain values keep their
// Go type, numbers included; structs, typed maps and slices, pointers and
// marshallers become what encoding/json makes of them, with numbers as
// json.Number. What is no JSON fails with an [*Error].
func Clone(value any) (any, error) { return clone(value, 0) }

// CloneObject is [Clone] for an object; nil becomes an empty one.
func CloneObject(object map[string]any) (map[string]any, error) { return cloneObject(object, 0) }

// CloneAt is [Clone] for a value that stands within others, which counts for the
// bound on nesting.
func CloneAt(value any, depth int) (any, error) { return clone(value, depth) }

func clone(value any, depth int) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		if v == nil {
			return nil, nil //nolint:nilnil // a nil map is JSON's null
		}
		return cloneObject(v, depth)
	case []any:
		if v == nil {
			return nil, nil //nolint:nilnil // a nil slice is JSON's null
		}
		return cloneArray(v, depth)
	}
	plain, reason := checkScalar(value)
	switch {
	case reason != "":
		return nil, &Error{Reason: reason}
	case plain:
		return value, nil
	default:
		return throughJSON(value, depth)
	}
}

// checkScalar reports whether a value is a plain one without parts, and what is
// wrong with it.
func checkScalar(value any) (plain bool, reason string) {
	switch v := value.(type) {
	case nil, bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return true, ""
	case string:
		if !utf8.ValidString(v) {
			return true, reasonText
		}
		return true, ""
	case float64:
		return true, finite(v)
	case float32:
		return true, finite(float64(v))
	case json.Number:
		if !ValidNumber(string(v)) {
			return true, reasonNumber
		}
		return true, ""
	default:
		return false, ""
	}
}

func finite(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return reasonFinite
	}
	return ""
}

func cloneObject(object map[string]any, depth int) (map[string]any, error) {
	if depth >= maxDepth {
		return nil, &Error{Reason: reasonDepth}
	}
	copied := make(map[string]any, len(object))
	for key, item := range object {
		if !utf8.ValidString(key) {
			return nil, &Error{Reason: reasonKey}
		}
		c, err := clone(item, depth+1)
		if err != nil {
			return nil, within(err, key)
		}
		copied[key] = c
	}
	return copied, nil
}

func cloneArray(array []any, depth int) ([]any, error) {
	if depth >= maxDepth {
		return nil, &Error{Reason: reasonDepth}
	}
	copied := make([]any, len(array))
	for i, item := range array {
		c, err := clone(item, depth+1)
		if err != nil {
			return nil, within(err, strconv.Itoa(i))
		}
		copied[i] = c
	}
	return copied, nil
}

// throughJSON reads any other Go value as its own JSON form.
func throughJSON(value any, depth int) (any, error) {
	text, err := marshal(value, depth)
	if err != nil {
		return nil, err
	}
	return Decode(text)
}

// Copy is [CloneObject] for an object that is known to be JSON already, such as
// what CloneObject returned; nil stays nil.
func Copy(object map[string]any) map[string]any {
	if object == nil {
		return nil
	}
	copied := make(map[string]any, len(object))
	for key, item := range object {
		copied[key] = copyValue(item)
	}
	return copied
}

func copyValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return Copy(value)
	case []any:
		copied := make([]any, len(value))
		for i, item := range value {
			copied[i] = copyValue(item)
		}
		return copied
	default:
		return value
	}
}
