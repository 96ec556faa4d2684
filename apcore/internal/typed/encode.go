package typed

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// Encoder turns values of one Go type into JSON values; it may be used
// concurrently.
type Encoder struct {
	encode encodeFunc
	pure   bool
}

// State is what one encoding finds out; its zero value is ready.
type State struct {
	// Null reports whether there is a null in the value.
	Null  bool
	depth int // of containers
}

func (s *State) null() (any, bool) {
	s.Null = true
	return nil, true
}

// enter and leave surround what stands in a container.
func (s *State) enter() bool {
	s.depth++
	return s.depth <= maxDepth
}

func (s *State) leave() { s.depth-- }

// encodeFunc makes a JSON value of a Go value. It reports whether it could; if
// not, the state is no good any more.
type encodeFunc func(v reflect.Value, s *State) (any, bool)

// NewEncoder makes the encoder of a type, nil if there is none.
func NewEncoder(t reflect.Type) *Encoder {
	b := &encoderBuilder{pure: true, known: map[reflect.Type]*encodeFunc{}}
	encode := b.build(t)
	if encode == nil || b.unsure {
		return nil
	}
	return &Encoder{encode: encode, pure: b.pure}
}

// Pure reports whether encoding runs no code of the values' own. A nil encoder
// is not pure.
func (e *Encoder) Pure() bool { return e != nil && e.pure }

// Encode returns the JSON value with numbers as json.Number. It shares nothing
// with v that somebody could write to. It is false for what encoding/json has to
// decide, failures among it. A nil encoder can nothing.
func (e *Encoder) Encode(v reflect.Value, s *State) (value any, ok bool) {
	if e == nil {
		return nil, false
	}
	return e.encode(v, s)
}

type encoderBuilder struct {
	known        map[reflect.Type]*encodeFunc
	pure, unsure bool
}

func (b *encoderBuilder) build(t reflect.Type) encodeFunc {
	if known := b.known[t]; known != nil {
		return func(v reflect.Value, s *State) (any, bool) { return (*known)(v, s) }
	}
	known := new(encodeFunc)
	b.known[t] = known
	*known = b.make(t)
	if *known == nil {
		b.unsure = true
	}
	return *known
}

func (b *encoderBuilder) make(t reflect.Type) encodeFunc {
	always, addressed := writesItself(t)
	switch {
	case t == timeType:
		return encodeTime
	case t == numberType:
		return encodeNumber
	case always:
		b.pure = false
		return encodeForeign
	case addressed: // encoding/json asks some of these, not all
		return nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return encodeBool
	case reflect.String:
		return encodeText
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return encodeInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return encodeUint
	case reflect.Float32, reflect.Float64:
		return encodeFloat
	case reflect.Interface:
		b.pure = false // whatever is in it
		return encodeInterface
	case reflect.Pointer:
		return b.pointer(t)
	case reflect.Slice:
		return b.slice(t)
	case reflect.Array:
		return list(b.build(t.Elem()))
	case reflect.Map:
		return b.object(t)
	case reflect.Struct:
		return b.structure(t)
	}
	return nil
}

func (b *encoderBuilder) pointer(t reflect.Type) encodeFunc {
	if t.Elem().Kind() == reflect.Pointer {
		return nil
	}
	encode := b.build(t.Elem())
	return func(v reflect.Value, s *State) (any, bool) {
		if v.IsNil() {
			return s.null()
		}
		return encode(v.Elem(), s)
	}
}

func (b *encoderBuilder) slice(t reflect.Type) encodeFunc {
	encode := list(b.build(t.Elem()))
	if always, _ := writesItself(t.Elem()); t.Elem().Kind() == reflect.Uint8 && !always {
		encode = encodeBytes
	}
	return func(v reflect.Value, s *State) (any, bool) {
		if v.IsNil() {
			return s.null()
		}
		return encode(v, s)
	}
}

func list(encode encodeFunc) encodeFunc {
	return func(v reflect.Value, s *State) (any, bool) {
		if !s.enter() {
			return nil, false
		}
		array := make([]any, v.Len())
		for i := range array {
			item, ok := encode(v.Index(i), s)
			if !ok {
				return nil, false
			}
			array[i] = item
		}
		s.leave()
		return array, true
	}
}

