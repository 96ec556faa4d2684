// Package redact replaces secrets in JSON values: by what a schema marks, by the
// names of fields, and by the form of texts.
package redact

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
)

// Mask stands where a secret was.
const Mask = "***REDACTED***"

// Config says what is secret.
type Config struct {
	// SensitiveKeys are names of fields: with * or ? an anchored glob, otherwise a
	// part of the name. nil means the defaults, empty none.
	SensitiveKeys []string
	// Patterns are regular expressions over text values.
	Patterns []string
	// Replacement stands where a secret was; empty means Mask.
	Replacement string
}

var defaultKeys = []string{
	"_secret_*", "password", "passwd", "secret", "token", "api_key", "apikey", "apiKey", "access_key",
	"private_key", "authorization", "auth", "credential", "cookie", "session", "bearer",
}

// DefaultSensitiveKeys returns a copy of the standard's list.
func DefaultSensitiveKeys() []string { return slices.Clone(defaultKeys) }

// protected fields are needed to follow a call and are never replaced.
var protected = map[string]bool{"trace_id": true, "span_id": true, "caller_id": true, "module_id": true, "target_id": true}

// Redactor applies a configuration; it may be used concurrently.
type Redactor struct {
	globs       []*regexp.Regexp
	parts       []string
	patterns    []*regexp.Regexp
	replacement string
	names       names
}

// New compiles a configuration; a pattern that does not compile is an error.
func New(config Config) (*Redactor, error) {
	r := &Redactor{replacement: config.Replacement}
	if r.replacement == "" {
		r.replacement = Mask
	}
	keys := config.SensitiveKeys
	if keys == nil {
		keys = defaultKeys
	}
	for _, key := range keys {
		switch {
		case key == "":
		case strings.ContainsAny(key, "*?"):
			r.globs = append(r.globs, globPattern(key))
		default:
			r.parts = append(r.parts, normalize(key))
		}
	}
	for _, pattern := range config.Patterns {
		compiled, err := regexp.Compile("(?i)" + pattern)
		if err != nil {
			return nil, fmt.Errorf("pattern %q does not compile: %w", pattern, err)
		}
		r.patterns = append(r.patterns, compiled)
	}
	return r, nil
}

// globPattern is a glob of * and ? as a regular expression, which Go matches in
// linear time.
func globPattern(glob string) *regexp.Regexp {
	var pattern strings.Builder
	pattern.WriteString("(?is)^")
	for _, char := range glob {
		switch char {
		case '*':
			pattern.WriteString(".*")
		case '?':
			pattern.WriteString(".")
		default:
			pattern.WriteString(regexp.QuoteMeta(string(char)))
		}
	}
	return regexp.MustCompile(pattern.String() + "$")
}

// normalize makes AccessKey, access-key and "access key" the same.
func normalize(name string) string {
	var out strings.Builder
	runes := []rune(name)
	for i, char := range runes {
		switch {
		case char == '-' || char == ' ':
			out.WriteByte('_')
		case unicode.IsUpper(char):
			if i > 0 && (unicode.IsLower(runes[i-1]) || unicode.IsDigit(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]) && unicode.IsUpper(runes[i-1])) {
				out.WriteByte('_')
			}
			out.WriteRune(unicode.ToLower(char))
		default:
			out.WriteRune(char)
		}
	}
	return out.String()
}

// names remembers what was decided about field names. It is bounded, because
// names may come from anywhere.
type names struct {
	known sync.Map // string -> bool
	count atomic.Int64
}

const (
	maxNames      = 4096
	maxNameLength = 64
)

// sensitive decides by name.
func (r *Redactor) sensitive(name string) bool {
	if known, ok := r.names.known.Load(name); ok {
		return known.(bool) //nolint:forcetypeassert // only this function stores
	}
	answer := r.matches(name)
	if len(name) <= maxNameLength && r.names.count.Load() < maxNames {
		r.names.count.Add(1)
		r.names.known.Store(strings.Clone(name), answer)
	}
	return answer
}

// hides decides by the form of a text.
func (r *Redactor) hides(text string) bool {
	for _, pattern := range r.patterns {
		if pattern.MatchString(text) {
			return true
		}
	}
	return false
}

func (r *Redactor) matches(name string) bool {
	if protected[name] {
		return false
	}
	for _, glob := range r.globs {
		if glob.MatchString(name) {
			return true
		}
	}
	plain := normalize(name)
	return slices.ContainsFunc(r.parts, func(part string) bool { return strings.Contains(plain, part) })
}

// Object returns a deep copy of data without secrets, nil for nil. A nil schema
// marks nothing. Null stays null. Go values outside the JSON data model become
// what they are in JSON; what has no JSON form is replaced.
func (r *Redactor) Object(data, schema map[string]any) map[string]any {
	if data == nil {
		return nil
	}
	w := &walk{redactor: r, schemas: &resolver{root: schema}}
	return w.object(data, w.schemas.all([]node{schema}))
}
