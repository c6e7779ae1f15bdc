// Package sourcetest holds what every place for the files of a repository must
// do: Run is the conformance suite of repository.Source, and Memory is a source
// without a disk, for tests and measurements.
package sourcetest