func (b *encoderBuilder) object(t reflect.Type) encodeFunc {
	if always, addressed := writesItself(t.Key()); t.Key().Kind() != reflect.String || always || addressed {
		return nil
	}
	encode := b.build(t.Elem())
	return func(v reflect.Value, s *State) (any, bool) {
		if v.IsNil() {
			return s.null()
		}
		if !s.enter() {
			return nil, false
		}
		object := make(map[string]any, v.Len())
		for entry := v.MapRange(); entry.Next(); {
			name := entry.Key().String()
			item, ok := encode(entry.Value(), s)
			if !ok || !utf8.ValidString(name) {
				return nil, false
			}
			object[name] = item
		}
		s.leave()
		return object, true
	}
}

func (b *encoderBuilder) structure(t reflect.Type) encodeFunc {
	fields, ok := fieldsOf(t)
	if !ok {
		return nil
	}
	encode := make([]encodeFunc, len(fields))
	for i := range fields {
		encode[i] = b.build(fields[i].of)
	}
	return func(v reflect.Value, s *State) (any, bool) {
		if !s.enter() {
			return nil, false
		}
		object := make(map[string]any, len(fields))
		for i := range fields {
			part := fields[i].value(v)
			if fields[i].omitEmpty && empty(part) || fields[i].omitZero && zero(part) {
				continue
			}
			item, ok := encode[i](part, s)
			if !ok {
				return nil, false
			}
			object[fields[i].name] = item
		}
		s.leave()
		return object, true
	}
}

// empty is what omitempty leaves out.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	default:
		return v.IsZero()
	}
}

// zero is what omitzero leaves out.
func zero(v reflect.Value) bool {
	if v.Type() == timeType {
		moment, ok := v.Interface().(time.Time)
		return ok && moment.IsZero()
	}
	return v.IsZero()
}

func encodeBool(v reflect.Value, _ *State) (any, bool) { return v.Bool(), true }

func encodeText(v reflect.Value, _ *State) (any, bool) {
	text := v.String()
	return text, utf8.ValidString(text)
}

func encodeInt(v reflect.Value, _ *State) (any, bool) {
	return json.Number(strconv.FormatInt(v.Int(), 10)), true
}

func encodeUint(v reflect.Value, _ *State) (any, bool) {
	return json.Number(strconv.FormatUint(v.Uint(), 10)), true
}

func encodeFloat(v reflect.Value, _ *State) (any, bool) {
	text, ok := jsonvalue.FloatText(v.Float(), v.Type().Bits())
	return json.Number(text), ok
}

func encodeNumber(v reflect.Value, _ *State) (any, bool) {
	number := json.Number(v.String())
	return number, jsonvalue.ValidNumber(string(number)) // an empty one is written as 0
}

func encodeBytes(v reflect.Value, _ *State) (any, bool) {
	return base64.StdEncoding.EncodeToString(v.Bytes()), true
}

func encodeTime(v reflect.Value, _ *State) (any, bool) {
	moment, ok := v.Interface().(time.Time)
	if !ok {
		return nil, false
	}
	text, err := moment.MarshalText()
	return string(text), err == nil
}

func encodeInterface(v reflect.Value, s *State) (any, bool) {
	if v.IsNil() {
		return s.null()
	}
	s.Null = true // who knows
	plain, err := jsonvalue.CloneAt(v.Elem().Interface(), s.depth)
	if err != nil {
		return nil, false
	}
	return normal(plain, s.depth)
}

// encodeForeign lets encoding/json write a value that writes itself.
func encodeForeign(v reflect.Value, s *State) (any, bool) {
	s.Null = true // who knows
	value, err := jsonvalue.CloneAt(v.Interface(), s.depth)
	return value, err == nil
}

// numberText writes a number of any Go type.
func numberText(value any) (json.Number, bool) {
	switch value := value.(type) {
	case json.Number:
		return value, true
	case int:
		return json.Number(strconv.Itoa(value)), true
	}
	text, ok := jsonvalue.NumberText(value)
	return json.Number(text), ok
}
