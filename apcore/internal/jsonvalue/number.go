package jsonvalue

import (
	"encoding/json"
	"strings"
)

// ValidNumber is JSON's grammar of numbers.
func ValidNumber(text string) bool {
	rest := strings.TrimPrefix(text, "-")
	whole := digits(rest)
	if whole == 0 || whole > 1 && rest[0] == '0' {
		return false
	}
	if rest = rest[whole:]; strings.HasPrefix(rest, ".") {
		fraction := digits(rest[1:])
		if fraction == 0 {
			return false
		}
		rest = rest[1+fraction:]
	}
	if rest == "" {
		return true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return false
	}
	if rest = rest[1:]; rest != "" && (rest[0] == '+' || rest[0] == '-') {
		rest = rest[1:]
	}
	return rest != "" && digits(rest) == len(rest)
}

// digits counts those that a text begins with.
func digits(text string) (count int) {
	for count < len(text) && '0' <= text[count] && text[count] <= '9' {
		count++
	}
	return count
}

// NumberText writes a finite number of any Go type of the data model as
// encoding/json does.
func NumberText(value any) (text string, ok bool) {
	switch v := value.(type) {
	case nil, bool, string:
		return "", false
	case json.Number:
		return string(v), ValidNumber(string(v))
	}
	if plain, reason := checkScalar(value); !plain || reason != "" {
		return "", false
	}
	var w writer
	w.scalar(value)
	return string(w.out), true
}

// FloatText writes a finite float of 32 or 64 bits as encoding/json does.
func FloatText(f float64, bits int) (text string, ok bool) {
	if finite(f) != "" {
		return "", false
	}
	return string(appendFloat(nil, f, bits)), true
}
