package schema

import (
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// CompileKind says why a schema cannot be used; the values are codes of the
// standard.
type CompileKind string

// The four reasons.
const (
	// KindParse: the schema breaks JSON Schema, or a part of it cannot be enforced.
	KindParse CompileKind = "SCHEMA_PARSE_ERROR"
	// KindNotFound: a reference leads nowhere, or out of the schema.
	KindNotFound CompileKind = "SCHEMA_NOT_FOUND"
	// KindCircularRef: references lead back to where they began without going
	// down into the value.
	KindCircularRef CompileKind = "SCHEMA_CIRCULAR_REF"
	// KindMaxDepth: more than [MaxRefDepth] references follow one another.
	KindMaxDepth CompileKind = "SCHEMA_MAX_DEPTH_EXCEEDED"
)

// MaxRefDepth bounds how many references may follow one another at one place.
const MaxRefDepth = 32

// CompileError says why a schema cannot be used.
type CompileError struct {
	Kind CompileKind
	// Ref is the offending reference or place in the schema, empty if unknown.
	Ref string
	// Reason is for people.
	Reason string
}

// Error returns the reason, with the place if there is one.
func (e *CompileError) Error() string {
	if e.Ref == "" {
		return e.Reason
	}
	return e.Ref + ": " + e.Reason
}

const (
	// location is where the compiler thinks the schema came from; nothing is
	// loaded from anywhere else.
	location = "apcore:///schema.json"
	dialect  = "https://json-schema.org/draft/2020-12/schema"
)

// noLoader refuses references that lead out of the schema.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("it leads out of the schema: put what it means under $defs")
}

// Compile prepares a schema, which is not kept. Formats are annotations and
// never fail a value; unknown keywords are ignored; {} accepts everything. What
// cannot be enforced fails with a [*CompileError].
func Compile(given map[string]any) (*Validator, error) {
	document, err := jsonvalue.CloneObject(given)
	if err != nil {
		return nil, &CompileError{Kind: KindParse, Reason: err.Error()}
	}
	if err := checkDocument(document); err != nil {
		return nil, err
	}
	compiled, err := compile(document)
	if err != nil {
		return nil, err
	}
	if err := checkGraph(compiled); err != nil {
		return nil, err
	}
	return &Validator{compiled: compiled}, nil
}

// compile survives what the library does not foresee.
func compile(document map[string]any) (compiled *jsonschema.Schema, err error) {
	defer func() {
		if recover() != nil {
			err = &CompileError{Kind: KindParse, Reason: "the schema cannot be read"}
		}
	}()
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(location, document); err != nil {
		return nil, classify(err)
	}
	compiled, err = compiler.Compile(location)
	if err != nil {
		return nil, classify(err)
	}
	return compiled, nil
}

// checkDocument looks for what the library would take for something else: other
// dialects, whose formats it enforces, and numbers that it cannot hold, whose
// bounds it drops.
func checkDocument(document map[string]any) error {
	if given, ok := document["$schema"].(string); ok && strings.TrimSuffix(given, "#") != dialect {
		return &CompileError{Kind: KindParse, Ref: "$schema", Reason: "the dialect is JSON Schema 2020-12, not " + given}
	}
	if path, bad := unreadableNumber(document, ""); bad {
		return &CompileError{Kind: KindParse, Ref: path, Reason: "the number has too many digits"}
	}
	return nil
}

func unreadableNumber(value any, path string) (string, bool) {
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			if at, bad := unreadableNumber(item, path+"/"+escaper.Replace(key)); bad {
				return at, true
			}
		}
	case []any:
		for i, item := range value {
			if at, bad := unreadableNumber(item, fmt.Sprintf("%s/%d", path, i)); bad {
				return at, true
			}
		}
	default:
		if kindOf(value) == numberKind {
			_, readable := numberOf(value)
			return path, !readable
		}
	}
	return "", false
}

// classify gives the library's errors their code.
func classify(err error) error {
	var load *jsonschema.LoadURLError
	var pointer *jsonschema.JSONPointerNotFoundError
	var anchor *jsonschema.AnchorNotFoundError
	var invalid *jsonschema.SchemaValidationError
	switch {
	case errors.As(err, &load):
		return &CompileError{Kind: KindNotFound, Ref: local(load.URL), Reason: load.Err.Error()}
	case errors.As(err, &pointer):
		return &CompileError{Kind: KindNotFound, Ref: local(pointer.URL), Reason: "the reference leads nowhere"}
	case errors.As(err, &anchor):
		return &CompileError{Kind: KindNotFound, Ref: local(anchor.Reference), Reason: "the reference leads nowhere"}
	case errors.As(err, &invalid):
		return &CompileError{Kind: KindParse, Reason: "it breaks JSON Schema: " + firstLeaf(invalid.Err)}
	default:
		return &CompileError{Kind: KindParse, Reason: local(err.Error())}
	}
}

// local drops the made-up location and keeps what stands in the schema.
func local(text string) string {
	text = strings.ReplaceAll(text, location, "")
	return strings.TrimPrefix(text, "apcore:///")
}

// firstLeaf says in one line what is wrong with a schema: the library's text is
// a tree.
func firstLeaf(err error) string {
	failure, ok := err.(*jsonschema.ValidationError) //nolint:errorlint // the library's own type
	if !ok {
		return local(err.Error())
	}
	for len(failure.Causes) > 0 {
		failure = failure.Causes[0]
	}
	return failure.Error()
}
