package apcore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Priority is a text type that knows its values.
type Priority string

// Enum lists the values for the schema.
func (Priority) Enum() []string { return []string{"low", "high"} }

// Ticket shows what a schema takes from Go: names, nested structs, enums, times,
// optional fields, constraints, descriptions and secrets.
type Ticket struct {
	Title    string     `json:"title" jsonschema:"minLength=3,description=one line"`
	Priority Priority   `json:"priority"`
	Due      *time.Time `json:"due,omitempty"`
	Contact  struct {
		Name  string `json:"name"`
		Phone string `json:"phone,omitempty" apcore:"sensitive"`
	} `json:"contact"`
}

// A typed module: its schemas come from its types, and are enforced.
func ExampleRegister() {
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	err := apcore.Register(registry, "desk.open", func(_ context.Context, in Ticket) (string, error) {
		return "opened: " + in.Title, nil
	}, apcore.Spec{Description: "Opens a ticket"})
	if err != nil {
		fmt.Println(err)
		return
	}
	properties := registry.Definition("desk.open").InputSchema["properties"].(map[string]any)
	for _, name := range []string{"title", "priority", "due", "contact"} {
		text, _ := json.Marshal(properties[name])
		fmt.Println(name, string(text))
	}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ticket := map[string]any{"title": "No light", "priority": "high", "contact": map[string]any{"name": "Ada", "phone": "555"}}
	output, err := executor.Call(context.Background(), "desk.open", ticket, nil)
	fmt.Println(output["result"], err)
	ticket["priority"] = "highest"
	_, err = executor.Call(context.Background(), "desk.open", ticket, nil)
	fmt.Println(apcore.CodeOf(err), apcore.AsError(err).Details["errors"].([]any)[0].(map[string]any)["path"])
	// Output:
	// title {"description":"one line","minLength":3,"type":"string"}
	// priority {"enum":["low","high"],"type":"string"}
	// due {"anyOf":[{"format":"date-time","type":"string"},{"type":"null"}]}
	// contact {"properties":{"name":{"type":"string"},"phone":{"type":"string","x-sensitive":true}},"required":["name"],"type":"object"}
	// opened: No light <nil>
	// SCHEMA_VALIDATION_ERROR /priority
}

