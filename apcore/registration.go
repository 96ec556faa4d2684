package apcore

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
	"github.com/apcore-temporal/apcore-temporal/apcore/internal/schema"
)

const defaultVersion = "1.0.0"

// registration is a module with everything that can be worked out once: its
// merged description and its compiled schemas. It is immutable.
type registration struct {
	module     Module
	descriptor Descriptor
	version    *semver.Version
	input      *schema.Validator
	output     *schema.Validator
	usage      *usage
}

func newRegistration(id string, module Module, opts RegisterOptions) (*registration, error) {
	if isNil(module) {
		return nil, NewError(CodeInvalidInput, "module %q is nil", id).WithDetail("module_id", id)
	}
	description, err := describe(id, module, opts)
	if err != nil {
		return nil, err
	}
	entry := &registration{module: module, descriptor: *description, usage: newUsage()}
	if entry.version, err = semver.StrictNewVersion(description.Version); err != nil {
		return nil, NewError(CodeInvalidInput, "module %q has the version %q: give a semantic version, for example 1.2.0", id, description.Version).
			WithDetail("module_id", id)
	}
	if entry.input, err = compile(id, "input schema", description.InputSchema); err != nil {
		return nil, err
	}
	if entry.output, err = compile(id, "output schema", description.OutputSchema); err != nil {
		return nil, err
	}
	return entry, nil
}

// describe reads the optional members of a module and merges the declared layer
// over them (§4.13).
func describe(id string, module Module, opts RegisterOptions) (*Descriptor, error) {
	d := &Descriptor{Description: module.Description()}
	d.ID = id
	if strings.TrimSpace(d.Description) == "" {
		return nil, NewError(CodeInvalidInput, "module %q has no description", id).WithDetail("module_id", id)
	}
	var err error
	if d.Annotations, err = annotationsOf(id, module, opts); err != nil {
		return nil, err
	}
	if err := streamingMismatch(id, module, d.Annotations); err != nil {
		return nil, err
	}
	if d.InputSchema, err = schemaOf(id, "input schema", module.InputSchema()); err != nil {
		return nil, err
	}
	if d.OutputSchema, err = schemaOf(id, "output schema", module.OutputSchema()); err != nil {
		return nil, err
	}
	if d.SchemaHash, err = jsonvalue.Hash(map[string]any{"input": d.InputSchema, "output": d.OutputSchema}); err != nil {
		return nil, NewError(CodeSchemaParse, "schemas of module %q: %w", id, err)
	}
	readOptional(d, module)
	if opts.Version != "" {
		d.Version = opts.Version
	}
	if d.Version == "" {
		d.Version = defaultVersion
	}
	for key, value := range opts.Metadata {
		d.Metadata[key] = value
	}
	if err := readDeclared(d, opts.Metadata); err != nil {
		return nil, err
	}
	d.Metadata = copyObject(d.Metadata)
	if d.Timeout < 0 && d.Timeout != NoTimeout {
		return nil, NewError(CodeInvalidInput, "module %q has a timeout of %v: give zero for the default, NoTimeout for none or a positive one", id, d.Timeout).
			WithDetail("module_id", id)
	}
	return d, nil
}

// readDeclared takes the parts of the declared layer that stand in metadata.
// Dependencies may stand in the module's own metadata too.
func readDeclared(d *Descriptor, metadata map[string]any) error {
	if declared, ok := d.Metadata["dependencies"]; ok {
		var more []Dependency
		if err := convert(declared, &more); err != nil {
			return NewError(CodeInvalidInput, "metadata.dependencies of module %q is no list of dependencies", d.ID).WithDetail("module_id", d.ID)
		}
		d.Dependencies = append(d.Dependencies, more...)
	}
	if declared, ok := metadata["examples"]; ok {
		var examples []Example
		if err := convert(declared, &examples); err != nil {
			return NewError(CodeInvalidInput, "metadata.examples of module %q is no list of examples", d.ID).WithDetail("module_id", d.ID)
		}
		d.Examples = examples
	}
	if deprecation, ok := d.Metadata["x-deprecation"].(map[string]any); ok {
		d.SunsetDate, _ = deprecation["sunset_date"].(string)
	}
	return nil
}

