package apcore

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

// TraceParent is a W3C trace context (apcore §10.5). The zero value of Version
// means "00", that of Flags "01".
type TraceParent struct {
	// Version is two hex digits.
	Version string
	// TraceID is 32 lower-case hex digits.
	TraceID string
	// ParentID is 16 lower-case hex digits.
	ParentID string
	// Flags is two hex digits.
	Flags string
	// State is the tracestate: ordered key and value pairs, 32 at most.
	State [][2]string
}

// String is the traceparent header, empty for nil.
func (p *TraceParent) String() string {
	if p == nil {
		return ""
	}
	return cmp.Or(p.Version, "00") + "-" + p.TraceID + "-" + p.ParentID + "-" + cmp.Or(p.Flags, "01")
}

var (
	traceparentPattern = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$`)
	traceIDPattern     = regexp.MustCompile(`^[0-9a-f]{32}$`)
	parentIDPattern    = regexp.MustCompile(`^[0-9a-f]{16}$`)
)

const maxTraceStateMembers = 32

// ExtractTraceParent reads the headers "traceparent" and "tracestate", whose
// names are matched without regard to case. It returns nil for an absent or
// malformed traceparent and drops malformed tracestate members (§10.5).
func ExtractTraceParent(headers map[string]string) *TraceParent {
	match := traceparentPattern.FindStringSubmatch(strings.ToLower(strings.TrimSpace(header(headers, "traceparent"))))
	if match == nil || match[1] == "ff" || isRepeated(match[2], '0') || isRepeated(match[3], '0') {
		return nil
	}
	return &TraceParent{
		Version: match[1], TraceID: match[2], ParentID: match[3], Flags: match[4],
		State: parseTraceState(header(headers, "tracestate")),
	}
}

// header looks a header up by name; names that differ only in case are taken
// in alphabetical order, so that the answer does not depend on map order.
func header(headers map[string]string, name string) string {
	for _, key := range slices.Sorted(maps.Keys(headers)) {
		if strings.EqualFold(key, name) {
			return headers[key]
		}
	}
	return ""
}

func parseTraceState(text string) [][2]string {
	var state [][2]string
	for member := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(member), "=")
		if !ok || key == "" || value == "" {
			continue
		}
		if state = append(state, [2]string{key, value}); len(state) == maxTraceStateMembers {
			break
		}
	}
	return state
}

// InjectTraceParent returns the headers "traceparent" and, if there is any
// state, "tracestate" for an outgoing request of this context. An empty
// parentID means the span of the running call, or else a random one;
// anything but 16 lower-case hex digits fails with INVALID_PARENT_ID.
func InjectTraceParent(c *Context, parentID string) (map[string]string, error) {
	switch {
	case parentID == "" && c.span.id != "" && !c.span.remote:
		parentID = c.span.id
	case parentID == "":
		parentID = randomHex(8)
	case !parentIDPattern.MatchString(parentID):
		return nil, NewError(CodeInvalidParentID, "parent id has %d characters or others than 0-9a-f: give 16 lower-case hex digits", len(parentID))
	}
	flags, _ := traceFlags.Get(c)
	if flags == "" {
		flags = "01"
	}
	headers := map[string]string{"traceparent": "00-" + c.TraceID() + "-" + parentID + "-" + flags}
	if state, _ := traceState.Get(c); len(state) > 0 {
		members := make([]string, len(state))
		for i, member := range state {
			members[i] = member[0] + "=" + member[1]
		}
		headers["tracestate"] = strings.Join(members, ",")
	}
	return headers, nil
}

// ContinueTrace puts what is called with the context below the span of parent, if
// that belongs to the context's own trace, and reports whether it does. It is for
// hosts that rebuild a context under a span of their own, before the first call;
// nil changes nothing.
func (c *Context) ContinueTrace(parent *TraceParent) bool {
	if parent == nil || parent.TraceID != c.traceID || !parentIDPattern.MatchString(parent.ParentID) {
		return false
	}
	c.span = spanRef{id: parent.ParentID, remote: true}
	if parent.Flags != "" {
		traceFlags.Set(c, parent.Flags)
	}
	return true
}

// validTraceID is the acceptance rule of §10.5: nothing is repaired.
func validTraceID(id string) bool {
	return traceIDPattern.MatchString(id) && !isRepeated(id, '0') && !isRepeated(id, 'f')
}

func isRepeated(text string, char byte) bool {
	return strings.Count(text, string(char)) == len(text)
}

// randomHex makes an id of 8 or 16 random bytes. Ids of traces have to be
// different, not secret, and every call without a context needs one.
func randomHex(bytes int) string {
	var raw [16]byte
	var text [32]byte
	binary.NativeEndian.PutUint64(raw[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(raw[8:], rand.Uint64())
	return string(text[:hex.Encode(text[:], raw[:bytes])])
}
