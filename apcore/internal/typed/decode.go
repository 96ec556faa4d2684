package typed

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// Decoder reads JSON objects as values of one Go type; it may be used
// concurrently.
type Decoder struct {
	decode decodeFunc
	pure   bool
}

// decodeFunc reads a JSON value into a zero value. It reports whether it could;
// if not, into is left half done.
type decodeFunc func(value any, into reflect.Value) bool

// NewDecoder makes the decoder of a type, nil if there is none.
func NewDecoder(t reflect.Type) *Decoder {
	b := &decoderBuilder{pure: true, known: map[reflect.Type]*decodeFunc{}}
	decode := b.build(t)
	if decode == nil || b.unsure {
		return nil
	}
	return &Decoder{decode: decode, pure: b.pure}
}

// Pure reports whether decoding runs no code of the type's own. A nil decoder is
// not pure.
func (d *Decoder) Pure() bool { return d != nil && d.pure }

// Decode reads an object that is known to be JSON, see [jsonvalue.CloneObject],
// into a zero value. The result shares nothing with the object that somebody
// could write to. It is false for what encoding/json has to decide, failures
// among it; into is to be thrown away then. A nil decoder can nothing.
func (d *Decoder) Decode(object map[string]any, into reflect.Value) bool {
	return d != nil && d.decode(object, into)
}

type decoderBuilder struct {
	known        map[reflect.Type]*decodeFunc
	pure, unsure bool
}

// build returns nil for a type that it has no way to read.
func (b *decoderBuilder) build(t reflect.Type) decodeFunc {
	if known := b.known[t]; known != nil {
		return func(value any, into reflect.Value) bool { return (*known)(value, into) }
	}
	known := new(decodeFunc)
	b.known[t] = known
	*known = b.make(t)
	if *known == nil {
		b.unsure = true
	}
	return *known
}

func (b *decoderBuilder) make(t reflect.Type) decodeFunc {
	switch {
	case t == timeType:
		return decodeTime
	case t == numberType:
		return decodeNumber
	case readsItself(t):
		b.pure = false
		return decodeForeign
	}
	switch t.Kind() {
	case reflect.Bool:
		return decodeBool
	case reflect.String:
		return decodeText
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return decodeInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return decodeUint
	case reflect.Float64:
		return decodeFloat
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return decodeAny
		}
	case reflect.Pointer:
		return b.pointer(t)
	case reflect.Slice:
		return b.slice(t)
	case reflect.Map:
		return b.object(t)
	case reflect.Struct:
		return b.structure(t)
	}
	return nil
}

func (b *decoderBuilder) pointer(t reflect.Type) decodeFunc {
	if t.Elem().Kind() == reflect.Pointer {
		return nil
	}
	decode := b.build(t.Elem())
	return func(value any, into reflect.Value) bool {
		if value == nil {
			return true
		}
		target := reflect.New(t.Elem())
		into.Set(target)
		return decode(value, target.Elem())
	}
}

func (b *decoderBuilder) slice(t reflect.Type) decodeFunc {
	decode := b.build(t.Elem())
	return func(value any, into reflect.Value) bool {
		if value == nil {
			return true
		}
		array, ok := value.([]any)
		if !ok { // base64 among it
			return false
		}
		if len(array) == 0 {
			into.Set(reflect.MakeSlice(t, 0, 0))
			return true
		}
		into.Grow(len(array))
		into.SetLen(len(array))
		for i, item := range array {
			if !decode(item, into.Index(i)) {
				return false
			}
		}
		return true
	}
}

func (b *decoderBuilder) object(t reflect.Type) decodeFunc {
	if t.Key().Kind() != reflect.String || readsItself(t.Key()) {
		return nil
	}
	decode := b.build(t.Elem())
	return func(value any, into reflect.Value) bool {
		if value == nil {
			return true
		}
		object, ok := value.(map[string]any)
		if !ok {
			return false
		}
		result := reflect.MakeMapWithSize(t, len(object))
		into.Set(result)
		for name, part := range object {
			item := reflect.New(t.Elem()).Elem()
			if !decode(part, item) {
				return false
			}
			result.SetMapIndex(reflect.ValueOf(name).Convert(t.Key()), item)
		}
		return true
	}
}

func (b *decoderBuilder) structure(t reflect.Type) decodeFunc {
	fields, ok := fieldsOf(t)
	if !ok {
		return nil
	}
	decode := make([]decodeFunc, len(fields))
	for i := range fields {
		decode[i] = b.build(fields[i].of)
	}
	return func(value any, into reflect.Value) bool {
		if value == nil {
			return true
		}
		object, ok := value.(map[string]any)
		if !ok {
			return false
		}
		found := 0
		for i := range fields {
			part, there := object[fields[i].name]
			if !there {
				continue
			}
			found++
			if !decode[i](part, fields[i].value(into)) {
				return false
			}
		}
		return found == len(object) || !otherCase(fields, object)
	}
}

// otherCase reports whether a key is the name of a field in another case, which
// encoding/json accepts.
func otherCase(fields []field, object map[string]any) bool {
	for key := range object {
		for i := range fields {
			if key != fields[i].name && strings.EqualFold(key, fields[i].name) {
				return true
			}
		}
	}
	return false
}

func decodeTime(value any, into reflect.Value) bool {
	switch text := value.(type) {
	case nil:
		return true
	case string:
		moment := new(time.Time)
		if moment.UnmarshalText([]byte(text)) != nil {
			return false
		}
		into.Set(reflect.ValueOf(moment).Elem())
		return true
	default:
		return false
	}
}

// decodeForeign lets encoding/json read a value that reads itself.
func decodeForeign(value any, into reflect.Value) bool {
	text, err := jsonvalue.Encode(value)
	if err != nil {
		return false
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into.Addr().Interface()) == nil
}
