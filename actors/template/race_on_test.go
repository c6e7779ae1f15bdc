//go:build race

package template

// timeMax is how long any file may take; the race detector makes it ten times as
// long.
const timeMax = 20 * second

// heavy says whether files of many megabytes are tried: there is one goroutine
// here, and the race detector would take minutes to find nothing.
const heavy = false
