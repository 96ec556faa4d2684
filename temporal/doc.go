// Package temporal binds apcore modules to Temporal workflows. Two things
// change for workflow code:
//
//   - A module call is an ordinary function call, [Call], that runs as one
//     Temporal activity with a stable name. Its retry policy and timeouts come
//     from the module's annotations, so that nothing irreversible happens twice.
//   - When the approval gate says pending, the same call waits, without using
//     up anything but time, and goes on with the decision. Approvers use
//     [Approvals], the command line, or any Temporal client.
//
// [WithCallOptions] changes how calls are made, in the manner of
// workflow.WithActivityOptions. [NewInterceptor] prepares every workflow of a
// worker; package worker installs it, together with the activities.
//
// # Errors
//
// Errors of [Call] carry an apcore code and keep Temporal's own error:
// errors.Is(err, apcore.CodeApprovalDenied), errors.As(err, &apcoreError) and
// errors.As(err, &activityError) all work. In a client, [AsError] reads the code
// of a failed workflow. Beside the standard's codes there are those of package
// durable, most of all OUTCOME_UNKNOWN.
//
// # Determinism
//
// Everything here that takes a workflow.Context reads time and ids from the
// workflow only. Retry policies and timeouts are not compared on replay, so
// changing annotations never breaks a running workflow; where units of a module
// run is remembered in the run.
package temporal
