package apcore

import (
	"log/slog"
	"maps"
	"slices"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// Annotations say how a module behaves (apcore §4.4). The zero value holds the
// standard's defaults: because open_world and discoverable default to true, the
// fields are their negations. Treat a value as immutable once a module returned
// it; [Annotations.Clone] makes an independent one.
//
// The core acts on RequiresApproval, Destructive and Hidden only; it neither
// retries nor caches.
type Annotations struct {
	// Readonly: nothing observable changes.
	Readonly bool
	// Destructive: what changes cannot be undone.
	Destructive bool
	// Idempotent: repeating a call with equal inputs is safe.
	Idempotent bool
	// RequiresApproval: the approval gate applies.
	RequiresApproval bool
	// ClosedWorld: no system outside the host is touched; the negation of
	// open_world.
	ClosedWorld bool
	// Streaming: the module can deliver its output in chunks.
	Streaming bool
	// Cacheable: the output may be cached.
	Cacheable bool
	// CacheTTL is in seconds. It is carried, not acted upon; a negative one counts
	// as zero.
	CacheTTL int
	// CacheKeyFields are the inputs a cache key consists of; nil means all.
	CacheKeyFields []string
	// Paginated: the output is one page of many.
	Paginated bool
	// PaginationStyle is "offset", "page" or a word of one's own; empty means
	// "cursor".
	PaginationStyle string
	// Hidden: the module is not listed but can be called; the negation of
	// discoverable.
	Hidden bool
	// Extra are extension values under keys such as "mcp.category"; a dot is an
	// ordinary character. Values are JSON values; nil means none. Keys that begin
	// with "core." belong to the framework.
	Extra map[string]any
}

const defaultPaginationStyle = "cursor"

// OpenWorld reports whether the module touches systems outside the host.
func (a Annotations) OpenWorld() bool { return !a.ClosedWorld }

// Discoverable reports whether the module is listed.
func (a Annotations) Discoverable() bool { return !a.Hidden }

// Clone returns an independent copy. Values in Extra that are no JSON are
// shared.
func (a Annotations) Clone() Annotations {
	a.CacheKeyFields = slices.Clone(a.CacheKeyFields)
	a.Extra = maps.Clone(a.Extra)
	for key, value := range a.Extra {
		if clone, err := jsonvalue.Clone(value); err == nil {
			a.Extra[key] = clone
		}
	}
	return a
}

// wireAnnotations is the wire form: every key always, in the standard's order.
type wireAnnotations struct {
	Readonly         bool           `json:"readonly"`
	Destructive      bool           `json:"destructive"`
	Idempotent       bool           `json:"idempotent"`
	RequiresApproval bool           `json:"requires_approval"`
	OpenWorld        bool           `json:"open_world"`
	Streaming        bool           `json:"streaming"`
	Cacheable        bool           `json:"cacheable"`
	CacheTTL         int            `json:"cache_ttl"`
	CacheKeyFields   []string       `json:"cache_key_fields"`
	Paginated        bool           `json:"paginated"`
	PaginationStyle  string         `json:"pagination_style"`
	Discoverable     bool           `json:"discoverable"`
	Extra            map[string]any `json:"extra"`
}

// wire returns the wire form; Extra is checked and copied.
func (a Annotations) wire() (*wireAnnotations, error) {
	extra, err := jsonvalue.CloneObject(a.Extra)
	if err != nil {
		return nil, NewError(CodeInvalidInput, "annotations: extra is no JSON: %w", err)
	}
	dropCanonical(extra)
	style := a.PaginationStyle
	if style == "" {
		style = defaultPaginationStyle
	}
	return &wireAnnotations{
		Readonly: a.Readonly, Destructive: a.Destructive, Idempotent: a.Idempotent,
		RequiresApproval: a.RequiresApproval, OpenWorld: a.OpenWorld(), Streaming: a.Streaming,
		Cacheable: a.Cacheable, CacheTTL: clampTTL(a.CacheTTL), CacheKeyFields: a.CacheKeyFields,
		Paginated: a.Paginated, PaginationStyle: style, Discoverable: a.Discoverable(), Extra: extra,
	}, nil
}

// Map returns the wire form of §4.4 with all 13 keys; cache_key_fields is nil
// when unset, extra an empty object. Extra keys that carry one of the other 12
// names are left out with a warning to [slog.Default], as is an Extra that is no
// JSON.
func (a Annotations) Map() map[string]any {
	wire, err := a.wire()
	if err != nil {
		slog.Warn("apcore: extra annotations that are no JSON are left out", "reason", err.Error())
		a.Extra = nil
		wire, _ = a.wire() // cannot fail without Extra
	}
	return map[string]any{
		"readonly": wire.Readonly, "destructive": wire.Destructive, "idempotent": wire.Idempotent,
		"requires_approval": wire.RequiresApproval, "open_world": wire.OpenWorld, "streaming": wire.Streaming,
		"cacheable": wire.Cacheable, "cache_ttl": wire.CacheTTL, "cache_key_fields": keyFields(wire.CacheKeyFields),
		"paginated": wire.Paginated, "pagination_style": wire.PaginationStyle, "discoverable": wire.Discoverable,
		"extra": wire.Extra,
	}
}

func keyFields(fields []string) any {
	if fields == nil {
		return nil
	}
	return anySlice(fields)
}

// MarshalJSON writes the wire form with all 13 keys in the standard's order. It
// fails with GENERAL_INVALID_INPUT when Extra is no JSON.
func (a Annotations) MarshalJSON() ([]byte, error) {
	wire, err := a.wire()
	if err != nil {
		return nil, err
	}
	return jsonvalue.Encode(wire)
}

// UnmarshalJSON reads the wire form, see [AnnotationsFromMap]; numbers in Extra
// keep their digits as json.Number. JSON null changes nothing.
func (a *Annotations) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	object, err := decodeObject(data)
	if err != nil {
		return err
	}
	read, err := AnnotationsFromMap(object)
	if err != nil {
		return err
	}
	*a = read
	return nil
}
