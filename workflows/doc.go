// Package workflows has ready-made workflows. [ModuleCall] makes a single module
// call durable for a client that has no workflow of its own.
package workflows
