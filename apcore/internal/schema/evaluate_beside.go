package schema

import (
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// checkBeside applies the keywords that bring further schemas to the same place.
func (e *evaluation) checkBeside(s *jsonschema.Schema, value any, seen *looked) bool {
	ok := true
	if s.Ref != nil {
		ok = e.also(s.Ref, value, "$ref", seen)
	}
	if s.DynamicRef != nil && e.goOn(ok) {
		ok = e.also(s.DynamicRef.Ref, value, "$dynamicRef", seen) && ok
	}
	for _, branch := range s.AllOf {
		if e.goOn(ok) {
			ok = e.also(branch, value, "allOf", seen) && ok
		}
	}
	if s.AnyOf != nil && e.goOn(ok) {
		ok = e.checkAnyOf(s.AnyOf, value, seen) && ok
	}
	if s.OneOf != nil && e.goOn(ok) {
		ok = e.checkOneOf(s.OneOf, value, seen) && ok
	}
	if s.Not != nil && e.goOn(ok) && e.test(s.Not, value, nil) {
		ok = e.fail("not", "is what the schema rules out")
	}
	if s.If != nil && e.goOn(ok) {
		ok = e.checkIf(s, value, seen) && ok
	}
	if object, is := value.(map[string]any); is && e.goOn(ok) {
		ok = e.checkDependentSchemas(s, object, seen) && ok
	}
	return ok
}

// also applies a schema whose failures are this schema's.
func (e *evaluation) also(s *jsonschema.Schema, value any, keyword string, seen *looked) bool {
	note := seen.fresh()
	if !e.check(s, value, keyword, note) {
		return false
	}
	seen.merge(note)
	return true
}

func (e *evaluation) checkAnyOf(branches []*jsonschema.Schema, value any, seen *looked) bool {
	matched := false
	for _, branch := range branches {
		note := seen.fresh()
		if e.test(branch, value, note) {
			matched = true
			if seen == nil {
				return true
			}
			seen.merge(note)
		}
	}
	return matched || e.noMatch("anyOf", branches, value)
}

func (e *evaluation) checkOneOf(branches []*jsonschema.Schema, value any, seen *looked) bool {
	matched := 0
	for _, branch := range branches {
		note := seen.fresh()
		if !e.test(branch, value, note) {
			continue
		}
		if matched++; matched > 1 {
			return e.failUnion(UnionAmbiguous, "oneOf", "matches more than one branch of the union")
		}
		seen.merge(note)
	}
	return matched == 1 || e.noMatch("oneOf", branches, value)
}

// noMatch fails a union. When one branch only is of the value's type, it is the
// one that was meant, and the message says what is wrong with it.
func (e *evaluation) noMatch(keyword string, branches []*jsonschema.Schema, value any) bool {
	const message = "matches no branch of the union"
	if e.quiet {
		return false
	}
	meant := meantBranch(branches, value)
	if meant == nil {
		return e.failUnion(UnionNoMatch, keyword, message)
	}
	items := (&Validator{compiled: meant}).Validate(value)
	if len(items) == 0 {
		return e.failUnion(UnionNoMatch, keyword, message)
	}
	return e.failUnion(UnionNoMatch, keyword, "%s; of the closest one: %s%s", message, items[0].lead(), items[0].Message)
}

func (i Item) lead() string {
	if i.Path == "" {
		return ""
	}
	return i.Path + " "
}

func meantBranch(branches []*jsonschema.Schema, value any) (meant *jsonschema.Schema) {
	got := kindOf(value)
	if got == numberKind {
		got |= integerKind
	}
	for _, branch := range branches {
		types := typesOf(branch)
		if types != nil && kind(*types)&got == 0 {
			continue
		}
		if meant != nil {
			return nil
		}
		meant = branch
	}
	return meant
}

func typesOf(s *jsonschema.Schema) *jsonschema.Types {
	for s.Types == nil && s.Ref != nil {
		s = s.Ref
	}
	return s.Types
}

func (e *evaluation) checkIf(s *jsonschema.Schema, value any, seen *looked) bool {
	note := seen.fresh()
	if e.test(s.If, value, note) {
		seen.merge(note)
		return s.Then == nil || e.also(s.Then, value, "then", seen)
	}
	return s.Else == nil || e.also(s.Else, value, "else", seen)
}

func (e *evaluation) checkDependentSchemas(s *jsonschema.Schema, object map[string]any, seen *looked) bool {
	ok := true
	for name, schema := range s.DependentSchemas {
		if has(object, name) {
			ok = e.also(schema, object, "dependentSchemas", seen) && ok
		}
	}
	for name, dependency := range s.Dependencies {
		if schema, is := dependency.(*jsonschema.Schema); is && has(object, name) {
			ok = e.also(schema, object, "dependencies", seen) && ok
		}
	}
	return ok
}

// checkUnevaluated applies the last keywords of all to what nothing looked at.
func (e *evaluation) checkUnevaluated(s *jsonschema.Schema, value any, seen *looked) bool {
	ok := true
	switch value := value.(type) {
	case map[string]any:
		if s.UnevaluatedProperties == nil {
			return true
		}
		for name, part := range value {
			if !seen.properties[name] {
				ok = e.below(s.UnevaluatedProperties, part, name, "unevaluatedProperties") && ok
				seen.property(name)
			}
		}
	case []any:
		if s.UnevaluatedItems == nil {
			return true
		}
		for i, part := range value {
			if !seen.items[i] {
				ok = e.below(s.UnevaluatedItems, part, strconv.Itoa(i), "unevaluatedItems") && ok
				seen.item(i)
			}
		}
	}
	return ok
}

// looked notes which parts of a value some schema has looked at, for the
// unevaluated keywords. A nil *looked takes no notes.
type looked struct {
	properties map[string]bool
	items      map[int]bool
}

func (l *looked) fresh() *looked {
	if l == nil {
		return nil
	}
	return &looked{}
}

func (l *looked) property(name string) {
	if l == nil {
		return
	}
	if l.properties == nil {
		l.properties = map[string]bool{}
	}
	l.properties[name] = true
}

func (l *looked) item(index int) {
	if l == nil {
		return
	}
	if l.items == nil {
		l.items = map[int]bool{}
	}
	l.items[index] = true
}

func (l *looked) merge(other *looked) {
	if l == nil || other == nil {
		return
	}
	for name := range other.properties {
		l.property(name)
	}
	for index := range other.items {
		l.item(index)
	}
}
