package schema

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
)

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// pointer is RFC 6901.
func pointer(tokens []string) string {
	var path strings.Builder
	for _, token := range tokens {
		path.WriteString("/" + escaper.Replace(token))
	}
	return path.String()
}

// maxNames is how many names a message lists.
const maxNames = 8

func quoted(names []string) string {
	slices.Sort(names)
	more := ""
	if len(names) > maxNames {
		more = " and " + strconv.Itoa(len(names)-maxNames) + " more"
		names = names[:maxNames]
	}
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = strconv.Quote(name)
	}
	return strings.Join(texts, ", ") + more
}

// decimal writes a bound the way a person would.
func decimal(bound *big.Rat) string {
	digits, exact := bound.FloatPrec()
	if !exact {
		return bound.RatString()
	}
	return bound.FloatString(digits)
}