func readOptional(d *Descriptor, module Module) {
	d.Metadata = map[string]any{}
	if m, ok := module.(Described); ok {
		maps.Copy(d.Metadata, m.Metadata())
	}
	if m, ok := module.(Named); ok {
		d.Name = m.Name()
	}
	if m, ok := module.(Documented); ok {
		d.Documentation = m.Documentation()
	}
	if m, ok := module.(Tagged); ok {
		d.Tags = slices.Clone(m.Tags())
	}
	if m, ok := module.(Versioned); ok {
		d.Version = m.Version()
	}
	if m, ok := module.(Exemplified); ok {
		d.Examples = copyExamples(m.Examples())
	}
	if m, ok := module.(Dependent); ok {
		d.Dependencies = slices.Clone(m.Dependencies())
	}
	if m, ok := module.(Timed); ok {
		d.Timeout = m.Timeout()
	}
}

// annotationsOf reads both forms of annotations and merges the declared ones over
// them field by field, which may only ever add requires_approval and destructive
// (D-96).
func annotationsOf(id string, module Module, opts RegisterOptions) (Annotations, error) {
	var own Annotations
	var err error
	switch m := module.(type) {
	case Annotated:
		own = m.Annotations().Clone()
	case AnnotatedMap:
		own, err = AnnotationsFromMap(m.Annotations())
	}
	if declared, given := opts.Metadata["annotations"]; given && err == nil {
		own, err = own.under(declared)
	}
	if err != nil {
		return own, NewError(CodeInvalidInput, "annotations of module %q: %w", id, err).WithDetail("module_id", id)
	}
	if opts.Annotations != nil {
		own.RequiresApproval = own.RequiresApproval || opts.Annotations.RequiresApproval
		own.Destructive = own.Destructive || opts.Annotations.Destructive
	}
	return own, nil
}

// under puts declared annotations, in their wire form, over a module's own.
func (a Annotations) under(declared any) (Annotations, error) {
	given, ok := declared.(map[string]any)
	if !ok {
		return a, NewError(CodeInvalidInput, "metadata.annotations is a %T: want an object", declared)
	}
	above, err := AnnotationsFromMap(given)
	if err != nil {
		return a, err
	}
	merged := a.Map()
	for key := range annotationReaders {
		if value, there := given[key]; there && value != nil {
			merged[key] = value
		}
	}
	extra := map[string]any{}
	maps.Copy(extra, a.Extra)
	maps.Copy(extra, above.Extra)
	merged["extra"] = extra
	result, err := AnnotationsFromMap(merged)
	result.RequiresApproval = result.RequiresApproval || a.RequiresApproval
	result.Destructive = result.Destructive || a.Destructive
	return result, err
}

func schemaOf(id, what string, given map[string]any) (map[string]any, error) {
	clone, err := jsonvalue.CloneObject(given)
	if err != nil {
		return nil, NewError(CodeSchemaParse, "%s of module %q is no JSON: %w", what, id, err).WithDetail("module_id", id)
	}
	return clone, nil
}

func compile(id, what string, given map[string]any) (*schema.Validator, error) {
	validator, err := schema.Compile(given)
	if err != nil {
		code := CodeSchemaParse
		if invalid := (*schema.CompileError)(nil); errors.As(err, &invalid) {
			code = Code(invalid.Kind)
		}
		return nil, NewError(code, "%s of module %q cannot be enforced: %w", what, id, err).WithDetail("module_id", id)
	}
	return validator, nil
}

// describe returns a copy that callers may change.
func (e *registration) describe() *Descriptor {
	d := e.descriptor
	d.Annotations = d.Annotations.Clone()
	d.Tags = slices.Clone(d.Tags)
	d.Examples = copyExamples(d.Examples)
	d.Metadata = copyObject(d.Metadata)
	d.InputSchema, _ = jsonvalue.CloneObject(d.InputSchema)
	d.OutputSchema, _ = jsonvalue.CloneObject(d.OutputSchema)
	return &d
}

func copyExamples(examples []Example) []Example {
	copied := slices.Clone(examples)
	for i := range copied {
		copied[i].Inputs, copied[i].Output = copyObject(copied[i].Inputs), copyObject(copied[i].Output)
	}
	return copied
}

// copyObject copies deeply; what is no JSON is shared.
func copyObject(object map[string]any) map[string]any {
	if object == nil {
		return nil
	}
	copied, err := jsonvalue.CloneObject(object)
	if err != nil {
		return maps.Clone(object)
	}
	return copied
}

func (e *registration) matches(opts ListOptions) bool {
	d := &e.descriptor
	if !opts.shows(d.Annotations.Hidden) || !strings.HasPrefix(d.ID, opts.Prefix) {
		return false
	}
	for _, tag := range opts.Tags {
		if !slices.Contains(d.Tags, tag) && !slices.Contains(stringsOf(d.Metadata["tags"]), tag) {
			return false
		}
	}
	return true
}
