// Package oteltemporal puts client, workflow, activity and module of a durable
// call into one OpenTelemetry trace, whose id is the apcore trace id.
//
// Give [NewInterceptor] to the client; workers made from that client are traced
// too. Module spans come from apcore.TracingMiddleware through package
// otelapcore; with both, a trace looks like this:
//
//	StartWorkflow:Refund
//	├── RunWorkflow:Refund
//	├── StartActivity:apcore/call/payments/refund
//	│   └── RunActivity:apcore/call/payments/refund   asks, and waits for nobody
//	├── StartActivity:apcore/call/payments/refund
//	│   └── RunActivity:apcore/call/payments/refund   after the approval, with a link to the one that asked
//	│       └── apcore.module.execute
//	└── CompleteWorkflow:Refund
//
// No span is open while a workflow waits. That a workflow began and ended are two
// short spans, so one that waits for a month or outlives its worker is in the
// trace all the same, and nothing is traced again when it is replayed.
//
// Nothing here reads or sets a global provider.
package oteltemporal
