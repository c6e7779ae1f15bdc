// Package persistence keeps bytes under keys, in Pebble, behind a journal with
// group commit. It knows no workflow rule.
//
//	NewWrites ──Set, Delete, Add──► Append ──► queue ──► applier, groups what waits
//	                                                        │ log buffer, visible to readers
//	                       Waiter.Committed, in order ◄── committer, one sync for all
//
// # What is durable when
//
// Append applies a set of writes as one: all of it or nothing is there after any
// crash. It becomes visible soon, to all readers at the same moment, and durable when its
// waiter is told so, not before. A writer who reads what it wrote calls AwaitVisible in
// between. A reader who shows what it read to somebody either is the writer and waits, or
// calls AwaitDurable. Barrier is told when everything appended before is durable.
//
// A failed write or sync of the log ends the process (Options.Fatal): an fsync
// that failed must not be tried again, because the kernel may have dropped the
// data. A commit that takes longer than Options.CommitWaitMax is answered with
// ErrOutcomeUnknown. From a quarter of that time on the store takes nothing until
// commits get through again. A disk
// that becomes full is refused with ErrDiskFull before Pebble could hang on it; the
// store gives back what it can, and takes writes again when there is room.
//
// # The keys
//
//	shard(2) table(1)
//	         'r' workflow id                   record
//	         'e' id sequence                   history entry, one key each
//	         'f' id user                       draft
//	         'g' place                         row of the feed of the shard; place 0: what was removed
//	         'n' workflow node machine id      node index, ids in order
//	         'i' index value id                declared index
//	         'j' index                         how far the index is in the shard
//	         'p' list user when id             list of a user, newest first
//	         'b' id sequence number            task that is open, or was decided
//	         'h' list name order value id …    task in a worklist, sorted
//	         'u' id sequence number user       draft for a task
//	         'm' id sequence number            comments, claims: what is no history
//	         'o' id queue sequence number      delivery
//	         'q' workflow queue when id …      attempt of a delivery, by its time
//	         'w' deadline id sequence number   timer
//	         'x' id sequence number            incident
//	         'y' workflow name                 schedule
//	         'k' scope key                     first answer to an idempotency key
//	         'c' workflow version              count, a sum that is merged
//	         'a' kind                          how far the replica of the shard is
//	  Meta   'd' workflow version              definition
//	         's' name                          setting
//	         't' kind id                       token or session
//
// A store with replicas also has, outside the shards, the logs of their groups:
//
//	0xFFFD 'a' shard(2) 'l' index              entry of the log
//	                    'v' name               the group's term and vote
//
// Texts carry their length, ids and numbers have a fixed width, so no two tuples
// make the same key and no key of a table is the prefix of another; of the values of
// an index, none may be the prefix of another. An instance
// belongs to one shard by the hash of its id, and everything of it lies in that
// key range. Package key builds every key and takes one apart, and nothing else does.
//
// # The feed
//
// A set of writes may announce itself with one row in the feed of its shard. The row gets its place
// when the order of the writes is known, by whoever makes them visible in that order: the applier, or
// with replicas the proposer of the leader, so that the row is in the entry of the log and every node has
// the same. Rows therefore become visible in the order of their places, and a reader that goes on behind
// the last place that it has seen misses none. Places begin with a time and only grow, over restarts, leaders
// and clocks. TrimFeed removes the oldest rows and notes up to where.
//
// Who reads many instances does not see shards. A prefix that is built for EveryShard
// means that prefix in each numbered shard: Scan and CountAll take it, and
// Snapshot.Merge gives the rows of all shards in one order.
//
// # Replicas
//
// With Options.Replication the store is one of several that have the same shards; package
// replica has how. Append gives what is written to the group of its shard, and the waiter
// is told when a majority of nodes has it on disk; it is visible then, and not before. No
// time bounds that.
// What a writer holds in memory belongs to the epoch in which it read it (NewWritesIn,
// BarrierIn). ErrNotLed means that nothing was applied, ErrLost that nobody knows; after
// both, and when LeadershipObserver.Ended is called, it is dropped. Waiters of one shard are told in
// the order of Append, those of two shards at the same time.
//
// # What it costs
//
//	Append            a share of one fsync and of one batch of Pebble's; two copies of
//	                  keys and values, no allocation
//	Announce          with Append: one key of 11 bytes behind the last one of the shard, 8
//	                  bytes beside the value; the first in a process or epoch one seek
//	Barrier           a place in the queue; nothing is written
//	AwaitVisible      nothing while no commit waits, else a place in the queue
//	AwaitDurable      nothing while no commit waits, else a Barrier and its wait
//	Load              one lookup and one copy
//	Load, not there   for an answer to an idempotency key Bloom filters, no block
//	Scan, Cursor      one seek for each shard, then one step for each key
//	Merge             one open cursor for each range and shard; a step compares
//	                  as many keys as the number of cursors has binary digits
//	Snapshot          no copy; it keeps old tables on disk until Close
//	Accepting         one atomic load
//	Metrics           Pebble's lock for a moment: once a second is fine
//	Open              reads MANIFEST and live logs once more than Pebble does,
//	                  and up to Options.VerifyBytesMax of tables
//	Verify            reads everything
//
// # What Open does
//
// Open makes a new store only in an empty or absent directory, and only when
// Options.IDFile names no store that should be there. Otherwise it opens the whole
// store or returns an error.
//
// It checks the files before it changes any. It takes the lock, reads the format,
// and checks MANIFEST and logs three times: each by itself; against the integrity
// checkpoint, a file beside them that says what was durable; and by opening them
// read-only. Package integrity has the check.
// ErrDamaged names the file and what to do. One damage is not found: when the end of
// the newest log is broken, it looks like a write that a crash cut off.
//
// # What the caller must do
//
//  1. Open once for each directory, and ask Accepting before work is taken on.
//  2. Fill Writes from NewWrites on one goroutine, with keys of one shard, and give
//     them to Append, Commit or Discard.
//  3. Append false: drop from memory what was not taken. True, and the waiter gets
//     ErrOutcomeUnknown: keep it, and show nothing of it until a Barrier succeeds. A
//     waiter must not block.
//  4. Wait for durability before anybody is shown what was read.
//  5. Close cursors, then their snapshot, and the store last.
package persistence
