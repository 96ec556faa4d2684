package schema

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// evaluation is one walk over a value.
type evaluation struct {
	items []Item
	path  []string
	// quiet asks for the verdict only: the first failure ends the walk.
	quiet bool
}

const (
	rootKeyword = "false" // no root is a boolean schema
	// maxPath is beyond what package jsonvalue lets pass.
	maxPath = 1024
)

// fail records a failure at the present place; it returns false.
func (e *evaluation) fail(keyword, format string, args ...any) bool {
	return e.failUnion("", keyword, format, args...)
}

func (e *evaluation) failUnion(union Union, keyword, format string, args ...any) bool {
	if !e.quiet {
		e.items = append(e.items, Item{Path: pointer(e.path), Keyword: keyword, Union: union, Message: fmt.Sprintf(format, args...)})
	}
	return false
}

// goOn reports whether more may be found out: a quiet walk ends with its first
// failure.
func (e *evaluation) goOn(ok bool) bool { return ok || !e.quiet }

// check applies a schema to the value at the present place. keyword is what led
// to the schema; it is the one to blame if the schema is false. What the schema
// looks at is noted in seen, which is nil when nobody asks.
func (e *evaluation) check(s *jsonschema.Schema, value any, keyword string, seen *looked) bool {
	if s.Bool != nil {
		return *s.Bool || e.fail(keyword, "is not allowed")
	}
	value, ok := plain(value)
	if !ok || len(e.path) > maxPath {
		return e.fail("type", "is no JSON value")
	}
	own := seen
	if s.UnevaluatedProperties != nil || s.UnevaluatedItems != nil {
		own = &looked{}
	}
	ok = e.checkValue(s, value)
	if e.goOn(ok) {
		ok = e.checkParts(s, value, own) && ok
	}
	if e.goOn(ok) {
		ok = e.checkBeside(s, value, own) && ok
	}
	if e.goOn(ok) {
		ok = e.checkUnevaluated(s, value, own) && ok
	}
	if own != seen {
		seen.merge(own)
	}
	return ok
}

// below applies a schema to a part of the value. A schema that is false is the
// whole's failure.
func (e *evaluation) below(s *jsonschema.Schema, part any, token, keyword string) bool {
	if s.Bool != nil {
		return *s.Bool || e.fail(keyword, "may not have %q", token)
	}
	e.path = append(e.path, token)
	ok := e.check(s, part, keyword, nil)
	e.path = e.path[:len(e.path)-1]
	return ok
}

// test is check for the verdict only.
func (e *evaluation) test(s *jsonschema.Schema, value any, seen *looked) bool {
	quiet := evaluation{path: e.path, quiet: true}
	return quiet.check(s, value, rootKeyword, seen)
}

// checkValue applies the keywords that look at the value as a whole.
func (e *evaluation) checkValue(s *jsonschema.Schema, value any) bool {
	ok := e.checkType(s, value)
	if s.Const != nil && !equal(value, *s.Const) {
		ok = e.fail("const", "is not the one allowed value")
	}
	if s.Enum != nil && !contains(s.Enum.Values, value) {
		ok = e.fail("enum", "is none of the allowed values")
	}
	return ok
}

func contains(list []any, value any) bool {
	for _, item := range list {
		if equal(item, value) {
			return true
		}
	}
	return false
}

func (e *evaluation) checkType(s *jsonschema.Schema, value any) bool {
	if s.Types == nil {
		return true
	}
	allowed, got := kind(*s.Types), kindOf(value)
	if allowed&got != 0 {
		return true
	}
	if got == numberKind && allowed&integerKind != 0 {
		n, ok := numberOf(value)
		if ok && n.isInteger() {
			return true
		}
		return e.fail("type", "is no integer")
	}
	return e.fail("type", "is of type %s, want %s", got, strings.Join(s.Types.ToStrings(), " or "))
}

// checkParts applies the keywords for one type of value.
func (e *evaluation) checkParts(s *jsonschema.Schema, value any, seen *looked) bool {
	switch value := value.(type) {
	case map[string]any:
		return e.checkObject(s, value, seen)
	case []any:
		return e.checkArray(s, value, seen)
	case string:
		return e.checkText(s, value)
	case nil, bool:
		return true
	default:
		return e.checkNumber(s, value)
	}
}

func (e *evaluation) checkText(s *jsonschema.Schema, text string) bool {
	ok := true
	if s.MinLength != nil || s.MaxLength != nil {
		length := utf8.RuneCountInString(text)
		if s.MinLength != nil && length < *s.MinLength {
			ok = e.fail("minLength", "is shorter than %d characters", *s.MinLength)
		}
		if s.MaxLength != nil && length > *s.MaxLength {
			ok = e.fail("maxLength", "is longer than %d characters", *s.MaxLength)
		}
	}
	if s.Pattern != nil && !s.Pattern.MatchString(text) {
		ok = e.fail("pattern", "does not match the pattern %s", s.Pattern)
	}
	return ok
}

func (e *evaluation) checkNumber(s *jsonschema.Schema, value any) bool {
	if s.Minimum == nil && s.Maximum == nil && s.ExclusiveMinimum == nil && s.ExclusiveMaximum == nil && s.MultipleOf == nil {
		return true
	}
	n, ok := numberOf(value)
	if !ok {
		return e.fail("type", "is a number with too many digits")
	}
	if s.Minimum != nil && n.compare(s.Minimum) < 0 {
		ok = e.fail("minimum", "is below the minimum of %s", decimal(s.Minimum))
	}
	if s.Maximum != nil && n.compare(s.Maximum) > 0 {
		ok = e.fail("maximum", "is above the maximum of %s", decimal(s.Maximum))
	}
	if s.ExclusiveMinimum != nil && n.compare(s.ExclusiveMinimum) <= 0 {
		ok = e.fail("exclusiveMinimum", "is not above %s", decimal(s.ExclusiveMinimum))
	}
	if s.ExclusiveMaximum != nil && n.compare(s.ExclusiveMaximum) >= 0 {
		ok = e.fail("exclusiveMaximum", "is not below %s", decimal(s.ExclusiveMaximum))
	}
	if s.MultipleOf != nil && !n.isMultipleOf(s.MultipleOf) {
		ok = e.fail("multipleOf", "is no multiple of %s", decimal(s.MultipleOf))
	}
	return ok
}