// Several versions of one id live side by side. Callers say what they can work
// with; who says nothing gets the latest.
func ExampleRegistry_Resolve() {
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	for _, version := range []string{"1.4.0", "1.5.0", "2.0.0", "3.0.0-beta.1"} {
		err := apcore.Register(registry, "tax.rate", func(context.Context, struct{}) (string, error) {
			return "by " + version, nil
		}, apcore.Spec{Description: "Says the tax rate", Version: version})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, hint := range []string{"", "^1.0.0", "1.4.0", ">=3.0.0-beta.0", "^4.0.0"} {
		outcome, err := executor.Do(context.Background(), apcore.Request{ModuleID: "tax.rate", VersionHint: hint})
		if err != nil {
			fmt.Printf("%q: %s\n", hint, apcore.CodeOf(err))
			continue
		}
		fmt.Printf("%q: %s\n", hint, outcome.Output["result"])
	}
	registry.Unregister("tax.rate", apcore.UnregisterOptions{Versions: []string{"2.0.0"}})
	_, definition, err := registry.Resolve("tax.rate", "")
	fmt.Println("latest is now", definition.Version, err)
	// Output:
	// "": by 2.0.0
	// "^1.0.0": by 1.5.0
	// "1.4.0": by 1.4.0
	// ">=3.0.0-beta.0": by 3.0.0-beta.1
	// "^4.0.0": MODULE_NOT_FOUND
	// latest is now 1.5.0 <nil>
}

// Access rules as a file: the first rule that matches decides, and what no rule
// allows is denied.
func ExampleParseACL() {
	acl, err := apcore.ParseACL([]byte(`
default_effect: deny
rules:
  - description: deleting is for admins
    callers: ["*"]
    targets: ["notes.delete"]
    effect: allow
    conditions: {roles: [admin]}
  - description: forced pushes are looked at
    callers: ["@external"]
    targets: ["repo.push"]
    effect: allow
    approval: required
    conditions: {arguments: {has_key: [force]}}
  - callers: ["@external"]
    targets: ["repo.*", "notes.read"]
    effect: allow
`), apcore.ACLOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ada := apcore.NewContext(apcore.ContextOptions{Identity: apcore.NewIdentity("ada", "user", []string{"writer"}, nil)})
	for _, call := range []apcore.AccessRequest{
		{TargetID: "notes.read"}, {TargetID: "notes.delete"}, {TargetID: "repo.push"}, {TargetID: "repo.push", ArgumentKeys: []string{"force"}},
	} {
		call.Context = ada
		if call.ArgumentKeys == nil {
			call.ArgumentKeys = []string{}
		}
		decision := acl.CheckAccess(context.Background(), call)
		fmt.Println(call.TargetID, call.ArgumentKeys, "allowed:", decision.Allowed, "approval:", decision.ApprovalRequired)
	}
	_, err = apcore.ParseACL([]byte("rules:\n  - callers: ['*']\n    targets: ['*']\n    effect: Allow\n"), apcore.ACLOptions{})
	fmt.Println(apcore.CodeOf(err), "in line", apcore.AsError(err).Details["line"])
	// Output:
	// notes.read [] allowed: true approval: false
	// notes.delete [] allowed: false approval: false
	// repo.push [] allowed: true approval: false
	// repo.push [force] allowed: true approval: true
	// ACL_RULE_ERROR in line 4
}

// A module as a tool for agents, in the form that each of them takes.
func ExampleDescriptor_Export() {
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	type input struct {
		City string `json:"city" jsonschema:"description=name of the city" jsonschema_extras:"x-llm-description=city in English"`
		Days int    `json:"days,omitempty" jsonschema:"minimum=1"`
	}
	err := apcore.Register(registry, "weather.forecast", func(context.Context, input) (string, error) { return "sunny", nil },
		apcore.Spec{Description: "Foretells the weather", Annotations: apcore.Annotations{Readonly: true}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, profile := range []apcore.Profile{apcore.ProfileMCP, apcore.ProfileOpenAI, apcore.ProfileAnthropic, apcore.ProfileGeneric} {
		tool, err := registry.Definition("weather.forecast").Export(profile)
		if err != nil {
			fmt.Println(err)
			return
		}
		text, _ := json.Marshal(tool)
		fmt.Println(profile, string(text))
	}
	// Output:
	// mcp {"_meta":{"cacheKeyFields":null,"cacheTtl":0,"cacheable":false,"paginated":false,"paginationStyle":"cursor"},"annotations":{"destructiveHint":false,"idempotentHint":false,"openWorldHint":true,"readOnlyHint":true},"description":"Foretells the weather","inputSchema":{"properties":{"city":{"description":"name of the city","type":"string","x-llm-description":"city in English"},"days":{"minimum":1,"type":"integer"}},"required":["city"],"type":"object"},"name":"weather.forecast"}
	// openai {"function":{"description":"Foretells the weather","name":"weather_forecast","parameters":{"additionalProperties":false,"properties":{"city":{"description":"city in English","type":"string"},"days":{"minimum":1,"type":["integer","null"]}},"required":["city","days"],"type":"object"},"strict":true},"type":"function"}
	// anthropic {"description":"Foretells the weather","input_schema":{"properties":{"city":{"description":"city in English","type":"string"},"days":{"minimum":1,"type":"integer"}},"required":["city"],"type":"object"},"name":"weather_forecast"}
	// generic {"description":"Foretells the weather","input_schema":{"properties":{"city":{"description":"name of the city","type":"string","x-llm-description":"city in English"},"days":{"minimum":1,"type":"integer"}},"required":["city"],"type":"object"},"module_id":"weather.forecast","output_schema":{"properties":{"result":{"type":"string"}},"required":["result"],"type":"object"}}
}
