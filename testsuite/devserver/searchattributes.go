package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/searchattribute/sadefs"
)

// searchAttributes are custom search attributes: name to type.
type searchAttributes map[string]enumspb.IndexedValueType

// parseSearchAttributes reads the --search-attribute flags, each NAME=TYPE.
func parseSearchAttributes(flags []string) (searchAttributes, error) {
	attributes := searchAttributes{}
	for _, flag := range flags {
		name, typeName, ok := strings.Cut(flag, "=")
		if !ok || name == "" || strings.ContainsFunc(name, isSpaceOrControl) {
			return nil, fmt.Errorf("--search-attribute %q is not NAME=TYPE", flag)
		}
		if sadefs.IsReserved(name) {
			return nil, fmt.Errorf("--search-attribute %q: the name belongs to the server itself: give another", flag)
		}
		valueType, err := parseValueType(typeName)
		if err != nil {
			return nil, fmt.Errorf("--search-attribute %q: %w", flag, err)
		}
		if earlier, ok := attributes[name]; ok && earlier != valueType {
			return nil, fmt.Errorf("--search-attribute %q was given before as %v: give one type", flag, earlier)
		}
		attributes[name] = valueType
	}
	return attributes, nil
}

// parseValueType finds the type of a name in any letter case.
func parseValueType(name string) (enumspb.IndexedValueType, error) {
	var known []string
	for number := range enumspb.IndexedValueType_name {
		valueType := enumspb.IndexedValueType(number)
		if valueType == enumspb.INDEXED_VALUE_TYPE_UNSPECIFIED {
			continue
		}
		if strings.EqualFold(name, valueType.String()) {
			return valueType, nil
		}
		known = append(known, valueType.String())
	}
	slices.Sort(known)
	return 0, fmt.Errorf("%q is no type: give one of %s", name, strings.Join(known, ", "))
}

// addTo returns the aliases of a namespace with the attributes added, and
// whether any was missing. Aliases map a column of the visibility store, such
// as Keyword01, to the name that users see; columns already taken keep their
// meaning, so that rows written before stay readable.
func (a searchAttributes) addTo(aliases map[string]string) (map[string]string, bool, error) {
	columns := sadefs.GetDBIndexSearchAttributes(nil).CustomSearchAttributes
	merged := maps.Clone(aliases)
	if merged == nil {
		merged = map[string]string{}
	}
	columnOf := map[string]string{}
	for column, name := range merged {
		columnOf[name] = column
	}
	changed := false
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if column, ok := columnOf[name]; ok {
			if columns[column] != a[name] {
				return nil, false, fmt.Errorf("search attribute %s is of type %v already, not %v: use that type, or another name", name, columns[column], a[name])
			}
			continue
		}
		column, err := freeColumn(columns, merged, a[name])
		if err != nil {
			return nil, false, fmt.Errorf("search attribute %s: %w", name, err)
		}
		merged[column] = name
		changed = true
	}
	return merged, changed, nil
}

// freeColumn returns the first column of a type that no alias has.
func freeColumn(columns map[string]enumspb.IndexedValueType, aliases map[string]string, valueType enumspb.IndexedValueType) (string, error) {
	count := 0
	for _, column := range slices.Sorted(maps.Keys(columns)) {
		if columns[column] != valueType {
			continue
		}
		if _, taken := aliases[column]; !taken {
			return column, nil
		}
		count++
	}
	return "", fmt.Errorf("a namespace has room for %d of type %v: ask for fewer", count, valueType)
}
