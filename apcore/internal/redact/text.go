package redact

// Sensitive decides by the name of a field alone.
func (r *Redactor) Sensitive(name string) bool { return r.sensitive(name) }

// Protected reports whether a field is needed to follow a call, so that its own
// value is never replaced.
func Protected(name string) bool { return protected[name] }

// Replacement stands where a secret was.
func (r *Redactor) Replacement() string { return r.replacement }

// Text replaces, in a text that is no field's value, what the patterns match and
// leaves the rest. A pattern that matches without a character replaces nothing.
func (r *Redactor) Text(text string) string {
	for _, pattern := range r.patterns {
		text = pattern.ReplaceAllStringFunc(text, func(match string) string {
			if match == "" {
				return ""
			}
			return r.replacement
		})
	}
	return text
}
