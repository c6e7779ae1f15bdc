//go:build race

package expr

// raceEnabled: the race detector lets pools drop what they are given.
const raceEnabled = true
