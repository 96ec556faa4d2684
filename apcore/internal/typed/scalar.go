package typed

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
)

func decodeBool(value any, into reflect.Value) bool {
	if value == nil {
		return true
	}
	b, ok := value.(bool)
	if ok {
		into.SetBool(b)
	}
	return ok
}

func decodeText(value any, into reflect.Value) bool {
	if value == nil {
		return true
	}
	text, ok := value.(string)
	if ok {
		into.SetString(text)
	}
	return ok
}

// decodeNumber reads a json.Number, which keeps the digits.
func decodeNumber(value any, into reflect.Value) bool {
	if value == nil {
		return true
	}
	number, ok := numberText(value)
	if ok {
		into.SetString(string(number))
	}
	return ok
}

func decodeInt(value any, into reflect.Value) bool {
	if value == nil {
		return true
	}
	whole, ok := wholeNumber(value)
	if !ok || into.OverflowInt(whole) {
		return false
	}
	into.SetInt(whole)
	return true
}

func decodeUint(value any, into reflect.Value) bool {
	if value == nil {
		return true
	}
	whole, ok := wholeNumber(value)
	if !ok || whole < 0 || into.OverflowUint(uint64(whole)) { // what is beyond an int64 is rare
		return false
	}
	into.SetUint(uint64(whole))
	return true
}

// maxExact is up to where every whole number is a float64.
const maxExact = 1 << 53

// wholeNumber is not ok for numbers that Go's decoder may read otherwise.
func wholeNumber(value any) (whole int64, ok bool) {
	switch v := value.(type) {
	case int:
		return int64(v), true
	case int64:
		return v, true
	case json.Number:
		whole, err := strconv.ParseInt(string(v), 10, 64)
		return whole, err == nil
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) < maxExact
	case int8:
		return int64(v), true
	case int16:
		return int64(v), true
	case int32:
		return int64(v), true
	case uint8:
		return int64(v), true
	case uint16:
		return int64(v), true
	case uint32:
		return int64(v), true
	default:
		return 0, false
	}
}

func decodeFloat(value any, into reflect.Value) bool {
	switch v := value.(type) {
	case nil:
	case float64:
		into.SetFloat(v)
	case int:
		into.SetFloat(float64(v))
	case int64:
		into.SetFloat(float64(v))
	case json.Number:
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil {
			return false
		}
		into.SetFloat(f)
	default:
		return false
	}
	return true
}

func decodeAny(value any, into reflect.Value) bool {
	plain, ok := normal(value, 0)
	if ok && plain != nil {
		into.Set(reflect.ValueOf(plain))
	}
	return ok
}

// normal copies a JSON value as it would come from JSON: numbers as json.Number.
func normal(value any, depth int) (any, bool) {
	switch value := value.(type) {
	case nil, bool, string:
		return value, true
	case map[string]any:
		if value == nil {
			return nil, true
		}
		return normalObject(value, depth+1)
	case []any:
		if value == nil {
			return nil, true
		}
		return normalArray(value, depth+1)
	}
	number, ok := numberText(value)
	return number, ok
}

func normalObject(object map[string]any, depth int) (any, bool) {
	if depth > maxDepth {
		return nil, false
	}
	copied := make(map[string]any, len(object))
	for key, item := range object {
		plain, ok := normal(item, depth)
		if !ok {
			return nil, false
		}
		copied[key] = plain
	}
	return copied, true
}

func normalArray(array []any, depth int) (any, bool) {
	if depth > maxDepth {
		return nil, false
	}
	copied := make([]any, len(array))
	for i, item := range array {
		plain, ok := normal(item, depth)
		if !ok {
			return nil, false
		}
		copied[i] = plain
	}
	return copied, true
}
