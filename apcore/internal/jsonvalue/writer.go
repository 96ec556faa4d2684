package jsonvalue

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// writer appends the compact JSON of plain values; keys are sorted.
type writer struct {
	out []byte
	// foreign writes values outside the data model.
	foreign func(value any, depth int) ([]byte, error)
}

func (w *writer) value(value any, depth int) error {
	switch v := value.(type) {
	case map[string]any:
		return w.object(v, depth)
	case []any:
		return w.array(v, depth)
	}
	plain, reason := checkScalar(value)
	if reason != "" {
		return &Error{Reason: reason}
	}
	if plain {
		w.scalar(value)
		return nil
	}
	text, err := w.foreign(value, depth)
	w.out = append(w.out, text...)
	return err
}

func (w *writer) object(object map[string]any, depth int) error {
	if object == nil {
		w.out = append(w.out, "null"...)
		return nil
	}
	if depth >= maxDepth {
		return &Error{Reason: reasonDepth}
	}
	keys := make([]string, 0, len(object))
	for key := range object {
		if !utf8.ValidString(key) {
			return &Error{Reason: reasonKey}
		}
		keys = append(keys, key)
	}
	slices.Sort(keys) // bytes of UTF-8 sort as code points do
	w.out = append(w.out, '{')
	for i, key := range keys {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.out = append(appendText(w.out, key), ':')
		if err := w.value(object[key], depth+1); err != nil {
			return within(err, key)
		}
	}
	w.out = append(w.out, '}')
	return nil
}

func (w *writer) array(array []any, depth int) error {
	if array == nil {
		w.out = append(w.out, "null"...)
		return nil
	}
	if depth >= maxDepth {
		return &Error{Reason: reasonDepth}
	}
	w.out = append(w.out, '[')
	for i, item := range array {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if err := w.value(item, depth+1); err != nil {
			return within(err, strconv.Itoa(i))
		}
	}
	w.out = append(w.out, ']')
	return nil
}

// scalar writes a plain value without parts; it has been checked.
func (w *writer) scalar(value any) {
	switch v := value.(type) {
	case nil:
		w.out = append(w.out, "null"...)
	case bool:
		w.out = strconv.AppendBool(w.out, v)
	case string:
		w.out = appendText(w.out, v)
	case json.Number:
		w.out = append(w.out, v...)
	case float64:
		w.out = appendFloat(w.out, v, 64)
	case float32:
		w.out = appendFloat(w.out, float64(v), 32)
	default:
		w.out = appendInteger(w.out, value)
	}
}

func appendInteger(out []byte, value any) []byte {
	switch v := value.(type) {
	case int:
		return strconv.AppendInt(out, int64(v), 10)
	case int8:
		return strconv.AppendInt(out, int64(v), 10)
	case int16:
		return strconv.AppendInt(out, int64(v), 10)
	case int32:
		return strconv.AppendInt(out, int64(v), 10)
	case int64:
		return strconv.AppendInt(out, v, 10)
	case uint:
		return strconv.AppendUint(out, uint64(v), 10)
	case uint8:
		return strconv.AppendUint(out, uint64(v), 10)
	case uint16:
		return strconv.AppendUint(out, uint64(v), 10)
	case uint32:
		return strconv.AppendUint(out, uint64(v), 10)
	case uint64:
		return strconv.AppendUint(out, v, 10)
	default:
		return out
	}
}

// appendFloat writes what encoding/json writes: the shortest decimal that reads
// back the same, with an exponent only outside 1e-6 to 1e21.
func appendFloat(out []byte, f float64, bits int) []byte {
	format, size := byte('f'), math.Abs(f)
	small, large := size < 1e-6, size >= 1e21
	if bits == 32 {
		small, large = float32(size) < 1e-6, float32(size) >= 1e21
	}
	if size != 0 && (small || large) {
		format = 'e'
	}
	out = strconv.AppendFloat(out, f, format, -1, bits)
	if n := len(out); format == 'e' && n >= 4 && out[n-4] == 'e' && out[n-3] == '-' && out[n-2] == '0' {
		out = append(out[:n-2], out[n-1]) // e-09 is written e-9
	}
	return out
}

const hexDigits = "0123456789abcdef"

// appendText escapes what JSON demands and nothing else.
func appendText(out []byte, text string) []byte {
	out = append(out, '"')
	begin := 0
	for i := range len(text) {
		c := text[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		out = append(out, text[begin:i]...)
		begin = i + 1
		switch c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\b':
			out = append(out, `\b`...)
		case '\f':
			out = append(out, `\f`...)
		case '\n':
			out = append(out, `\n`...)
		case '\r':
			out = append(out, `\r`...)
		case '\t':
			out = append(out, `\t`...)
		default:
			out = append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(out, text[begin:]...), '"')
}
