//go:build !race

package template

// timeMax is how long any file may take.
const timeMax = 2 * second

// heavy says whether files of many megabytes are tried.
const heavy = true
