package apcore

import (
	"github.com/apcore-temporal/apcore-temporal/apcore/internal/redact"
	"github.com/apcore-temporal/apcore-temporal/apcore/internal/schema"
)

// schemaError makes the error of §7.2: details.errors lists every failure as
// {path, keyword, message}; a failed union has its own code. Messages name
// fields and keywords, never values.
func schemaError(what string, items []schema.Item) *Error {
	code := CodeSchemaValidation
	if union := schema.UnionCode(items); union != "" {
		code = Code(union)
	}
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = map[string]any{"path": item.Path, "keyword": item.Keyword, "message": item.Message}
	}
	first := items[0]
	where := first.Path
	if where == "" {
		where = "the root"
	}
	return NewError(code, "%s do not satisfy the schema: %s at %s (%d in all)", what, first.Message, where, len(items)).
		WithDetail("errors", list)
}

// RedactionConfig says which values are secret (apcore §10.6). The zero value
// uses the standard's default keys.
type RedactionConfig struct {
	// SensitiveKeys replaces the default list of key patterns; nil keeps it, an
	// empty list switches matching by key off.
	SensitiveKeys []string
	// Patterns are regular expressions over text values, matched anywhere and
	// without regard to case.
	Patterns []string
	// Replacement stands where a secret was; empty means ***REDACTED***.
	Replacement string
}

// Redactor replaces secrets in JSON objects; it may be used concurrently.
type Redactor struct{ engine *redact.Redactor }

// NewRedactor compiles a configuration. A pattern that does not compile fails
// with CONFIG_INVALID.
func NewRedactor(config RedactionConfig) (*Redactor, error) {
	engine, err := redact.New(redact.Config{
		SensitiveKeys: config.SensitiveKeys, Patterns: config.Patterns, Replacement: config.Replacement,
	})
	if err != nil {
		return nil, NewError(CodeConfigInvalid, "redaction: %w", err)
	}
	return &Redactor{engine}, nil
}

// Redact returns a deep copy of data in which every value is replaced that the
// schema marks x-sensitive, whose key is sensitive, or whose text matches a
// pattern. A nil schema marks nothing.
func (r *Redactor) Redact(data, schema map[string]any) map[string]any {
	return r.engine.Object(data, schema)
}

// DefaultSensitiveKeys returns the standard's list of sensitive keys.
func DefaultSensitiveKeys() []string { return redact.DefaultSensitiveKeys() }
