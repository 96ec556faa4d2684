package schema

import (
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func (e *evaluation) checkArray(s *jsonschema.Schema, array []any, seen *looked) bool {
	ok := true
	if s.MinItems != nil && len(array) < *s.MinItems {
		ok = e.fail("minItems", "has fewer than %d items", *s.MinItems)
	}
	if s.MaxItems != nil && len(array) > *s.MaxItems {
		ok = e.fail("maxItems", "has more than %d items", *s.MaxItems)
	}
	if s.UniqueItems && e.goOn(ok) {
		if first, second, found := duplicates(array); found {
			ok = e.fail("uniqueItems", "has equal items at %d and %d", first, second)
		}
	}
	if e.goOn(ok) {
		ok = e.checkItems(s, array, seen) && ok
	}
	if s.Contains != nil && e.goOn(ok) {
		ok = e.checkContains(s, array, seen) && ok
	}
	return ok
}

func (e *evaluation) checkItems(s *jsonschema.Schema, array []any, seen *looked) bool {
	ok := true
	for i, item := range array {
		schema, keyword := s.Items2020, "items"
		if i < len(s.PrefixItems) {
			schema, keyword = s.PrefixItems[i], "prefixItems"
		}
		if schema == nil {
			break
		}
		seen.item(i)
		ok = e.below(schema, item, strconv.Itoa(i), keyword) && ok
		if !e.goOn(ok) {
			return false
		}
	}
	return ok
}

func (e *evaluation) checkContains(s *jsonschema.Schema, array []any, seen *looked) bool {
	matches := 0
	for i, item := range array {
		if e.test(s.Contains, item, nil) {
			matches++
			seen.item(i)
		}
	}
	ok := true
	switch {
	case s.MinContains != nil && matches < *s.MinContains:
		ok = e.fail("minContains", "contains fewer than %d of the wanted items", *s.MinContains)
	case s.MinContains == nil && matches == 0:
		ok = e.fail("contains", "contains none of the wanted items")
	}
	if s.MaxContains != nil && matches > *s.MaxContains {
		ok = e.fail("maxContains", "contains more than %d of the wanted items", *s.MaxContains)
	}
	return ok
}

// duplicates finds two equal items. Texts, of which long lists mostly consist,
// are looked up; the rest is compared in pairs.
func duplicates(array []any) (first, second int, found bool) {
	texts := map[string]int{}
	var others []int
	for i, item := range array {
		if text, ok := item.(string); ok {
			if j, known := texts[text]; known {
				return j, i, true
			}
			texts[text] = i
			continue
		}
		for _, j := range others {
			if equal(array[j], item) {
				return j, i, true
			}
		}
		others = append(others, i)
	}
	return 0, 0, false
}
