// Package jsonvalue keeps Go values within the JSON data model: objects are
// map[string]any, arrays []any, numbers whatever keeps their digits.
package jsonvalue

import (
	"encoding/json"
	"fmt"
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

// Clone copies a value deeply into the JSON data model. Plain values keep their
// Go type, numbers included; structs, typed maps and slices, pointers and
// marshallers become what encoding/json makes of them, with numbers as
// json.Number. What is no JSON fails with an [*Error].
func Clone(value any) (any, error) { return clone(value, nil, 0) }

// CloneObject is [Clone] for an object; nil becomes an empty one.
func CloneObject(object map[string]any) (map[string]any, error) {
	return cloneObject(object, nil, 0)
}

// place is a path under construction; it is turned into text only for errors.
type place struct {
	parent *place
	key    string
	index  int
}

func (p *place) String() string {
	if p == nil {
		return ""
	}
	name := strconv.Itoa(p.index)
	if p.index < 0 {
		name = strings.NewReplacer("~", "~0", "/", "~1").Replace(p.key)
	}
	return p.parent.String() + "/" + name
}

func fault(at *place, format string, args ...any) error {
	return &Error{Path: at.String(), Reason: fmt.Sprintf(format, args...)}
}

func clone(value any, at *place, depth int) (any, error) {
	switch v := value.(type) {
	case nil, bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return v, nil
	case string:
		if !utf8.ValidString(v) {
			return nil, fault(at, "a text is not valid UTF-8")
		}
		return v, nil
	case float64:
		return v, finite(v, at)
	case float32:
		return v, finite(float64(v), at)
	case json.Number:
		if !validNumber(string(v)) {
			return nil, fault(at, "a json.Number is no number")
		}
		return v, nil
	case map[string]any:
		if v == nil {
			return nil, nil //nolint:nilnil // a nil map is JSON's null
		}
		return cloneObject(v, at, depth)
	case []any:
		if v == nil {
			return nil, nil //nolint:nilnil // a nil slice is JSON's null
		}
		return cloneArray(v, at, depth)
	default:
		return throughJSON(value, at)
	}
}

func cloneObject(object map[string]any, at *place, depth int) (map[string]any, error) {
	if depth >= maxDepth {
		return nil, fault(at, "it is nested deeper than %d levels, or contains itself", maxDepth)
	}
	copied := make(map[string]any, len(object))
	for key, item := range object {
		if !utf8.ValidString(key) {
			return nil, fault(at, "a key is not valid UTF-8")
		}
		c, err := clone(item, &place{parent: at, key: key, index: -1}, depth+1)
		if err != nil {
			return nil, err
		}
		copied[key] = c
	}
	return copied, nil
}

func cloneArray(array []any, at *place, depth int) ([]any, error) {
	if depth >= maxDepth {
		return nil, fault(at, "it is nested deeper than %d levels, or contains itself", maxDepth)
	}
	copied := make([]any, len(array))
	for i, item := range array {
		c, err := clone(item, &place{parent: at, index: i}, depth+1)
		if err != nil {
			return nil, err
		}
		copied[i] = c
	}
	return copied, nil
}

func finite(f float64, at *place) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fault(at, "a number is not finite")
	}
	return nil
}

// throughJSON reads any other Go value as its own JSON form.
func throughJSON(value any, at *place) (any, error) {
	text, err := marshal(value)
	if err != nil {
		return nil, fault(at, "%s", err.Error())
	}
	decoded, err := Decode(text)
	if err != nil {
		return nil, fault(at, "%s", err.Error())
	}
	return decoded, nil
}

// validNumber is JSON's grammar of numbers.
func validNumber(text string) bool {
	if text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return false
	}
	return json.Valid([]byte(text))
}
