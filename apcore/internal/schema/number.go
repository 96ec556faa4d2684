package schema

import (
	"encoding/json"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
)

// number is a JSON number, exactly. Nearly all are small and whole.
type number struct {
	whole int64
	ratio *big.Rat // nil when whole says it all
}

const (
	// maxDigits and maxExponent keep a short text from becoming a huge number.
	maxDigits   = 1024
	maxExponent = 4096
)

// numberOf reads any number of the JSON data model; ok is false for one beyond
// what is reasonable. Floats count as what encoding/json writes for them.
func numberOf(value any) (n number, ok bool) {
	switch v := value.(type) {
	case int:
		return number{whole: int64(v)}, true
	case int64:
		return number{whole: v}, true
	case json.Number:
		return parseNumber(string(v))
	case float64:
		return floatNumber(v, 64)
	case float32:
		return floatNumber(float64(v), 32)
	}
	switch v := reflect.ValueOf(value); {
	case v.CanInt():
		return number{whole: v.Int()}, true
	case v.CanUint() && v.Uint() <= math.MaxInt64:
		return number{whole: int64(v.Uint())}, true //nolint:gosec // checked
	case v.CanUint():
		return number{ratio: new(big.Rat).SetUint64(v.Uint())}, true
	}
	return number{}, false
}

func floatNumber(f float64, bits int) (number, bool) {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return number{whole: int64(f)}, true
	}
	return parseNumber(strconv.FormatFloat(f, 'g', -1, bits))
}

func parseNumber(text string) (number, bool) {
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
		return number{whole: whole}, true
	}
	if len(text) > maxDigits {
		return number{}, false
	}
	if _, exponent, _ := strings.Cut(strings.ToLower(text), "e"); exponent != "" {
		if power, err := strconv.Atoi(exponent); err != nil || power > maxExponent || power < -maxExponent {
			return number{}, false
		}
	}
	ratio, ok := new(big.Rat).SetString(text)
	if !ok {
		return number{}, false
	}
	if ratio.IsInt() && ratio.Num().IsInt64() {
		return number{whole: ratio.Num().Int64()}, true
	}
	return number{ratio: ratio}, true
}

func (n number) isInteger() bool { return n.ratio == nil || n.ratio.IsInt() }

func (n number) rat() *big.Rat {
	if n.ratio != nil {
		return n.ratio
	}
	return new(big.Rat).SetInt64(n.whole)
}

func (n number) compare(bound *big.Rat) int {
	if n.ratio == nil && bound.IsInt() && bound.Num().IsInt64() {
		switch other := bound.Num().Int64(); {
		case n.whole < other:
			return -1
		case n.whole > other:
			return 1
		default:
			return 0
		}
	}
	return n.rat().Cmp(bound)
}

func (n number) isMultipleOf(factor *big.Rat) bool {
	if n.ratio == nil && factor.IsInt() && factor.Num().IsInt64() && factor.Sign() != 0 {
		return n.whole%factor.Num().Int64() == 0
	}
	return factor.Sign() != 0 && new(big.Rat).Quo(n.rat(), factor).IsInt()
}

// equal compares JSON values: numbers by value, whatever their type or digits.
func equal(a, b any) bool {
	a, aOK := plain(a)
	b, bOK := plain(b)
	if kind := kindOf(a); !aOK || !bOK || kind != kindOf(b) {
		return false
	} else if kind == numberKind {
		return equalNumbers(a, b)
	}
	switch a := a.(type) {
	case map[string]any:
		return equalObjects(a, b.(map[string]any)) //nolint:forcetypeassert // of one kind
	case []any:
		return equalArrays(a, b.([]any)) //nolint:forcetypeassert // of one kind
	default:
		return a == b
	}
}

func equalNumbers(a, b any) bool {
	x, xOK := numberOf(a)
	y, yOK := numberOf(b)
	switch {
	case !xOK || !yOK:
		return xOK == yOK && a == b // the same huge text
	case x.ratio == nil && y.ratio == nil:
		return x.whole == y.whole
	default:
		return x.rat().Cmp(y.rat()) == 0
	}
}

func equalObjects(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for key, item := range a {
		other, ok := b[key]
		if !ok || !equal(item, other) {
			return false
		}
	}
	return true
}

func equalArrays(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !equal(a[i], b[i]) {
			return false
		}
	}
	return true
}
