package workflows

import (
	"encoding/json"

	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// ModuleCallInput asks [ModuleCall] for one call.
type ModuleCallInput struct {
	ModuleID string `json:"module_id"`
	// Inputs is a JSON object; empty means {}.
	Inputs json.RawMessage `json:"inputs,omitempty"`
}

// ModuleCallOutput is what [ModuleCall] returns.
type ModuleCallOutput struct {
	// Output is a JSON object.
	Output json.RawMessage  `json:"output"`
	Module apcore.ModuleRef `json:"module"`
}

// ModuleCall is the workflow apcore/module-call: it makes one call and returns
// its output. Its errors are those of [temporal.Call].
func ModuleCall(ctx workflow.Context, in ModuleCallInput) (*ModuleCallOutput, error) {
	var inputs any = in.Inputs
	if len(in.Inputs) == 0 {
		inputs = nil
	}
	result, err := temporal.CallRaw(ctx, in.ModuleID, inputs)
	if err != nil {
		return nil, err
	}
	return &ModuleCallOutput{Output: result.Output, Module: result.Module}, nil
}
