package apcore

import "github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"

// ContentHash returns the lower-case hex SHA-256 of the canonical form of a
// JSON value (apcore §4): keys sorted by code point, no white space, numbers as
// they are written. 10 and 10.0 differ, 9007199254740993 stays exact. A value
// that is no JSON fails with GENERAL_INVALID_INPUT.
func ContentHash(value any) (string, error) {
	hash, err := jsonvalue.Hash(value)
	if err != nil {
		return "", NewError(CodeInvalidInput, "no JSON value: %w", err)
	}
	return hash, nil
}

// EncodeJSON writes a value as JSON without escaping HTML. What cannot be
// written (NaN, a channel, a cycle, invalid UTF-8, a marshaller that panics)
// fails with GENERAL_INVALID_INPUT; it never panics.
func EncodeJSON(value any) ([]byte, error) {
	data, err := jsonvalue.Encode(value)
	if err != nil {
		return nil, NewError(CodeInvalidInput, "the value cannot be written as JSON: %w", err)
	}
	return data, nil
}

// DecodeObject reads one JSON object; numbers keep their digits as json.Number.
// Anything else fails with GENERAL_INVALID_INPUT.
func DecodeObject(data []byte) (map[string]any, error) { return decodeObject(data) }
