package jsonvalue

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"
)

// Decode reads one JSON value; numbers keep their digits as json.Number. Of two
// equal keys the last one counts. Invalid UTF-8, anything after the value and
// more than 512 levels fail with an [*Error].
func Decode(text []byte) (any, error) {
	if !utf8.Valid(text) {
		return nil, &Error{Reason: "the text is not valid UTF-8"}
	}
	if depthOf(text) > maxDepth {
		return nil, &Error{Reason: reasonDepth}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, &Error{Reason: "the text is no JSON value"}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, &Error{Reason: "something follows the JSON value"}
	}
	return value, nil
}

// DecodeObject is [Decode] for an object; anything else fails.
func DecodeObject(text []byte) (map[string]any, error) {
	value, err := Decode(text)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, &Error{Reason: "it is no JSON object"}
	}
	return object, nil
}

// depthOf counts the deepest nesting of a JSON text without reading it.
func depthOf(text []byte) (deepest int) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
