// Package record is what a measurement leaves: a Markdown text that begins with where it was made, and figures of
// several rounds with their spread. Where it was made is processor, system, the cost of a synced write, how busy the
// machine was, and which commit was measured, because a figure without these says nothing.
package record
