// Package repository has the files of the repository: their names, who may read which (group D of gateway/INTERFACE.md,
// "Groups"), and their contents for other packages. A Source is where the files are: a folder (package disk) or a
// bucket of an object store (package bucket). An index keeps the names of all files in memory, so that a list never
// walks a disk; the source tells it of changes, and now and then it walks everything. DESIGN.md says what is promised.
//
// The caller does Start, any number of concurrent calls, SetRights whenever rights.yaml changes, Stop, and only then
// closes the source.
package repository
