package apcore

import "strings"

// Profile is a form in which a module is shown to agents (apcore §4, D-140).
type Profile string

// The four profiles.
const (
	// ProfileGeneric is {module_id, description, input_schema, output_schema}.
	ProfileGeneric Profile = "generic"
	// ProfileMCP is a tool of the Model Context Protocol with its hints.
	ProfileMCP Profile = "mcp"
	// ProfileOpenAI is a function tool with a strict schema.
	ProfileOpenAI Profile = "openai"
	// ProfileAnthropic is a tool without any x- keyword.
	ProfileAnthropic Profile = "anthropic"
)

// ExportSchema returns {module_id, description, input_schema, output_schema}, both
// schemas in their strict form when asked; nil for an unknown id. It fails with
// SCHEMA_PARSE_ERROR for a schema without a strict form.
func (r *Registry) ExportSchema(id string, strict bool) (map[string]any, error) {
	d := r.Definition(id)
	if d == nil {
		return nil, nil //nolint:nilnil // the standard's answer for an unknown id
	}
	exported := map[string]any{"module_id": d.ID, "description": d.Description, "input_schema": d.InputSchema, "output_schema": d.OutputSchema}
	if !strict {
		return exported, nil
	}
	for _, key := range []string{"input_schema", "output_schema"} {
		schema, err := StrictSchema(exported[key].(map[string]any)) //nolint:forcetypeassert // set above
		if err != nil {
			return nil, err
		}
		exported[key] = schema
	}
	return exported, nil
}

// Export describes a module for an agent. It fails with GENERAL_INVALID_INPUT for
// an unknown profile, and with SCHEMA_PARSE_ERROR as [StrictSchema] does.
func (d *Descriptor) Export(profile Profile) (map[string]any, error) {
	input, err := schemaOf(d.ID, "input schema", d.InputSchema)
	if err != nil {
		return nil, err
	}
	switch profile {
	case ProfileGeneric:
		return map[string]any{"module_id": d.ID, "description": d.Description, "input_schema": input, "output_schema": d.OutputSchema}, nil
	case ProfileMCP:
		return d.mcp(input), nil
	case ProfileOpenAI:
		strict, err := StrictSchema(forModels(input))
		if err != nil {
			return nil, err
		}
		return map[string]any{"type": "function", "function": map[string]any{
			"name": toolName(d.ID), "description": d.modelDescription(), "parameters": strict, "strict": true,
		}}, nil
	case ProfileAnthropic:
		return d.anthropic(input), nil
	default:
		return nil, NewError(CodeInvalidInput, "there is no profile %q: there are generic, mcp, openai and anthropic", profile)
	}
}

// toolName is a module id for those who allow no dots.
func toolName(id string) string { return strings.ReplaceAll(id, ".", "_") }

func (d *Descriptor) modelDescription() string {
	if hint, ok := d.Metadata["x-llm-description"].(string); ok {
		return hint
	}
	return d.Description
}

func (d *Descriptor) mcp(input map[string]any) map[string]any {
	a := d.Annotations.Map()
	meta := map[string]any{
		"cacheable": a["cacheable"], "cacheTtl": a["cache_ttl"], "cacheKeyFields": a["cache_key_fields"],
		"paginated": a["paginated"], "paginationStyle": a["pagination_style"],
	}
	if d.Annotations.RequiresApproval {
		meta["requiresApproval"] = true
	}
	if d.Annotations.Streaming {
		meta["streaming"] = true
	}
	return map[string]any{
		"name": d.ID, "description": d.Description, "inputSchema": input, "_meta": meta,
		"annotations": map[string]any{
			"readOnlyHint": a["readonly"], "destructiveHint": a["destructive"], "idempotentHint": a["idempotent"], "openWorldHint": a["open_world"],
		},
	}
}

func (d *Descriptor) anthropic(input map[string]any) map[string]any {
	tool := map[string]any{"name": toolName(d.ID), "description": d.modelDescription(), "input_schema": withoutExtensions(forModels(input))}
	if len(d.Examples) > 0 {
		examples := make([]any, len(d.Examples))
		for i, example := range d.Examples {
			examples[i] = example.Inputs
		}
		tool["input_examples"] = examples
	}
	return tool
}
