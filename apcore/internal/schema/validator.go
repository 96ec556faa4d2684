// Package schema validates JSON values against JSON Schema 2020-12 and infers
// schemas from Go types. What it says about a failure names places and keywords,
// never values: they may be secret.
package schema

import (
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// Validator is a compiled schema; it may be used concurrently.
type Validator struct {
	compiled *jsonschema.Schema
	any      bool // the schema is {}: any object will do
}

// location is where the compiler thinks the schema came from; nothing is loaded
// from anywhere else.
const location = "apcore:///schema.json"

// noLoader refuses references that lead out of the schema.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("reference %s leads out of the schema: put what it means under $defs", url)
}

// Compile prepares a schema. Formats are annotations and never fail a value. A
// schema that cannot be enforced fails with what is wrong.
func Compile(given map[string]any) (*Validator, error) {
	document, err := jsonvalue.CloneObject(given)
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(location, document); err != nil {
		return nil, readable(err)
	}
	compiled, err := compiler.Compile(location)
	if err != nil {
		return nil, readable(err)
	}
	return &Validator{compiled: compiled, any: len(document) == 0}, nil
}

func readable(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), location, ""))
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

// Validate returns every failure, one for each place and keyword; none means the
// value is fine. Nothing is converted: "42" is no integer, 4.0 is one. The value
// has to be in the JSON data model, see package jsonvalue.
func (v *Validator) Validate(value any) []Item {
	if _, object := value.(map[string]any); v.any && object {
		return nil
	}
	err := v.compiled.Validate(value)
	if err == nil {
		return nil
	}
	var failure *jsonschema.ValidationError
	if !errors.As(err, &failure) {
		return []Item{{Keyword: "type", Message: "is no JSON value"}}
	}
	collector := &collector{seen: map[[2]string]bool{}}
	collector.visit(failure)
	return collector.items
}
