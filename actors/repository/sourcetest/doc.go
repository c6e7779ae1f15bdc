// Package sourcetest tests sources of a repository: Run is the conformance suite of
// repository.Source, and Memory is a source in memory.
package sourcetest
