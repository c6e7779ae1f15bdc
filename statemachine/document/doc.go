// Package document reads a text file, YAML 1.2 with its core schema or JSON, into a tree of which every part knows where it
// stands. What two readers of YAML may understand differently is refused. A loader reads a file in two steps: Parse, then
// its own walk with a [Collector] that gathers everything that is wrong, so that anyone who writes the file sees all faults at
// once. A Node is not modified after Parse and may be shared. Limits (1 MiB, 100,000 nodes after aliases are resolved, 64
// levels, 100 faults) bound what a file can cost.
package document
