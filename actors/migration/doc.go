// Package migration gives running instances of one version of a workflow another version, many with one request.
//
//	Request ─► plan ─► a page of the instances ─► each: one commit, or refused
//	                   that match and have From     where its shard is led
//
// Nothing is kept about a migration: an instance that was migrated does not have the version From any more, so a request that
// was interrupted is made again.
package migration
