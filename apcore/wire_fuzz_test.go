package apcore_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// settles reads a text as a wire type, writes it, and reads that again: what was
// written once is written the same for ever after, and nothing panics.
func settles[T any](t *testing.T, data []byte) {
	t.Helper()
	var first, second T
	if json.Unmarshal(data, &first) != nil {
		return
	}
	once, err := json.Marshal(&first)
	if err != nil {
		return // a value that came as JSON but holds what Go cannot write back
	}
	if err := json.Unmarshal(once, &second); err != nil {
		t.Fatalf("%s was written and cannot be read: %v", once, err)
	}
	twice, err := json.Marshal(&second)
	if err != nil || !bytes.Equal(once, twice) {
		t.Fatalf("written once: %s\nwritten twice: %s (%v)", once, twice, err)
	}
}

func FuzzContextWire(f *testing.F) {
	f.Add([]byte(`{"_context_version":1,"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","caller_id":null,"call_chain":["a"],"identity":{"id":"u","roles":["r",1]},"data":{"_x":1,"n":9007199254740993}}`))
	f.Add([]byte(`{"_context_version":"x","trace_id":7,"caller_id":{},"call_chain":{},"identity":[],"data":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) { settles[apcore.Context](t, data) })
}

func FuzzErrorWire(f *testing.F) {
	f.Add([]byte(`{"code":"MODULE_TIMEOUT","message":"m","timestamp":"2026-03-01T12:00:00.000Z","details":{"n":1e400},"cause":{"code":"X","message":"y"},"retryable":null}`))
	f.Add([]byte(`{"code":7,"message":[],"timestamp":"yesterday","details":"x","cause":1,"retryable":"no"}`))
	f.Fuzz(func(t *testing.T, data []byte) { settles[apcore.Error](t, data) })
}

func FuzzAnnotationsWire(f *testing.F) {
	f.Add([]byte(`{"readonly":true,"cache_ttl":-1,"extra":{"a.b":1},"a.b":2,"readonly2":null}`))
	f.Fuzz(func(t *testing.T, data []byte) { settles[apcore.Annotations](t, data) })
}
