// Package document reads a text file, YAML or JSON, into a tree of which every part knows where it stands, so that a
// fault can be named with file, line and column, and with advice.
//
//	file ── Parse ──► Node ──┬── Field, Text, Items ──► what a loader builds
//	                         └── Data ──► data.Value, what stays free-form
//	                loader ── Collector ──► Faults
//
// Both formats mean the same here. YAML is read as version 1.2 with its core schema: on, yes and timestamps are
// strings, and so is everything in quotes. What two readers of YAML may understand differently is refused: duplicate
// keys, keys that are neither strings nor whole numbers, merge keys, tags, several documents, numbers with a leading
// zero, infinities.
//
// A loader reads a file in two steps: Parse, then its own walk with a [Collector] that gathers everything that is
// wrong, so that whoever writes the file sees all faults at once. A Node is not modified after Parse and may be shared.
//
// The package opens no files. Its limits (1 MiB, 100,000 nodes after aliases
// are resolved, 64 levels, 100 faults) bound what a file can cost.
package document
