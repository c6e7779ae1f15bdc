// Package changefeed tells in order what instances went through, from rows in the store: over a
// restart, and on any node.
//
//	commit ──► entry, record, row of the feed ──► rows of the shard, in the order of the commits
//	                                                    │
//	Cursor: a place in each shard ◄── Walk, Changes ◄───┘ ──► Trim: old rows go
//
// A row says that an instance of a workflow has a new history entry; the entry itself is read
// from the history. The store gives each row its place when the order of the commits is known
// (persistence.Writes.Announce), so a reader that goes on behind its Cursor misses nothing:
// each entry comes at least once, those of one instance in their order. Entries of different
// shards come about in the order of their times.
//
// What is older than Options.KeptFor, or more than Options.RowsMax rows of a shard back, is
// removed. A cursor from before that is ErrGone.
//
// In a cluster a node reads the replicas that it has itself. Rights are those of now: a caller sees an entry if it may read the instance when it asks.
package changefeed
