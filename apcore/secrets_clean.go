package apcore

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
	"github.com/apcore-temporal/apcore-temporal/apcore/internal/redact"
)

// urlPassword finds the password in a URL with user information.
var urlPassword = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:@"']*:)([^\s/?#"']+)(@)`)

// setting finds name=value, as in connection strings and queries.
var setting = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_.-]*=(?:"[^"]*"|'[^']*'|[^\s&;,"']+)`)

// outside is for texts that belong to no call: it knows passwords in URLs and
// what stands under or behind a name of the standard's list.
var outside = &cleaner{redactor: defaultRedactor(), texts: strings.NewReplacer()}

func defaultRedactor() *redact.Redactor {
	redactor, err := redact.New(redact.Config{})
	if err != nil {
		panic(err) // it has no pattern that could fail
	}
	return redactor
}

// cleaner takes the secrets of one call out of what its module, its hooks and
// its handlers say: the values that redaction hides in inputs and output, what
// the redaction patterns match, passwords in URLs, and what stands under or
// behind a sensitive name. Nothing is cut before it is clean.
type cleaner struct {
	redactor *redact.Redactor
	texts    *strings.Replacer
	words    *regexp.Regexp
	ids      []string // of modules, which are no secrets
}

// cleaner knows the inputs as given and as middleware left them, and the output.
func (r *run) cleaner() *cleaner {
	var input, output map[string]any
	if r.entry != nil {
		input, output = r.entry.descriptor.InputSchema, r.entry.descriptor.OutputSchema
	}
	found, redactor := newSecrets(), r.executor.redactor
	for _, part := range []struct{ values, schema map[string]any }{{r.given, input}, {r.inputs, input}, {r.output, output}} {
		if plain, err := jsonvalue.CloneObject(part.values); err == nil { // steps and modules may leave anything
			found.compare(plain, redactor.Redact(plain, part.schema))
		}
	}
	c := &cleaner{redactor: redactor.engine, words: found.wordPattern(), ids: []string{r.moduleID, ExternalCaller}}
	c.texts = found.replacer(c.redactor.Replacement())
	if r.callee != nil {
		c.ids = append(c.ids, r.callee.chain...)
	}
	return c
}

func (c *cleaner) text(text string) string {
	mask := c.redactor.Replacement()
	text = c.texts.Replace(text)
	if c.words != nil {
		quoted := strings.ReplaceAll(mask, "$", "$$")
		for range 2 { // two words may share the character between them
			text = c.words.ReplaceAllString(text, "${1}"+quoted+"${2}")
		}
	}
	text = c.redactor.Text(text)
	text = urlPassword.ReplaceAllString(text, "${1}"+strings.ReplaceAll(mask, "$", "$$")+"${3}")
	return setting.ReplaceAllStringFunc(text, func(match string) string {
		if name, _, _ := strings.Cut(match, "="); c.redactor.Sensitive(name) {
			return name + "=" + mask
		}
		return match
	})
}

// value returns a JSON value without secrets. What holds none keeps its type;
// what is no JSON, or nested too deep to be looked through, is replaced.
func (c *cleaner) value(value any) any { return c.nested(value, 0) }

func (c *cleaner) nested(value any, depth int) any {
	switch value := value.(type) {
	case nil, bool:
		return value
	case string:
		return c.text(value)
	case map[string]any:
		return c.object(value, depth)
	case []any:
		if depth == maxCleanDepth {
			return c.redactor.Replacement()
		}
		clean := make([]any, len(value))
		for i, item := range value {
			clean[i] = c.nested(item, depth+1)
		}
		return clean
	default:
		return c.foreign(value, depth)
	}
}

// maxCleanDepth is what package jsonvalue lets pass.
const maxCleanDepth = 512

func (c *cleaner) object(object map[string]any, depth int) any {
	switch {
	case object == nil:
		return object
	case depth == maxCleanDepth:
		return c.redactor.Replacement()
	}
	clean := make(map[string]any, len(object))
	for key, value := range object {
		if value != nil && !redact.Protected(key) && c.redactor.Sensitive(key) {
			clean[c.text(key)] = c.redactor.Replacement()
			continue
		}
		clean[c.text(key)] = c.nested(value, depth+1)
	}
	return clean
}

// foreign is nested for numbers and for types outside the JSON data model.
func (c *cleaner) foreign(value any, depth int) any {
	switch value := value.(type) {
	case json.Number:
		return c.number(value, string(value))
	case []byte:
		return c.unless(c.text(string(value)), string(value), value)
	case error:
		return c.unless(c.text(value.Error()), value.Error(), value)
	}
	if isNumber(value) {
		return c.number(value, fmt.Sprint(value))
	}
	plain, err := jsonvalue.Clone(value)
	if err != nil {
		return c.redactor.Replacement()
	}
	if clean := c.nested(plain, depth); !reflect.DeepEqual(clean, plain) {
		return clean
	}
	return value
}

