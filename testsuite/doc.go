// Package testsuite helps to test workflows that call apcore modules, in this
// repository and outside of it.
//
//   - [NewEnvironment] is Temporal's workflow test environment with an executor's
//     modules in it: no server, and time skips.
//   - [DevServer] is a real Temporal server that all tests of a process share, for
//     what the environment cannot show: queries over the network, reconnects,
//     search attributes, the web UI.
//   - [StartServer] is one that a test has for itself, to stop, kill and restart.
//   - [Replay] runs a recorded history against today's code, see [History],
//     [WriteHistory] and [ReadHistory].
//   - [RequireNoSecrets] looks for canaries in a history, see [FindSecrets].
//   - [TaskStoreSuite] is what every implementation of apcore.TaskStore has to pass.
//
// Tests that use a server fail without one and are skipped under -short.
package testsuite
