package jsonvalue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"
)

// Encode writes a value as compact JSON without escaping HTML; keys of maps are
// sorted, fields of structs stay in their order. What is no JSON fails with an
// [*Error]: it never panics, and no invalid text is repaired.
func Encode(value any) ([]byte, error) {
	w := writer{foreign: marshal}
	if err := w.value(value, 0); err != nil {
		return nil, err
	}
	return w.out, nil
}

// marshal is json.Marshal without HTML escapes, for values outside the data
// model. It survives what their own methods do.
func marshal(value any, depth int) (text []byte, err error) {
	defer func() {
		if recover() != nil {
			text, err = nil, &Error{Reason: fmt.Sprintf("writing a %T panicked", value)}
		}
	}()
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, &Error{Reason: readable(err)}
	}
	text = bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
	if !utf8.Valid(text) || repaired(text) && !validText(reflect.ValueOf(value), 0) {
		return nil, &Error{Reason: reasonText}
	}
	if depth+depthOf(text) > maxDepth {
		return nil, &Error{Reason: reasonDepth}
	}
	return text, nil
}

// readable drops the value from encoding/json's errors; it may be secret.
func readable(err error) string {
	var value *json.UnsupportedValueError
	var kind *json.UnsupportedTypeError
	var marshaler *json.MarshalerError
	switch {
	case errors.As(err, &marshaler):
		return fmt.Sprintf("a %v cannot write itself as JSON", marshaler.Type)
	case errors.As(err, &kind):
		return fmt.Sprintf("a %v has no JSON form", kind.Type)
	case errors.As(err, &value):
		return "a number is not finite, or a value contains itself"
	default:
		return "the value has no JSON form"
	}
}

// repaired reports whether encoding/json may have replaced invalid UTF-8: it
// writes an escape where a character that was there would stand as it is.
func repaired(text []byte) bool { return bytes.Contains(text, []byte(`\ufffd`)) }

var (
	marshalerType     = reflect.TypeFor[json.Marshaler]()
	textMarshalerType = reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()
)

// validText looks for invalid UTF-8 in what encoding/json wrote by itself. It
// runs only on the rare suspicion and only on values that were written, so that
// they contain no cycles.
func validText(v reflect.Value, depth int) bool {
	if depth > maxDepth || !v.IsValid() || v.Type().Implements(marshalerType) || v.Type().Implements(textMarshalerType) {
		return true
	}
	switch v.Kind() {
	case reflect.String:
		return utf8.ValidString(v.String())
	case reflect.Interface, reflect.Pointer:
		return validText(v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !validText(v.Index(i), depth+1) {
				return false
			}
		}
	case reflect.Map:
		for entry := v.MapRange(); entry.Next(); {
			if !validText(entry.Key(), depth+1) || !validText(entry.Value(), depth+1) {
				return false
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if (field.IsExported() || field.Anonymous) && !validText(v.Field(i), depth+1) {
				return false
			}
		}
	}
	return true
}
