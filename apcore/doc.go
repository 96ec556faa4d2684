// Package apcore is the apcore module standard in plain Go: functions with a
// JSON Schema, annotations, access rules and an approval gate, called by agents
// and code alike.
//
// A [Module] is such a function; [Register] makes one of an ordinary Go
// function and puts it into a [Registry]. An [Executor] runs calls of the
// registry's modules through eleven steps, see [StepNames]: it checks the call
// chain, access and approval, validates inputs and output, and surrounds the
// module with [Middleware]. A [Context] says who acts and through which modules
// the call came; it serialises, so that a call can continue elsewhere.
//
// The package handles one call at a time and remembers nothing. Durability
// belongs to a layer above, which finds its hooks here: the context's wire
// form, the approval id of a pending call (see [ApprovalTokenKey]), the
// annotations, and [Outcome.Started].
//
// # What else there is
//
// A registry holds several versions of an id, see [Registry.Resolve].
// [LoadConfig] reads settings from a file and the environment.
// [ACL] holds access rules, from code or a file. A [Strategy] is the order of
// steps; [Executor.Validate] checks a call without making it, [Executor.Stream]
// gives a result in chunks. [NewRetryMiddleware], [NewLoggingMiddleware],
// [NewCircuitBreaker], [NewErrorHistory] and [NewDedupMiddleware] are ready-made
// middleware. [AsyncTaskManager] runs calls in the background of this process
// and keeps their state in a [TaskStore]. [Descriptor.Export] shows a module to
// agents. Modules start goroutines with [Context.Go]. docs/core.md is a guide
// through all of it.
//
// # Struct tags
//
// Schemas of function modules come from Go types: json tags name the
// properties, omitempty and pointers make them optional, jsonschema tags add
// constraints, and apcore:"sensitive" marks a secret that must never be shown.
//
// # Errors
//
// Every error has a [Code]. Ask errors.Is(err, apcore.CodeACLDenied), or
// [CodeOf], which answers for foreign errors too; [AsError] gives access to
// details, retryability and trace id. A pending approval is an [ApprovalError].
//
// # Numbers
//
// Values that come as JSON keep their digits: untyped modules see json.Number,
// typed ones their Go type. Integers beyond 2^53 survive both ways.
//
// # Concurrency
//
// Registry, Executor, Data and CancelToken may be used concurrently. One
// context tree is one logical call.
package apcore
