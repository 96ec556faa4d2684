package apcore

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"strings"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
	"github.com/apcore-temporal/apcore-temporal/apcore/internal/schema"
)

// decodeInto reads inputs as a Go value. A number such as 4.0 satisfies an
// integer schema but not Go's decoder, so a first failure is tried again with
// integral numbers written as integers.
func decodeInto(inputs map[string]any, target any) error {
	data, err := jsonvalue.Encode(inputs)
	if err != nil {
		return NewError(CodeInvalidInput, "inputs are no JSON object: %w", err)
	}
	err = unmarshal(data, target)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) && strings.HasPrefix(mismatch.Value, "number") {
		err = retryIntegral(data, target)
	}
	if err != nil {
		return schemaError("inputs", []schema.Item{typeItem(reflect.TypeOf(target).Elem(), err)})
	}
	return nil
}

func unmarshal(data []byte, target any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decoder.Decode(target)
}

func retryIntegral(data []byte, target any) error {
	object, err := jsonvalue.DecodeObject(data)
	if err != nil {
		return err
	}
	again, err := jsonvalue.Encode(integral(object))
	if err != nil {
		return err
	}
	return unmarshal(again, target)
}

// integral rewrites 4.0 and 1e2 as 4 and 100; numbers with an exponent of more
// than two digits fit no Go integer and stay.
func integral(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			value[key] = integral(item)
		}
	case []any:
		for i, item := range value {
			value[i] = integral(item)
		}
	case json.Number:
		if !strings.ContainsAny(string(value), ".eE") || hasLongExponent(string(value)) {
			return value
		}
		if ratio, ok := new(big.Rat).SetString(string(value)); ok && ratio.IsInt() {
			return json.Number(ratio.Num().String())
		}
	}
	return value
}

func hasLongExponent(number string) bool {
	_, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	return len(strings.TrimLeft(exponent, "+-0")) > 2
}

// typeItem names the field of a decoding error; the value stays out, it may be secret.
func typeItem(root reflect.Type, err error) schema.Item {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return schema.Item{Path: pathOf(root, mismatch.Field), Keyword: "type", Message: "does not fit the Go type " + mismatch.Type.String()}
	}
	return schema.Item{Keyword: "type", Message: "a field's text cannot be read as its Go type"}
}

// pathOf turns the field of a decoding error into a pointer into the inputs.
// encoding/json names embedded structs, which JSON does not have, and leaves out
// indices and keys: the path ends at the list or map.
func pathOf(t reflect.Type, field string) string {
	path := ""
	for name := range strings.SplitSeq(field, ".") {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || name == "" {
			break
		}
		next, embedded := fieldOf(t, name)
		if !embedded {
			path += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		}
		if next == nil {
			break
		}
		t = next
	}
	return path
}

// fieldOf finds a field by its name in JSON, or an embedded struct by its own.
func fieldOf(t reflect.Type, name string) (field reflect.Type, embedded bool) {
	for f := range t.Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == name, tag == "" && !f.Anonymous && f.Name == name:
			return f.Type, false
		case tag == "" && f.Anonymous && f.Name == name:
			return f.Type, true
		}
	}
	return nil, false
}
