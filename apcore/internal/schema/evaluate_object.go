package schema

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func (e *evaluation) checkObject(s *jsonschema.Schema, object map[string]any, seen *looked) bool {
	ok := true
	if s.MinProperties != nil && len(object) < *s.MinProperties {
		ok = e.fail("minProperties", "has fewer than %d properties", *s.MinProperties)
	}
	if s.MaxProperties != nil && len(object) > *s.MaxProperties {
		ok = e.fail("maxProperties", "has more than %d properties", *s.MaxProperties)
	}
	if missing := lacking(object, s.Required); missing != nil {
		ok = e.fail("required", "lacks %s", quoted(missing))
	}
	if e.goOn(ok) {
		ok = e.checkDependencies(s, object) && ok
	}
	if e.goOn(ok) {
		ok = e.checkPropertyNames(s, object) && ok
	}
	if e.goOn(ok) {
		ok = e.checkProperties(s, object, seen) && ok
	}
	return ok
}

func lacking(object map[string]any, names []string) (missing []string) {
	for _, name := range names {
		if _, ok := object[name]; !ok {
			missing = append(missing, name)
		}
	}
	return missing
}

// checkDependencies applies dependentRequired and the older dependencies.
func (e *evaluation) checkDependencies(s *jsonschema.Schema, object map[string]any) bool {
	if s.DependentRequired == nil && s.Dependencies == nil {
		return true
	}
	ok := true
	for _, name := range slices.Sorted(maps.Keys(s.DependentRequired)) {
		if missing := lacking(object, s.DependentRequired[name]); missing != nil && has(object, name) {
			ok = e.fail("dependentRequired", "has %q and lacks %s", name, quoted(missing))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		names, _ := s.Dependencies[name].([]string)
		if missing := lacking(object, names); missing != nil && has(object, name) {
			ok = e.fail("dependencies", "has %q and lacks %s", name, quoted(missing))
		}
	}
	return ok
}

func has(object map[string]any, name string) bool {
	_, ok := object[name]
	return ok
}

func (e *evaluation) checkPropertyNames(s *jsonschema.Schema, object map[string]any) bool {
	if s.PropertyNames == nil {
		return true
	}
	var bad []string
	for name := range object {
		if !e.test(s.PropertyNames, name, nil) {
			bad = append(bad, name)
		}
	}
	return bad == nil || e.fail("propertyNames", "may not be named %s", quoted(bad))
}

func (e *evaluation) checkProperties(s *jsonschema.Schema, object map[string]any, seen *looked) bool {
	if s.Properties == nil && s.PatternProperties == nil && s.AdditionalProperties == nil {
		return true
	}
	ok := true
	var extra []string
	for name, value := range object {
		matched, fine := e.checkProperty(s, name, value)
		if !matched && s.AdditionalProperties != nil {
			matched = true
			switch additional := s.AdditionalProperties.(type) {
			case bool:
				if !additional {
					fine = false
					extra = append(extra, name)
				}
			case *jsonschema.Schema:
				fine = e.below(additional, value, name, "additionalProperties")
			}
		}
		if matched {
			seen.property(name)
		}
		if ok = ok && fine; !e.goOn(ok) {
			return false
		}
	}
	if extra != nil {
		return e.fail("additionalProperties", "may not have %s", quoted(extra))
	}
	return ok
}

func (e *evaluation) checkProperty(s *jsonschema.Schema, name string, value any) (matched, ok bool) {
	ok = true
	if property := s.Properties[name]; property != nil {
		matched = true
		ok = e.below(property, value, name, "properties")
	}
	for pattern, property := range s.PatternProperties {
		if pattern.MatchString(name) {
			matched = true
			ok = e.below(property, value, name, "patternProperties") && ok
		}
	}
	return matched, ok
}
