// Package durable is the seam between apcore modules and a durable engine: the
// names that outlive code, the wire types, the retry classes, the loop that
// pauses and resumes a call, and the worker's side of it. It knows no engine, so
// its rules are tested without one, and a binding stays small.
//
// [Run] makes one call over an [Engine]. [Invoker] runs it on a worker. Between
// them travel [CallRequest] and [CallResult]; a pending approval is a result,
// not a failure. [Inbox] is the rule book for decisions.
//
// # Classes
//
// [ClassOf] reads a module's annotations. A safe or idempotent module is
// repeated by the engine; every other one runs at most once: its unit has one
// attempt, and only a failure that the worker itself reports as having come
// before the module started is tried again, as a new unit.
//
// # Errors
//
// A [Failure] wraps an apcore error with what an engine has to know. [Codes]
// lists the codes of this layer.
package durable
