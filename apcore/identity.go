package apcore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Well-known identity types (§5.7). Any other text is a legal type too.
const (
	IdentityUser      = "user"
	IdentityService   = "service"
	IdentityAgent     = "agent"
	IdentityAPIKey    = "api_key"
	IdentitySystem    = "system"
	IdentityAI        = "ai"
	IdentityAnonymous = "anonymous"
)

// Identity says who acts (apcore §5.7). It is immutable: construction and
// access copy. On the wire it is {"id", "type", "roles", "attrs"}.
type Identity struct {
	id    string
	kind  string
	roles []string
	attrs map[string]any
}

// NewIdentity makes an identity. An empty kind means "user"; nil roles and
// attrs mean none. Attrs are JSON values.
func NewIdentity(id, kind string, roles []string, attrs map[string]any) *Identity {
	if kind == "" {
		kind = IdentityUser
	}
	return &Identity{id: id, kind: kind, roles: slices.Clone(roles), attrs: maps.Clone(attrs)}
}

// ID names the actor.
func (i *Identity) ID() string { return i.id }

// Type is the kind of actor, see the Identity constants.
func (i *Identity) Type() string { return i.kind }

// Roles returns a copy of the actor's roles, never nil.
func (i *Identity) Roles() []string { return append([]string{}, i.roles...) }

// HasRole reports whether the actor has the role.
func (i *Identity) HasRole(role string) bool { return slices.Contains(i.roles, role) }

// Attrs returns a copy of the actor's attributes, never nil.
func (i *Identity) Attrs() map[string]any {
	attrs := make(map[string]any, len(i.attrs))
	maps.Copy(attrs, i.attrs)
	return attrs
}

// Map returns the wire form.
func (i *Identity) Map() map[string]any {
	roles := make([]any, len(i.roles))
	for n, role := range i.roles {
		roles[n] = role
	}
	return map[string]any{"id": i.id, "type": i.kind, "roles": roles, "attrs": i.Attrs()}
}

// MarshalJSON writes the wire form.
func (i *Identity) MarshalJSON() ([]byte, error) { return json.Marshal(i.Map()) }

// UnmarshalJSON reads the wire form with the leniency of [IdentityFromMap].
func (i *Identity) UnmarshalJSON(data []byte) error {
	wire, err := decodeObject(data)
	if err != nil {
		return err
	}
	*i = *IdentityFromMap(wire)
	return nil
}

// IdentityFromMap reads the wire form: a missing type is "user", an id of
// another type becomes its text, roles that are no texts are dropped, missing
// attrs are empty (§5.7).
func IdentityFromMap(wire map[string]any) *Identity {
	id, ok := wire["id"].(string)
	if !ok && wire["id"] != nil {
		id = fmt.Sprint(wire["id"])
	}
	kind, _ := wire["type"].(string)
	attrs, _ := wire["attrs"].(map[string]any)
	return NewIdentity(id, kind, stringsOf(wire["roles"]), attrs)
}

// stringsOf keeps the texts of a JSON array and of a []string; all else is nil.
func stringsOf(value any) []string {
	if list, ok := value.([]string); ok {
		return slices.Clone(list)
	}
	list, ok := value.([]any)
	if !ok {
		return nil
	}
	texts := make([]string, 0, len(list))
	for _, item := range list {
		if text, ok := item.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}
