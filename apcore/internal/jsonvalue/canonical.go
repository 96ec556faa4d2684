package jsonvalue

import (
	"crypto/sha256"
	"encoding/hex"
)

// Canonical writes a value so that equal values give equal texts: keys sorted
// by code point, no white space, only those characters escaped that JSON
// demands, numbers as they are written (json.Number as it is, Go's numbers as
// encoding/json writes them). It is not RFC 8785, which would round numbers to
// what a float64 can hold.
func Canonical(value any) ([]byte, error) {
	w := writer{foreign: canonicalForeign}
	if err := w.value(value, 0); err != nil {
		return nil, err
	}
	return w.out, nil
}

// canonicalForeign sorts the fields of structs too.
func canonicalForeign(value any, depth int) ([]byte, error) {
	plain, err := throughJSON(value, depth)
	if err != nil {
		return nil, err
	}
	return Canonical(plain)
}

// Hash returns the lower-case hex SHA-256 of the canonical form.
func Hash(value any) (string, error) {
	text, err := Canonical(value)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
