// Package repository has the files of the repository: their names, who may read which (group D of gateway/INTERFACE.md,
// "Groups"), and their contents for other packages.
//
//	request ──► Service ──► supervisor actor ──► worker actor, one for each request
//	                                               │
//	      rights.yaml ──ParseRights──► Rights ◄────┤ who reads what
//	                                   snapshot ◄──┤ List: all names, in memory
//	                                   Source ◄────┘ Open: one file
//	                                     │
//	                            index ◄──┘ folders, and what changes in them
//
// A Source is where the files are: a folder (package disk) or a bucket of an object store (package bucket). An index
// keeps the names of all files in memory, in about as many bytes as they have, so that a list never walks a disk. The
// source tells the index of changes. Now and then the index walks everything, to find what it was not told of.
//
// # What is promised
//
// A list shows one moment, in ascending order, and only paths that the caller could read then. A file that came, went
// or was renamed, and a right that changed, count within two seconds where the source is watched; elsewhere after the
// next walk. What a caller may not see is failure.ErrNotFound, in the same words as what is not there. A panic in one
// request is answered with ErrInternal and touches no other. Nothing is stored: after a start the index is built again,
// and a list waits for it.
//
// # What the caller must do
//
// Start, any number of concurrent calls, SetRights whenever rights.yaml changes, Stop, and only then close the source.
// Files must be closed.
package repository
