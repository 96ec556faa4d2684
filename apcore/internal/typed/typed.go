// Package typed moves values between Go types and the JSON data model without
// writing JSON on the way. What it does, it does as encoding/json does, with
// numbers kept exact; what it is not sure of, it leaves to encoding/json: every
// function says whether it did the work, and a caller must be ready for a no.
package typed

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// maxDepth is the nesting that package jsonvalue lets pass.
const maxDepth = 512

var (
	numberType          = reflect.TypeFor[json.Number]()
	timeType            = reflect.TypeFor[time.Time]()
	marshalerType       = reflect.TypeFor[json.Marshaler]()
	textMarshalerType   = reflect.TypeFor[encoding.TextMarshaler]()
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// writesItself reports whether encoding/json asks values of a type for their
// form; always is false if it asks only those that it can address.
func writesItself(t reflect.Type) (always, addressed bool) {
	always = t.Implements(marshalerType) || t.Implements(textMarshalerType)
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
		p := reflect.PointerTo(t)
		addressed = p.Implements(marshalerType) || p.Implements(textMarshalerType)
	}
	return always, addressed
}

func readsItself(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer {
		t = reflect.PointerTo(t)
	}
	return t.Implements(unmarshalerType) || t.Implements(textUnmarshalerType)
}

// field is a field of a struct as JSON sees it.
type field struct {
	name                string
	at                  int
	inner               []int // where it is if a struct is embedded, nil otherwise
	of                  reflect.Type
	omitEmpty, omitZero bool
}

func (f *field) value(v reflect.Value) reflect.Value {
	if f.inner != nil {
		return v.FieldByIndex(f.inner)
	}
	return v.Field(f.at)
}

// fieldsOf lists the fields of a struct. It is not ok for what only
// encoding/json knows the rules of: names that occur twice, embedded pointers,
// the option "string", odd names.
func fieldsOf(t reflect.Type) (fields []field, ok bool) {
	names := map[string]bool{}
	for f := range t.Fields() {
		tag, tagged := f.Tag.Lookup("json")
		if tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if f.Anonymous && name == "" {
			more, plain := embeddedFields(f)
			if !plain {
				return nil, false
			}
			fields = append(fields, more...)
			continue
		}
		if !f.IsExported() {
			continue
		}
		if tagged && !plainTag(name) {
			return nil, false
		}
		added := field{name: name, at: f.Index[0], of: f.Type}
		if name == "" {
			added.name = f.Name
		}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "omitempty":
				added.omitEmpty = true
			case "omitzero":
				added.omitZero = true
			case "string":
				return nil, false
			}
		}
		if added.omitZero && f.Type != timeType && hasIsZero(f.Type) {
			return nil, false
		}
		fields = append(fields, added)
	}
	for _, f := range fields {
		if names[f.name] {
			return nil, false
		}
		names[f.name] = true
	}
	return fields, true
}

func embeddedFields(f reflect.StructField) (fields []field, ok bool) {
	always, addressed := writesItself(f.Type)
	if f.Type.Kind() != reflect.Struct || always || addressed || readsItself(f.Type) {
		return nil, false
	}
	fields, ok = fieldsOf(f.Type)
	for i := range fields {
		inner := fields[i].inner
		if inner == nil {
			inner = []int{fields[i].at}
		}
		fields[i].inner = append([]int{f.Index[0]}, inner...)
	}
	return fields, ok
}

// plainTag reports whether a name in a tag is certainly taken as it is.
func plainTag(name string) bool {
	return !strings.ContainsFunc(name, func(c rune) bool {
		return c != '_' && c != '-' && c != '.' && c != '$' && c != '/' && c != ':' && c != '@' && !unicode.IsLetter(c) && !unicode.IsDigit(c)
	})
}

func hasIsZero(t reflect.Type) bool {
	_, own := t.MethodByName("IsZero")
	_, addressed := reflect.PointerTo(t).MethodByName("IsZero")
	return own || addressed
}
