//go:build race

package worker_test

// underRace says that the race detector makes everything ten times as slow.
const underRace = true
