// Package activities is the worker's side of module calls: one Temporal activity
// for each registered module, named by package durable.
//
// Every activity sends heartbeats in the background while its module runs, so
// that a cancellation reaches the module's context.Context soon, and a lost
// worker is noticed. Package worker registers them; [New] and
// [Activities.Register] do the same by hand.
package activities
