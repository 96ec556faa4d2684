package apcore

import (
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strconv"
	"unicode/utf16"
)

// maxConditionDepth bounds the nesting of conditions; what is deeper is taken
// for a cycle.
const maxConditionDepth = 64

// copyConditions copies a rule's conditions deeply; nil stays nil.
func copyConditions(conditions map[string]any) (map[string]any, error) {
	if conditions == nil {
		return nil, nil //nolint:nilnil // none
	}
	copied, err := copyCondition(conditions, 0)
	object, _ := copied.(map[string]any)
	return object, err
}

// copyCondition copies objects and lists, whatever their Go types, to
// map[string]any and []any; integers become int64, other numbers float64. What
// is no JSON is kept as it is: a condition of the host's own may know it.
func copyCondition(value any, depth int) (any, error) {
	if depth > maxConditionDepth {
		return nil, errors.New("are nested deeper than 64 levels, or contain themselves")
	}
	if number, ok := value.(json.Number); ok {
		return plainNumber(number), nil
	}
	v := reflect.ValueOf(value)
	switch kind := v.Kind(); {
	case kind == reflect.Map && v.Type().Key().Kind() == reflect.String:
		return copyMap(v, depth)
	case kind == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8, kind == reflect.Array:
		return copyList(v, depth)
	case kind == reflect.String:
		return v.String(), nil
	case v.CanInt():
		return v.Int(), nil
	case v.CanUint():
		if n := v.Uint(); int64(n) < 0 {
			return n, nil
		}
		return int64(v.Uint()), nil
	case v.CanFloat():
		return v.Float(), nil
	default:
		return value, nil
	}
}

func copyMap(v reflect.Value, depth int) (any, error) {
	copied := make(map[string]any, v.Len())
	for entries := v.MapRange(); entries.Next(); {
		item, err := copyCondition(entries.Value().Interface(), depth+1)
		if err != nil {
			return nil, err
		}
		copied[entries.Key().String()] = item
	}
	return copied, nil
}

func copyList(v reflect.Value, depth int) (any, error) {
	copied := make([]any, v.Len())
	for i := range copied {
		item, err := copyCondition(v.Index(i).Interface(), depth+1)
		if err != nil {
			return nil, err
		}
		copied[i] = item
	}
	return copied, nil
}

// plainNumber keeps an integer's digits; what is no number stays a text.
func plainNumber(number json.Number) any {
	if n, err := number.Int64(); err == nil {
		return n
	}
	if f, err := number.Float64(); err == nil {
		return f
	}
	return number.String()
}

// equalConditions compares copied conditions with given ones; no conditions and
// an empty set are equal.
func equalConditions(copied, given map[string]any) bool {
	if len(copied) == 0 || len(given) == 0 {
		return len(copied) == len(given)
	}
	other, err := copyConditions(given)
	return err == nil && reflect.DeepEqual(copied, other)
}

var jsonEscape = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\.`)

// plainEscapes writes out what JSON may escape and the YAML library does not
// know: characters in two halves, and the slash.
func plainEscapes(data []byte) []byte {
	if !json.Valid(data) {
		return data
	}
	return jsonEscape.ReplaceAllFunc(data, func(escape []byte) []byte {
		switch {
		case escape[1] == '/':
			return escape[1:]
		case len(escape) != 12:
			return escape
		}
		high, _ := strconv.ParseUint(string(escape[2:6]), 16, 32)
		low, _ := strconv.ParseUint(string(escape[8:]), 16, 32)
		return []byte(string(utf16.DecodeRune(rune(high), rune(low))))
	})
}
