package apcore

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strconv"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// annotationReaders read one canonical key each; null has been dealt with.
var annotationReaders = map[string]func(a *Annotations, value any) error{
	"readonly":          func(a *Annotations, v any) error { return readFlag(&a.Readonly, v, false) },
	"destructive":       func(a *Annotations, v any) error { return readFlag(&a.Destructive, v, false) },
	"idempotent":        func(a *Annotations, v any) error { return readFlag(&a.Idempotent, v, false) },
	"requires_approval": func(a *Annotations, v any) error { return readFlag(&a.RequiresApproval, v, false) },
	"open_world":        func(a *Annotations, v any) error { return readFlag(&a.ClosedWorld, v, true) },
	"streaming":         func(a *Annotations, v any) error { return readFlag(&a.Streaming, v, false) },
	"cacheable":         func(a *Annotations, v any) error { return readFlag(&a.Cacheable, v, false) },
	"cache_ttl":         readTTL,
	"cache_key_fields":  readKeyFields,
	"paginated":         func(a *Annotations, v any) error { return readFlag(&a.Paginated, v, false) },
	"pagination_style":  readPaginationStyle,
	"discoverable":      func(a *Annotations, v any) error { return readFlag(&a.Hidden, v, true) },
}

const extraKey = "extra"

// AnnotationsFromMap reads annotations in their wire form (§4.4, §4.4.1).
// Absent and null keys get their defaults. Other keys at the root, which older
// producers wrote there, move into Extra; the nested extra wins over them. An
// extra key that carries a canonical name is dropped and a negative cache_ttl
// counts as zero, both with a warning to [slog.Default]. The pagination style
// "cursor" is the default and read as empty.
//
// A value of the wrong type fails with GENERAL_INVALID_INPUT: an approval that
// was asked for as "yes" must not get lost. m is not kept.
func AnnotationsFromMap(m map[string]any) (Annotations, error) {
	var a Annotations
	for key, read := range annotationReaders {
		value, ok := m[key]
		if !ok || value == nil {
			continue
		}
		if err := read(&a, value); err != nil {
			return Annotations{}, NewError(CodeInvalidInput, "annotation %q: %v", key, err).WithDetail("annotation", key)
		}
	}
	extra, err := readExtra(m)
	if err != nil {
		return Annotations{}, err
	}
	a.Extra = extra
	return a, nil
}

func readFlag(target *bool, value any, negate bool) error {
	flag, ok := value.(bool)
	if !ok {
		return fmt.Errorf("want true or false, got %T", value)
	}
	*target = flag != negate
	return nil
}

func readTTL(a *Annotations, value any) error {
	seconds, ok := wholeNumber(value)
	if !ok {
		return fmt.Errorf("want whole seconds, got %T", value)
	}
	a.CacheTTL = clampTTL(seconds)
	return nil
}

func clampTTL(seconds int) int {
	if seconds < 0 {
		slog.Warn("apcore: a negative cache_ttl counts as zero", "cache_ttl", seconds)
		return 0
	}
	return seconds
}

// wholeNumber reads any number of the JSON data model as an int; 60.0 is 60.
func wholeNumber(value any) (int, bool) {
	switch v := value.(type) {
	case int:
		return v, true
	case float64:
		return int(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
	case json.Number:
		if i, err := strconv.Atoi(v.String()); err == nil {
			return i, true
		}
		f, err := v.Float64()
		return int(f), err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53
	case int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		i, err := strconv.Atoi(fmt.Sprint(v))
		return i, err == nil
	default:
		return 0, false
	}
}

func readKeyFields(a *Annotations, value any) error {
	copied, err := jsonvalue.Clone(value)
	if err != nil {
		return err
	}
	items, ok := copied.([]any)
	if !ok {
		return fmt.Errorf("want a list of texts, got %T", value)
	}
	a.CacheKeyFields = make([]string, len(items))
	for i, item := range items {
		if a.CacheKeyFields[i], ok = item.(string); !ok {
			return fmt.Errorf("want a list of texts, item %d is a %T", i, item)
		}
	}
	return nil
}

func readPaginationStyle(a *Annotations, value any) error {
	style, ok := value.(string)
	if !ok {
		return fmt.Errorf("want a text, got %T", value)
	}
	if style != defaultPaginationStyle {
		a.PaginationStyle = style
	}
	return nil
}

// readExtra merges the legacy flat keys and the nested object, which wins.
func readExtra(m map[string]any) (map[string]any, error) {
	flat := map[string]any{}
	for key, value := range m {
		if annotationReaders[key] == nil && key != extraKey {
			flat[key] = value
		}
	}
	extra, err := jsonvalue.CloneObject(flat)
	if err != nil {
		return nil, NewError(CodeInvalidInput, "annotations: %w", err)
	}
	nested, err := nestedExtra(m[extraKey])
	if err != nil {
		return nil, err
	}
	for key, value := range nested {
		extra[key] = value
	}
	dropCanonical(extra)
	if len(extra) == 0 {
		return nil, nil //nolint:nilnil // nil means no extras
	}
	return extra, nil
}

func nestedExtra(value any) (map[string]any, error) {
	copied, err := jsonvalue.Clone(value)
	if err != nil {
		return nil, NewError(CodeInvalidInput, "annotation %q is no JSON: %w", extraKey, err).WithDetail("annotation", extraKey)
	}
	if copied == nil {
		return nil, nil //nolint:nilnil // nil means no extras
	}
	nested, ok := copied.(map[string]any)
	if !ok {
		return nil, NewError(CodeInvalidInput, "annotation %q: want an object, got %T", extraKey, value).WithDetail("annotation", extraKey)
	}
	return nested, nil
}

// dropCanonical removes extra keys that would shadow a canonical field.
func dropCanonical(extra map[string]any) {
	for key := range extra {
		if annotationReaders[key] != nil {
			slog.Warn("apcore: an extra annotation carries the name of a standard one and is dropped", "key", key)
			delete(extra, key)
		}
	}
}