// unless returns value when cleaning changed nothing.
func (c *cleaner) unless(clean, text string, value any) any {
	if clean != text {
		return clean
	}
	return value
}

func (c *cleaner) number(value any, digits string) any {
	if c.words != nil && slices.ContainsFunc(numberForms(digits), c.words.MatchString) {
		return c.redactor.Replacement()
	}
	return value
}

func isNumber(value any) bool {
	switch reflect.ValueOf(value).Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16,
		reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return true
	default:
		return false
	}
}

// counts are the framework's own numbers in details.
var counts = map[string]bool{"timeout_ms": true, "depth": true, "max_depth": true, "count": true, "max_repeat": true, "chunk_index": true}

// details cleans the details of an error. Their names are no values, nor are the
// modules of the call.
func (c *cleaner) details(details map[string]any) map[string]any {
	clean := make(map[string]any, len(details))
	for key, value := range details {
		switch {
		case counts[key] && isNumber(value), c.isID(value):
			clean[key] = value
		case key == "call_chain":
			clean[key] = c.chain(value)
		case value != nil && !redact.Protected(key) && c.redactor.Sensitive(key):
			clean[key] = c.redactor.Replacement()
		default:
			clean[key] = c.value(value)
		}
	}
	return clean
}

func (c *cleaner) isID(value any) bool {
	text, ok := value.(string)
	return ok && slices.Contains(c.ids, text)
}

func (c *cleaner) chain(value any) any {
	chain, ok := value.([]any)
	if !ok {
		return c.value(value)
	}
	clean := slices.Clone(chain)
	for i, id := range chain {
		if !c.isID(id) {
			clean[i] = c.value(id)
		}
	}
	return clean
}

// clean returns a clean copy of an error of this package: message, details,
// hints and the whole tree of causes.
func (c *cleaner) clean(e *Error) *Error {
	clean := *e
	clean.Message, clean.AIGuidance, clean.Suggestion = c.text(e.Message), c.text(e.AIGuidance), c.text(e.Suggestion)
	if e.Details != nil {
		clean.Details = c.details(e.Details)
	}
	clean.Cause = c.cause(e.Cause)
	return &clean
}

// cause returns err itself if it and all that it wraps hold no secret.
func (c *cleaner) cause(err error) error {
	if isNil(err) {
		return err
	}
	if own, ok := err.(*Error); ok { //nolint:errorlint // what it wraps is cleaned with it
		return c.clean(own)
	}
	if !c.dirty(err) {
		return err
	}
	return &hiddenError{text: c.text(err.Error()), original: err, cleaner: c}
}

// dirty reports whether an error or anything it wraps holds a secret.
func (c *cleaner) dirty(err error) bool {
	if isNil(err) {
		return false
	}
	if own, ok := err.(*Error); ok { //nolint:errorlint // each error of the tree is looked at by itself
		clean := c.clean(own)
		return clean.Message != own.Message || clean.AIGuidance != own.AIGuidance || clean.Suggestion != own.Suggestion ||
			!maps.EqualFunc(clean.Details, own.Details, reflect.DeepEqual) || c.dirty(own.Cause)
	}
	if text := err.Error(); c.text(text) != text {
		return true
	}
	switch wrapper := err.(type) { //nolint:errorlint // each error of the tree is looked at by itself
	case interface{ Unwrap() error }:
		return c.dirty(wrapper.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(wrapper.Unwrap(), c.dirty)
	default:
		return false
	}
}

// hiddenError stands for an error whose text, or that of an error it wraps,
// holds secrets. In this process errors.Is and errors.As still find what it
// stands for, by those who name what they look for; every text, in a log, on the
// wire or along the chain of errors.Unwrap, is the clean one.
type hiddenError struct {
	text     string
	original error
	cleaner  *cleaner
}

func (e *hiddenError) Error() string { return e.text }

// GoString keeps %#v from printing the original.
func (e *hiddenError) GoString() string { return fmt.Sprintf("%q", e.text) }

func (e *hiddenError) Is(target error) bool { return errors.Is(e.original, target) }

// As finds an *Error as a clean copy.
func (e *hiddenError) As(target any) bool {
	if own, ok := target.(**Error); ok {
		found := AsError(e.original)
		if found == nil {
			return false
		}
		*own = e.cleaner.clean(found)
		return true
	}
	return errors.As(e.original, target)
}
