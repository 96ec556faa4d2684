package jsonvalue

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"unicode/utf8"
)

// Encode writes a value as compact JSON without escaping HTML. What is no JSON
// fails with an [*Error]: it never panics, and no invalid text is repaired.
func Encode(value any) ([]byte, error) {
	switch value.(type) {
	case map[string]any, []any, string:
		copied, err := Clone(value)
		if err != nil {
			return nil, err
		}
		value = copied
	}
	text, err := marshal(value)
	if err != nil {
		return nil, &Error{Reason: err.Error()}
	}
	return text, nil
}

// marshal is json.Marshal without HTML escapes that survives what a value's own
// methods do.
func marshal(value any) (text []byte, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("writing a %T panicked", value)
		}
	}()
	if err := checkText(reflect.ValueOf(value), 0); err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, readable(err)
	}
	if !utf8.Valid(buffer.Bytes()) {
		return nil, errors.New("a text is not valid UTF-8")
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

// readable drops the value from encoding/json's errors; it may be secret.
func readable(err error) error {
	var value *json.UnsupportedValueError
	var kind *json.UnsupportedTypeError
	var marshaler *json.MarshalerError
	switch {
	case errors.As(err, &marshaler):
		return fmt.Errorf("a %v cannot write itself as JSON", marshaler.Type)
	case errors.As(err, &kind):
		return fmt.Errorf("a %v has no JSON form", kind.Type)
	case errors.As(err, &value):
		return fmt.Errorf("a number is not finite, or a value contains itself")
	default:
		return errors.New("the value has no JSON form")
	}
}

var (
	marshalerType     = reflect.TypeFor[json.Marshaler]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
)

// checkText refuses invalid UTF-8, which encoding/json would silently replace.
func checkText(v reflect.Value, depth int) error {
	if depth > maxDepth {
		return errors.New("it is nested too deep, or contains itself")
	}
	if v.IsValid() && (v.Type().Implements(marshalerType) || v.Type().Implements(textMarshalerType)) {
		return nil // writes itself; what it writes is checked as a whole
	}
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return errors.New("a text is not valid UTF-8")
		}
	case reflect.Interface, reflect.Pointer:
		return checkText(v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		if kind := v.Type().Elem().Kind(); kind == reflect.Uint8 {
			return nil
		}
		for i := range v.Len() {
			if err := checkText(v.Index(i), depth+1); err != nil {
				return err
			}
		}
	case reflect.Map:
		for iter := v.MapRange(); iter.Next(); {
			if err := errors.Join(checkText(iter.Key(), depth+1), checkText(iter.Value(), depth+1)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := checkText(v.Field(i), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// Decode reads one JSON value; numbers keep their digits as json.Number.
func Decode(text []byte) (any, error) {
	if !utf8.Valid(text) {
		return nil, &Error{Reason: "the text is not valid UTF-8"}
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
