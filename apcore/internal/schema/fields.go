package schema

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// field is a struct field as encoding/json sees it.
type field struct {
	name, goName string
	typ          reflect.Type
	tag          reflect.StructTag
	index        []int
	// tagged: the json tag gives the name, which beats one that does not.
	tagged bool
	// optional: the field may be left out.
	optional bool
	// quoted: numbers and booleans are written as texts.
	quoted bool
}

// embedded is a struct whose fields are promoted.
type embedded struct {
	typ   reflect.Type
	index []int
	// pointer: the struct may not be there, and its fields with it.
	pointer bool
}

// fieldsOf lists the JSON fields of a struct in the order in which they are
// written. Of several fields with one name the least deep wins, then the one
// whose tag says so; if that leaves two, none is written.
func fieldsOf(t reflect.Type) []field {
	var all []field
	level := []embedded{{typ: t}}
	for visited := map[reflect.Type]bool{}; len(level) > 0; {
		var deeper []embedded
		for _, e := range level {
			if visited[e.typ] {
				continue
			}
			fields, structs := directFields(e)
			all = append(all, fields...)
			deeper = append(deeper, structs...)
		}
		for _, e := range level {
			visited[e.typ] = true
		}
		level = deeper
	}
	return dominant(all)
}

func directFields(e embedded) (fields []field, structs []embedded) {
	for i := range e.typ.NumField() {
		f := e.typ.Field(i)
		index := append(slices.Clone(e.index), i)
		tag, given := f.Tag.Get("json"), f.Tag.Get("jsonschema")
		name, options, _ := strings.Cut(tag, ",")
		inner := pointee(f.Type)
		switch {
		case tag == "-" || given == "-":
		case f.Anonymous && (name == "" || !isName(name)) && inner.Kind() == reflect.Struct:
			structs = append(structs, embedded{typ: inner, index: index, pointer: e.pointer || inner != f.Type})
		case f.IsExported():
			fields = append(fields, newField(f, name, options, index, e.pointer))
		}
	}
	return fields, structs
}

// pointee is what a pointer points to, any other type itself.
func pointee(t reflect.Type) reflect.Type {
	if t.Name() == "" && t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func newField(f reflect.StructField, name, options string, index []int, mayLack bool) field {
	option := strings.Split(options, ",")
	if !isName(name) {
		name = ""
	}
	made := field{
		name: cmp.Or(name, f.Name), goName: f.Name, typ: f.Type, tag: f.Tag, index: index, tagged: name != "",
		optional: mayLack || f.Type.Kind() == reflect.Pointer || slices.Contains(option, "omitempty") || slices.Contains(option, "omitzero"),
	}
	if slices.Contains(option, "string") {
		switch pointee(f.Type).Kind() {
		case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
			reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
			reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			made.quoted = true
		}
	}
	return made
}

// isName reports whether encoding/json takes a tag's text for a name; otherwise
// the field keeps its own.
func isName(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r)
	})
}

// dominant keeps one field for each name and puts them in writing order.
func dominant(all []field) []field {
	byName := map[string][]field{}
	for _, f := range all {
		byName[f.name] = append(byName[f.name], f)
	}
	var kept []field
	for _, rivals := range byName {
		slices.SortStableFunc(rivals, byRank)
		if len(rivals) == 1 || byRank(rivals[0], rivals[1]) != 0 {
			kept = append(kept, rivals[0])
		}
	}
	slices.SortFunc(kept, func(a, b field) int { return slices.Compare(a.index, b.index) })
	return kept
}

func byRank(a, b field) int {
	if depth := cmp.Compare(len(a.index), len(b.index)); depth != 0 || a.tagged == b.tagged {
		return depth
	}
	if a.tagged {
		return -1
	}
	return 1
}
