package apcore

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// contextVersion is the newest wire form this package writes and knows.
const contextVersion = 1

// Serialize returns the wire form of §5.7: _context_version, trace_id,
// caller_id (null at the top), call_chain, identity (or null) and data always,
// redacted_inputs and redacted_output when set. Data keys that begin with "_"
// and everything of this process stay behind; data values that are no JSON are
// left out with a warning.
func (c *Context) Serialize() map[string]any {
	wire := map[string]any{
		"_context_version": contextVersion,
		"trace_id":         c.traceID,
		"caller_id":        nil,
		"call_chain":       anySlice(c.chain),
		"identity":         nil,
		"data":             c.publicData(),
	}
	if c.callerID != "" {
		wire["caller_id"] = c.callerID
	}
	if c.identity != nil {
		wire["identity"] = c.identity.Map()
	}
	if c.redactedInputs != nil {
		wire["redacted_inputs"] = c.RedactedInputs()
	}
	if c.redactedOutput != nil {
		wire["redacted_output"] = c.RedactedOutput()
	}
	return wire
}

func (c *Context) publicData() map[string]any {
	public := c.data.Public()
	for key, value := range public {
		clone, err := jsonvalue.Clone(value)
		if err != nil {
			slog.Warn("apcore: context data that is no JSON stays in this process", "key", key, "reason", err.Error())
			delete(public, key)
			continue
		}
		public[key] = clone
	}
	return public
}

// MarshalJSON writes the wire form, see [Context.Serialize].
func (c *Context) MarshalJSON() ([]byte, error) { return json.Marshal(c.Serialize()) }

// DeserializeContext rebuilds a context from its wire form (§5.7). It never
// fails: what has the wrong type is taken as absent, unknown keys are ignored,
// a version above 1 is read as far as it is understood, with a warning. The
// trace id is taken as it is. The result is bound to no executor and has no
// token, services or deadline.
//
// The map is what a client sent: verify it before trusting its identity.
func DeserializeContext(wire map[string]any) *Context {
	if version, ok := wire["_context_version"]; ok && !isKnownVersion(version) {
		slog.Warn("apcore: context of a newer version is read as far as it is understood", "version", version)
	}
	c := &Context{binding: &binding{}, chain: stringsOf(wire["call_chain"])}
	c.traceID, _ = wire["trace_id"].(string)
	c.callerID, _ = wire["caller_id"].(string)
	if identity, ok := wire["identity"].(map[string]any); ok {
		c.identity = IdentityFromMap(identity)
	}
	data, _ := wire["data"].(map[string]any)
	c.data = newData(data)
	inputs, _ := wire["redacted_inputs"].(map[string]any)
	output, _ := wire["redacted_output"].(map[string]any)
	c.redactedInputs, c.redactedOutput = captured(inputs), captured(output)
	return c
}

func isKnownVersion(version any) bool {
	var number float64
	if err := convert(version, &number); err != nil {
		return false
	}
	return number <= contextVersion
}

// UnmarshalJSON reads the wire form, see [DeserializeContext]. Numbers in data
// keep their digits as json.Number. It fails only on malformed JSON.
func (c *Context) UnmarshalJSON(data []byte) error {
	wire, err := decodeObject(data)
	if err != nil {
		return err
	}
	*c = *DeserializeContext(wire)
	return nil
}

func decodeObject(data []byte) (map[string]any, error) {
	object, err := jsonvalue.DecodeObject(data)
	if err != nil {
		return nil, NewError(CodeInvalidInput, "no JSON object: %w", err)
	}
	return object, nil
}

// convert reads a JSON-like value as another type through its JSON form.
func convert(value, target any) error {
	data, err := jsonvalue.Encode(value)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decoder.Decode(target)
}

func anySlice(texts []string) []any {
	list := make([]any, len(texts))
	for i, text := range slices.All(texts) {
		list[i] = text
	}
	return list
}
