package durable

import (
	"bytes"
	"unicode/utf8"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// MaxErrorBytes bounds what an error says on its way through an engine: its
// message, its details and its cause each. Engines keep failures in every view
// of a run and cut or refuse long ones.
const MaxErrorBytes = 16 << 10

// EncodedSize returns how many bytes a JSON text has once encoding/json has put
// it into another one: it writes <, >, &, U+2028 and U+2029 as six bytes each,
// so a text can grow sixfold after it was made.
func EncodedSize(text []byte) int {
	size := len(text)
	for _, escaped := range []string{"<", ">", "&"} {
		size += 5 * bytes.Count(text, []byte(escaped))
	}
	return size + 3*(bytes.Count(text, []byte("\u2028"))+bytes.Count(text, []byte("\u2029")))
}

// CheckSize fails with PAYLOAD_TOO_LARGE when size is over limit. path says which
// part it is, such as "inputs"; moduleID is empty for what belongs to a run.
func CheckSize(moduleID, path string, size, limit int) error {
	if size <= limit {
		return nil
	}
	subject := path
	if moduleID != "" {
		subject += " of module '" + moduleID + "'"
	}
	e := newError(CodePayloadTooLarge, "%s has %d bytes, %d are allowed", subject, size, limit).
		WithDetail("path", path).WithDetail("size", size).WithDetail("limit", limit).
		WithSuggestion("pass a reference to the data, or give client and worker an external storage and say so in the limits")
	if moduleID != "" {
		e = e.WithDetail("module_id", moduleID)
	}
	return e
}

// Bounded returns an error's wire form with every text within [MaxErrorBytes],
// and its details too: longer ones are left out but for what names the call, and
// details.omitted_bytes says how long they were. It changes the map it is given.
// Redaction comes before: what is cut here is clean already.
func Bounded(wire map[string]any) map[string]any {
	for _, key := range []string{"message", "cause", "suggestion", "ai_guidance"} {
		if text, ok := wire[key].(string); ok {
			wire[key] = Cut(text)
		}
	}
	details, ok := wire["details"].(map[string]any)
	if !ok {
		return wire
	}
	text, err := apcore.EncodeJSON(details)
	if err == nil && EncodedSize(text) <= MaxErrorBytes {
		return wire
	}
	kept := map[string]any{"omitted_bytes": len(text)}
	for _, key := range []string{"module_id", "call_id", "approval_id", "path", "size", "limit"} {
		if short, err := apcore.EncodeJSON(details[key]); err == nil && details[key] != nil && len(short) <= maxKeptDetail {
			kept[key] = details[key]
		}
	}
	wire["details"] = kept
	return wire
}

const maxKeptDetail = 1 << 10

// Cut shortens a text to [MaxErrorBytes] without splitting a character.
func Cut(text string) string {
	if len(text) <= MaxErrorBytes {
		return text
	}
	const ellipsis = "…"
	end := MaxErrorBytes - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// checkSizes keeps what goes back below what engines carry: output and context
// data travel in one value.
func (i *Invoker) checkSizes(moduleID string, output []byte, data map[string][]byte) error {
	size := EncodedSize(output)
	if err := CheckSize(moduleID, "output", size, i.opts.MaxOutputBytes); err != nil {
		return err
	}
	for key, text := range data {
		size += EncodedSize(text) + len(key)
	}
	return CheckSize(moduleID, "output and context data", size, i.opts.MaxOutputBytes+contextAllowance)
}

// contextAllowance is what may travel beside a module's inputs or output.
const contextAllowance = 256 << 10

func (i *Invoker) checkApproval(approval *Approval) error {
	text, err := apcore.EncodeJSON(approval)
	if err != nil {
		return err
	}
	return CheckSize(approval.Module.ID, "approval", EncodedSize(text), i.opts.MaxOutputBytes+contextAllowance)
}
