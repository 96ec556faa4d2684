// Package otelapcore hands the spans and measurements of package apcore to
// OpenTelemetry. It is apart from apcore so that a program without OpenTelemetry
// does not link it.
//
// Nothing here reads or sets a global provider: what is not passed is not used.
// Spans keep the trace id of the apcore context and the ids that apcore gave
// them, so a trace is one with the logs and errors of its calls.
package otelapcore

// ScopeName is the instrumentation scope of all spans and metrics.
const ScopeName = "github.com/apcore-temporal/apcore-temporal/apcore"
