package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// collector flattens the library's tree of errors.
type collector struct {
	items []Item
	seen  map[[2]string]bool
}

func (c *collector) visit(failure *jsonschema.ValidationError) {
	switch k := failure.ErrorKind.(type) {
	case *kind.AnyOf:
		c.add(failure, "anyOf", UnionNoMatch, "matches no branch of the union")
	case *kind.OneOf:
		if len(k.Subschemas) > 1 {
			c.add(failure, "oneOf", UnionAmbiguous, "matches more than one branch of the union")
		} else {
			c.add(failure, "oneOf", UnionNoMatch, "matches no branch of the union")
		}
	default:
		if len(failure.Causes) == 0 {
			keyword := keywordOf(failure)
			c.add(failure, keyword, "", describe(failure.ErrorKind, keyword))
		}
		for _, cause := range failure.Causes {
			c.visit(cause)
		}
	}
}

func (c *collector) add(failure *jsonschema.ValidationError, keyword string, union Union, message string) {
	item := Item{Path: pointer(failure.InstanceLocation), Keyword: keyword, Union: union, Message: message}
	key := [2]string{item.Path, item.Keyword}
	if !c.seen[key] {
		c.seen[key] = true
		c.items = append(c.items, item)
	}
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

func pointer(tokens []string) string {
	var path strings.Builder
	for _, token := range tokens {
		path.WriteString("/" + escaper.Replace(token))
	}
	return path.String()
}

func keywordOf(failure *jsonschema.ValidationError) string {
	if path := failure.ErrorKind.KeywordPath(); len(path) > 0 {
		return path[0]
	}
	switch failure.ErrorKind.(type) {
	case *kind.Not:
		return "not"
	case *kind.RefCycle:
		return "$ref"
	default:
		return "false"
	}
}

// describe writes the message from the schema's side only.
func describe(failure jsonschema.ErrorKind, keyword string) string {
	switch k := failure.(type) {
	case *kind.Type:
		return fmt.Sprintf("is of type %s, want %s", k.Got, strings.Join(k.Want, " or "))
	case *kind.Required:
		return "lacks " + quoted(k.Missing)
	case *kind.AdditionalProperties:
		return "may not have " + quoted(k.Properties)
	case *kind.Enum:
		return "is none of the allowed values"
	case *kind.Const:
		return "is not the one allowed value"
	case *kind.Minimum:
		return "is below the minimum of " + k.Want.RatString()
	case *kind.Maximum:
		return "is above the maximum of " + k.Want.RatString()
	case *kind.MinLength:
		return fmt.Sprintf("is shorter than %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("is longer than %d characters", k.Want)
	case *kind.Pattern:
		return "does not match the pattern " + k.Want
	default:
		return "does not satisfy " + keyword
	}
}

func quoted(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	for i, name := range names {
		names[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(names, ", ")
}
