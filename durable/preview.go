package durable

import (
	"context"
	"errors"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Preview checks a call without making it, see [apcore.Executor.Validate]: what
// is wrong with it is in the result, also that the module is not here. It has no
// effect, so it may run as often as it likes. Errors are [*Failure]: a request
// that cannot be read, a context that is refused, a result that is too large.
func (i *Invoker) Preview(ctx context.Context, request CallRequest) (*apcore.PreflightResult, error) {
	call, err := i.prepare(ctx, CallRequest{
		V: request.V, ModuleID: request.ModuleID, Inputs: request.Inputs, Context: request.Context, CallID: request.CallID,
		Fingerprint: request.Fingerprint,
	}, 1)
	if err != nil {
		return nil, notStarted(err)
	}
	result := i.executor.Validate(intoContext(ctx, call.invocation), i.target(request.ModuleID), call.inputs, call.context)
	text, err := apcore.EncodeJSON(result)
	if err == nil {
		err = i.checkSizes(request.ModuleID, text, nil)
	}
	if err != nil {
		return nil, notStarted(err)
	}
	return result, nil
}

// notStarted is a failure before the executor was asked.
func notStarted(err error) *Failure {
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure
	}
	return &Failure{Err: apcore.AsError(err).WithRetryable(new(false)), NotStarted: true}
}
