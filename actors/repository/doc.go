// Package repository has the files of the repository: their names, who may read
// which (group D of gateway/INTERFACE.md, "Groups"), and their contents for other
// packages.
//
//	request ──► Service ──► supervisor actor ──► worker actor, one for each request
//	                                               │
//	      rights.yaml ──ParseRights──► Rights ◄────┤ who reads what
//	                                   snapshot ◄──┤ List: all names, in memory
//	                                   Source ◄────┘ Open: one file
//	                                     │
//	                            index ◄──┘ folders, and what changes in them
//
// Where the files are is a Source: package disk is a folder. Names of all files
// are kept in memory by an index, in about as many bytes as they have, so that a
// list never walks a disk. The index is told of changes, and looks through
// everything now and then for what it was not told of.
//
// # What is promised
//
// A list is of one moment, in ascending order, and has no path that the caller
// did not read at that moment. A file that came, went or was renamed, and a right
// that changed, count within two seconds where the source is watched; elsewhere
// after the next walk. What a caller may not see is failure.ErrNotFound, in the
// same words as what is not there. A panic in one request is answered with
// ErrInternal and touches no other. Nothing is stored: after a start the index is
// built again, and a list waits for it.
//
// # What the caller must do
//
// Start, any number of concurrent calls, SetRights whenever rights.yaml changes,
// Stop, and only then close the source. Files must be closed.
package repository
