package testsuite

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// minCanaryLength is below which a canary would be found by chance.
const minCanaryLength = 8

// RequireNoSecrets fails the test if a canary is anywhere in a message, such as
// a history ([History]) or the server's description of a workflow, and says
// where. A canary is a value that occurs nowhere else, of 8 bytes at least, which
// the test has put where a secret would be. It is found as it is, in JSON, URL,
// hex and base64 form, also in the middle of encoded text.
func RequireNoSecrets(tb testing.TB, message proto.Message, canaries ...string) {
	tb.Helper()
	if len(canaries) == 0 {
		tb.Fatal("RequireNoSecrets needs a canary to look for")
	}
	for _, canary := range canaries {
		if len(canary) < minCanaryLength {
			tb.Fatalf("canary %q has %d bytes: give %d at least", canary, len(canary), minCanaryLength)
		}
	}
	for _, place := range FindSecrets(message, canaries...) {
		tb.Errorf("a secret is at %s", place)
	}
}

// FindSecrets returns the places of a message at which a canary is, see
// [RequireNoSecrets], in the order of the message and each once. An event of a
// history is named by its number and type:
// "1 WorkflowExecutionStarted input.payloads[0].data".
func FindSecrets(message proto.Message, canaries ...string) []string {
	var forms []string
	for _, canary := range canaries {
		forms = append(forms, formsOf(canary)...)
	}
	var places []string
	// The walk stops at what the function returns only.
	_ = protorange.Options{Stable: true}.Range(message.ProtoReflect(), func(values protopath.Values) error {
		text, ok := textOf(values.Index(-1).Value)
		if !ok || !slices.ContainsFunc(forms, func(form string) bool { return strings.Contains(text, form) }) {
			return nil
		}
		if place := placeOf(values); !slices.Contains(places, place) {
			places = append(places, place)
		}
		return nil
	}, nil)
	return places
}

func textOf(value protoreflect.Value) (string, bool) {
	switch value := value.Interface().(type) {
	case string:
		return value, true
	case []byte:
		return string(value), true
	default:
		return "", false
	}
}

// placeOf writes a path, from the event on if there is one.
func placeOf(values protopath.Values) string {
	event, from := "", 1 // the first step is the message itself
	for i := range values.Len() {
		message, ok := values.Index(i).Value.Interface().(protoreflect.Message)
		if !ok {
			continue
		}
		if found, ok := message.Interface().(*historypb.HistoryEvent); ok {
			event, from = fmt.Sprintf("%d %s ", found.EventId, found.EventType), i+1
		}
	}
	path := strings.TrimPrefix(values.Path[from:].String(), ".")
	if event != "" { // the attributes of an event stand under its type
		if attributes, rest, ok := strings.Cut(path, "."); ok && strings.HasSuffix(attributes, "_event_attributes") {
			path = rest
		}
	}
	return event + path
}

// formsOf lists how a text may look once it has been written into another one.
func formsOf(canary string) []string {
	forms := []string{canary, url.QueryEscape(canary), url.PathEscape(canary), hex.EncodeToString([]byte(canary)), strings.ToUpper(hex.EncodeToString([]byte(canary)))}
	if quoted, err := json.Marshal(canary); err == nil {
		forms = append(forms, string(quoted[1:len(quoted)-1]))
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		forms = append(forms, base64Forms(encoding, canary)...)
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// base64Forms are what every text that holds the canary has in common, for each
// of the three places at which it may begin.
func base64Forms(encoding *base64.Encoding, canary string) []string {
	var forms []string
	for before := range 3 {
		encoded := encoding.EncodeToString([]byte(strings.Repeat("\x00", before) + canary))
		start := (before*8 + 5) / 6 // characters that hold bits of what is before
		bits := (before + len(canary)) * 8
		forms = append(forms, encoded[start:bits/6])
	}
	return forms
}
