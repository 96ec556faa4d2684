// Package worker hosts apcore modules and workflows on a Temporal worker: give
// it a client, a task queue and an executor, and it registers one activity for
// each module, prepares every workflow for package temporal, and stops
// gracefully.
//
// [New] refuses what would fail later: a module that needs approval while nobody
// answers the gate, settings that make no sense. [NewPlugin] is the same wiring
// for a worker or replayer of your own.
package worker
