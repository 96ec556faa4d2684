package apcore

import (
	"context"
	"time"
)

// Module is a function that agents and code can call under governance (apcore
// §4). A value that has these four methods is a module; everything else about
// it is optional and found through the small interfaces of this file.
//
// One value serves all calls of its id: every method must be safe for
// concurrent use. The schemas, the description and the optional members are
// read once, at registration.
type Module interface {
	// Description is plain text, 200 characters at most.
	Description() string
	// InputSchema is a JSON Schema 2020-12 object; an empty one accepts any object.
	InputSchema() map[string]any
	// OutputSchema is a JSON Schema 2020-12 object; an empty one accepts any object.
	OutputSchema() map[string]any
	// Execute does the work. ctx ends when the call is cancelled or its timer
	// runs out; a late result is discarded. inputs are the module's own copy and
	// satisfy the schema. The result must be non-nil and satisfy the output
	// schema. A foreign error becomes MODULE_EXECUTE_ERROR.
	Execute(ctx context.Context, inputs map[string]any, c *Context) (map[string]any, error)
}

// Named gives a module a name for people.
type Named interface{ Name() string }

// Documented gives a module Markdown documentation, 5000 characters at most.
type Documented interface{ Documentation() string }

// Tagged gives a module tags to list it by.
type Tagged interface{ Tags() []string }

// Versioned gives a module a semantic version; the default is 1.0.0.
type Versioned interface{ Version() string }

// Annotated declares how a module behaves; see [Annotations].
type Annotated interface{ Annotations() Annotations }

// AnnotatedMap is [Annotated] with the wire form, for modules built from JSON.
type AnnotatedMap interface{ Annotations() map[string]any }

// Exemplified gives a module examples.
type Exemplified interface{ Examples() []Example }

// Described gives a module free-form metadata.
type Described interface{ Metadata() map[string]any }

// Timed gives a module its own timer (resources.timeout). Zero means none is
// set and the executor's default applies, [NoTimeout] switches the timer off.
type Timed interface{ Timeout() time.Duration }

// Loader is told before a module becomes visible. An error keeps it out.
type Loader interface{ OnLoad() error }

// Unloader is told when a module leaves. An error is logged.
type Unloader interface{ OnUnload() error }

// NoTimeout switches a timer off where zero means the default.
const NoTimeout time.Duration = -1

// Example shows one call of a module (§4.8).
type Example struct {
	Title       string         `json:"title"`
	Inputs      map[string]any `json:"inputs"`
	Output      map[string]any `json:"output,omitempty"`
	Description string         `json:"description,omitempty"`
}

// ModuleRef says which build of a module ran.
type ModuleRef struct {
	// ID is the module id.
	ID string `json:"id"`
	// Version is its semantic version.
	Version string `json:"version"`
	// SchemaHash is the SHA-256 (hex) of the canonical input and output schemas.
	SchemaHash string `json:"schema_hash"`
}

// Descriptor is what a registry knows of a module (§10). It is a copy; changing
// it changes nothing.
type Descriptor struct {
	ModuleRef
	Name          string
	Description   string
	Documentation string
	InputSchema   map[string]any
	OutputSchema  map[string]any
	// Annotations are effective: requires_approval and destructive hold when the
	// module or its registration says so (§4.13).
	Annotations Annotations
	Tags        []string
	Examples    []Example
	Metadata    map[string]any
	// SunsetDate is the ISO date in metadata's x-deprecation, empty if there is none.
	SunsetDate string
	// Dependencies are the module's own and those under metadata.dependencies.
	Dependencies []Dependency
	// Timeout is the module's own timer: zero for none set, NoTimeout for off.
	Timeout time.Duration
}
