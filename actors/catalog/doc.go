// Package catalog has the definitions in use: which version new instances get, what
// every stored version means, and the indexes that definitions declare.
//
//	files ─► Publish ─► one commit ─► current versions ─► Pin, for a create
//	                        │
//	                        └─► a generation of indexes ─► commits maintain them
//	                                     │                 queries read complete ones
//	                                     └─► BuildIndexes fills and frees
//
// A set of files is taken whole or not at all. PublishDefinition takes single definitions beside
// it, of workflows that no file names; they stay when the set changes. What an instance was created with stays
// in the store and is read again with it; content is replaced under a version only
// when no instance has it. Readers take no lock, except Pin: it waits for the Publish
// that is under way when that is replacing the very version that Pin wants, or when
// this version could not be read and is being published again.
//
// In a cluster, the store of every node has what was published anywhere, and Reload takes it
// over. Only the node that leads the shard Meta publishes, content of a version is
// never replaced, and each shard says how far the indexes are in it.
//
// BuildIndexes is the body of a goroutine that its caller owns. Everything else is safe
// for concurrent use as soon as Open has returned and AddBuiltin was called.
package catalog
