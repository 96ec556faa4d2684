//go:build !race

package apcore_test

// raceEnabled is for tests that count allocations.
const raceEnabled = false
