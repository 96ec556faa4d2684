package durable

import (
	"bytes"
	"encoding/json"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// publicData encodes what a context would take along, key by key.
func publicData(c *apcore.Context) map[string][]byte {
	encoded := map[string][]byte{}
	for key, value := range c.Data().Public() {
		if key == IdempotencyKey || key == AttemptKey {
			continue
		}
		if text, err := apcore.EncodeJSON(value); err == nil {
			encoded[key] = text
		}
	}
	return encoded
}

// changedData returns what a call added to the context or changed in it. What
// it deleted stays with the caller.
func changedData(before map[string][]byte, after *apcore.Context) map[string][]byte {
	changed := publicData(after)
	for key, text := range before {
		if bytes.Equal(changed[key], text) {
			delete(changed, key)
		}
	}
	return changed
}

func (r *CallResult) setData(data map[string][]byte) {
	if len(data) == 0 {
		return
	}
	r.Data = make(map[string]json.RawMessage, len(data))
	for key, text := range data {
		r.Data[key] = text
	}
}
