// Package migration gives running instances of one version of a workflow another version, many with one request.
//
// Nothing is kept about a migration: an instance that was migrated does not have the version From any more, so a
// request that was interrupted is made again.
package migration
