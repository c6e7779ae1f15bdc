//go:build race

package template

// timeMax is how long any file may take; the race detector makes it ten times as
// long.
const timeMax = 20 * second
