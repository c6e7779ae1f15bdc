// Package catalog has the definitions in use: which version new instances get, what every stored version means, and the
// indexes that definitions declare.
//
//	files ─► Publish ─► one commit ─► current versions ─► Pin, for a create
//	                        │
//	                        └─► a generation of indexes ─► commits maintain them
//	                                     │                 queries read complete ones
//	                                     └─► BuildIndexes fills and frees
//
// A set of files is taken whole or not at all. PublishDefinition takes single definitions beside it, of workflows that
// no file names; they stay when the set changes. What an instance was created with stays in the store and is read again
// with it; content is replaced under a version, and Retire removes a version, only when no instance has it. Readers
// take no lock, except Pin: it waits for the Publish or Retire that is under way when that is about the very version
// that Pin wants, or when this version could not be read and is being published again.
//
// In a cluster, the store of every node has what was published anywhere, and Reload takes it over. Only the node that
// leads the shard Meta publishes and retires, content of a version is never replaced, the number of one that was
// retired is never used again, and each shard says how far the indexes are in it.
//
// Who may give an instance a version, and what keeps a version that goes from it:
//
//	           one node                         a cluster
//	create     Pin, until its count is stored   MayHave, in its commit
//	migration  PinVersion, likewise             MayHave, in its commit
//	both       closed pins                      the mark in Meta, the number in the shard (DESIGN.md)
//
// BuildIndexes is the body of a goroutine that its caller owns. Everything else is safe for concurrent use as soon as
// Open has returned and AddBuiltin was called.
package catalog
