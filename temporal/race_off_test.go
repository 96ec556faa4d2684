//go:build !race

package temporal_test

const underRace = false
