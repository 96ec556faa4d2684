package jsonvalue

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Canonical writes a value so that equal values give equal texts: keys sorted
// by code point, no white space, only those characters escaped that JSON
// demands, numbers as they are written. It is not RFC 8785, which would round
// numbers to what a float64 can hold.
func Canonical(value any) ([]byte, error) {
	copied, err := Clone(value)
	if err != nil {
		return nil, err
	}
	return appendCanonical(nil, copied)
}

// Hash returns the lower-case hex SHA-256 of the canonical form.
func Hash(value any) (string, error) {
	text, err := Canonical(value)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

func appendCanonical(out []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case map[string]any:
		return appendObject(out, v)
	case []any:
		return appendArray(out, v)
	case string:
		return appendText(out, v), nil
	case json.Number:
		return append(out, v...), nil
	default: // nil, bool and Go's numbers
		text, err := json.Marshal(v)
		return append(out, text...), err
	}
}

func appendObject(out []byte, object map[string]any) ([]byte, error) {
	out = append(out, '{')
	for i, key := range slices.Sorted(maps.Keys(object)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendText(out, key), ':')
		var err error
		if out, err = appendCanonical(out, object[key]); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func appendArray(out []byte, array []any) ([]byte, error) {
	out = append(out, '[')
	for i, item := range array {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = appendCanonical(out, item); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

var shortEscapes = map[rune]string{
	'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`,
}

func appendText(out []byte, text string) []byte {
	out = append(out, '"')
	for _, r := range text {
		escape, short := shortEscapes[r]
		switch {
		case short:
			out = append(out, escape...)
		case r < 0x20:
			out = append(out, `\u00`...)
			out = append(out, strconv.FormatInt(int64(r)+0x100, 16)[1:]...)
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return append(out, '"')
}
