package schema

import (
	"encoding/json"
	"math"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// kind is a type of JSON value, as a set of the library's.
type kind jsonschema.Types

var (
	nullKind    = named("null")
	boolKind    = named("boolean")
	numberKind  = named("number")
	integerKind = named("integer")
	textKind    = named("string")
	arrayKind   = named("array")
	objectKind  = named("object")
)

func named(name string) kind {
	var types jsonschema.Types
	types.Add(name)
	return kind(types)
}

func (k kind) String() string {
	names := jsonschema.Types(k).ToStrings()
	if len(names) == 0 {
		return "unknown"
	}
	return names[0]
}

// kindOf is zero for what is no JSON.
func kindOf(value any) kind {
	switch v := value.(type) {
	case nil:
		return nullKind
	case bool:
		return boolKind
	case string:
		return textKind
	case float64:
		return finite(v)
	case float32:
		return finite(float64(v))
	case json.Number, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return numberKind
	case map[string]any:
		return objectKind
	case []any:
		return arrayKind
	default:
		return 0
	}
}

func finite(f float64) kind {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return numberKind
}

// plain brings a value into the JSON data model, one level at a time: nearly
// always it is there already.
func plain(value any) (any, bool) {
	if kindOf(value) != 0 {
		return value, true
	}
	copied, err := jsonvalue.Clone(value)
	return copied, err == nil
}
