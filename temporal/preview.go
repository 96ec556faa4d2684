package temporal

import (
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// Validate checks a call without making it, on a worker that hosts the module
// (apcore §12.8): schema, access, whether it would need approval, and what it
// would change. What is wrong with the call is in the result; errors are those of
// [Call] before anything is scheduled, and of a worker that cannot be reached.
func Validate(ctx workflow.Context, moduleID string, in any) (*apcore.PreflightResult, error) {
	c, err := prepareCall(ctx, moduleID, in)
	if err != nil {
		return nil, local(ctx, err)
	}
	policy := durable.PolicyFor(durable.ClassSafe, previewTimeout)
	unit := c.state.opts.Namer.Unit(durable.OperationPreview, moduleID)
	var result apcore.PreflightResult
	running := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, activityOptions(policy, c.settings, c.summary)), unit, c.request)
	if err := running.Get(ctx, &result); err != nil {
		return nil, callFailure(c.request, policy, err, workflow.Now(ctx))
	}
	return &result, nil
}

// Preview returns what a call would change, as far as the module can tell. A call
// that is not valid fails with the error it would end with.
func Preview(ctx workflow.Context, moduleID string, in any) ([]apcore.Change, error) {
	result, err := Validate(ctx, moduleID, in)
	if err != nil {
		return nil, err
	}
	if len(result.Errors) > 0 {
		return nil, result.Errors[0]
	}
	return result.PredictedChanges, nil
}

// previewTimeout bounds one attempt; a preview has no effect to wait for.
const previewTimeout = unknownModuleTimeout / 10
