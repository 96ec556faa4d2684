package apcore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Bounds beyond which the standard asks for a warning (§4.8), in characters.
const (
	maxDescription   = 200
	maxDocumentation = 5000
)

// warnOf says what of a registered module is allowed but not advisable.
func (r *Registry) warnOf(entry *registration) {
	d := &entry.descriptor
	if n := len([]rune(d.Description)); n > maxDescription {
		r.logger.Warn("apcore: a description is longer than 200 characters", "module_id", d.ID, "length", n)
	}
	if n := len([]rune(d.Documentation)); n > maxDocumentation {
		r.logger.Warn("apcore: a documentation is longer than 5000 characters", "module_id", d.ID, "length", n)
	}
	if isEphemeral(d.ID) && (!d.Annotations.RequiresApproval || !d.Annotations.Hidden) {
		r.logger.Warn("apcore: an ephemeral module should set requires_approval to true and discoverable to false", "module_id", d.ID)
	}
}

// warnDeprecated warns once of each version and text of a deprecation, also when
// the module went and came again (D-89).
func (r *Registry) warnDeprecated(entry *registration) {
	d := &entry.descriptor
	block, ok := d.Metadata["x-deprecation"]
	if !ok || block == nil || block == false {
		return
	}
	hash, err := ContentHash(block)
	if err != nil {
		return
	}
	if _, seen := r.deprecated.LoadOrStore([3]string{d.ID, d.Version, hash}, true); !seen {
		r.logger.Warn("apcore: a deprecated module is in use", "module_id", d.ID, "version", d.Version, "deprecation", copyObject(map[string]any{"x-deprecation": block})["x-deprecation"])
	}
}

// markdown is the text about a module without one of its own.
func (e *registration) markdown() string {
	d := &e.descriptor
	var text strings.Builder
	fmt.Fprintf(&text, "# %s\n\n%s\n", d.ID, strings.TrimSpace(d.Description))
	fmt.Fprintf(&text, "\n- version: %s\n", d.Version)
	if d.Name != "" {
		fmt.Fprintf(&text, "- name: %s\n", d.Name)
	}
	if len(d.Tags) > 0 {
		fmt.Fprintf(&text, "- tags: %s\n", strings.Join(d.Tags, ", "))
	}
	for _, mark := range d.Annotations.marks() {
		fmt.Fprintf(&text, "- %s\n", mark)
	}
	if d.SunsetDate != "" {
		fmt.Fprintf(&text, "- sunset date: %s\n", d.SunsetDate)
	}
	writeFields(&text, "Inputs", d.InputSchema)
	writeFields(&text, "Output", d.OutputSchema)
	if documentation := strings.TrimSpace(d.Documentation); documentation != "" {
		fmt.Fprintf(&text, "\n## Documentation\n\n%s\n", documentation)
	}
	return text.String()
}

// marks names the flags of annotations that a caller should know.
func (a Annotations) marks() (marks []string) {
	for _, flag := range []struct {
		set  bool
		name string
	}{
		{a.Readonly, "readonly"}, {a.Destructive, "destructive"}, {a.Idempotent, "idempotent"},
		{a.RequiresApproval, "requires approval"}, {a.Streaming, "streaming"},
	} {
		if flag.set {
			marks = append(marks, flag.name)
		}
	}
	return marks
}

func writeFields(text *strings.Builder, title string, schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	if len(properties) == 0 {
		return
	}
	required := stringsOf(schema["required"])
	fmt.Fprintf(text, "\n## %s\n\n", title)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, _ := properties[name].(map[string]any)
		fmt.Fprintf(text, "- `%s`", name)
		if kind, ok := property["type"].(string); ok {
			fmt.Fprintf(text, " (%s)", kind)
		}
		if slices.Contains(required, name) {
			text.WriteString(", required")
		}
		if about, ok := property["description"].(string); ok {
			text.WriteString(": " + about)
		}
		text.WriteString("\n")
	}
}
