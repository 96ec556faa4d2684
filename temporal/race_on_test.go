//go:build race

package temporal_test

// underRace says that the race detector makes everything ten times as slow.
const underRace = true
