// Package schema validates JSON values against JSON Schema 2020-12 and infers
// schemas from Go types. What it says about a failure names places and keywords,
// never values: they may be secret.
//
// The library jsonschema reads and resolves schemas; the walk over a value is
// this package's own, because every failing keyword has to be reported and
// numbers have to keep their digits without a big.Rat for each.
package schema

import (
	"cmp"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Validator is a compiled schema; it may be used concurrently.
type Validator struct {
	compiled *jsonschema.Schema
}

// Item is one failure.
type Item struct {
	// Path is an RFC 6901 pointer into the value, empty for the value itself.
	Path string
	// Keyword is the one that failed.
	Keyword string
	// Message is for people.
	Message string
	// Union says how a oneOf or anyOf failed, empty for other keywords.
	Union Union
}

// Union is a way in which a union fails.
type Union string

// The two ways; they are codes of the standard.
const (
	UnionNoMatch   Union = "SCHEMA_UNION_NO_MATCH"
	UnionAmbiguous Union = "SCHEMA_UNION_AMBIGUOUS"
)

// UnionCode returns how the value failed if nothing but unions did, empty
// otherwise.
func UnionCode(items []Item) string {
	code := Union("")
	for _, item := range items {
		if item.Union == "" {
			return ""
		}
		if code == "" || item.Union == UnionNoMatch {
			code = item.Union
		}
	}
	return string(code)
}

// Validate returns every failure, one for each place and keyword, ordered by
// place; none means the value is fine. Nothing is converted: "42" is no integer,
// 4.0 is one. Numbers of any Go type are compared by their decimal value,
// exactly. Go values outside the JSON data model count as what they are in JSON.
func (v *Validator) Validate(value any) []Item {
	e := &evaluation{}
	if e.check(v.compiled, value, rootKeyword, nil) {
		return nil
	}
	slices.SortStableFunc(e.items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Keyword, b.Keyword), cmp.Compare(a.Message, b.Message))
	})
	return slices.CompactFunc(e.items, func(a, b Item) bool { return a.Path == b.Path && a.Keyword == b.Keyword })
}
