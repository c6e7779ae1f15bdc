// Package changefeed tells in order what instances went through, from rows in the store: over a restart, and on any
// node. A row says that an instance of a workflow has a new history entry; the store gives it its place when the order
// of the commits is known (persistence.Writes.Announce), so a reader that goes on behind its Cursor misses nothing, and
// entries of one instance come in their order. What is older than Options.KeptFor, or beyond Options.RowsMax rows of a
// shard, is removed; a cursor from before is ErrGone. Rights are those of now. DESIGN.md has the reasons.
package changefeed
