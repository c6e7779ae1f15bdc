// Package persistence keeps bytes under keys, in Pebble, behind a journal with group commit. It knows no workflow rule.
// Package key has the layout of the keys, DESIGN.md the decisions and the costs, PROMISES.md what holds after a crash.
//
// # What is durable when
//
// Append applies a set of writes as one: all of it or nothing is there after any crash. It becomes visible soon, to all
// readers at the same moment, and durable when its waiter is told so, not before. A writer who reads what it wrote calls
// AwaitVisible in between. A reader who shows what it read to somebody either is the writer and waits, or calls
// AwaitDurable. Barrier is told when everything appended before is durable.
//
// A failed write or sync of the log ends the process (Options.Fatal). A commit that takes longer than
// Options.CommitWaitMax is answered with ErrOutcomeUnknown; from a quarter of that time on the store accepts nothing until
// commits get through again. A full disk is refused with ErrDiskFull before Pebble could hang on it.
//
// # The feed
//
// A set of writes may announce itself with rows in the feed of its shard. Rows become visible in the order of their
// places, so a reader that goes on after the last place that it has seen misses none. Places begin with a time and only
// grow, over restarts, leaders and clocks. TrimFeed removes the oldest rows and notes up to where.
//
// # Shards and replicas
//
// An instance belongs to one shard by the hash of its id. Who reads many instances does not see shards: a prefix that is
// built for EveryShard means that prefix in each numbered shard. Scan and CountAll accept it, and Snapshot.Merge gives the
// rows of all shards in one order.
//
// With Options.Replication the store is one of several that share the shards, each of which is in some of them; package
// replica has how. Append gives what is written to the group of its shard, and the waiter is told when a majority of nodes
// has it on disk; it is visible then, and not before. No time bounds that. What a writer holds in memory belongs to the
// epoch in which it read it. ErrNotLed means that nothing was applied, ErrLost that the outcome is unknown; after both, and
// when LeadershipObserver.Ended is called, it is dropped. Waiters of one shard are told in the order of Append, those of two
// shards at the same time.
//
// A node need not have every shard. A read of one that it has not is ErrNotLed, and so is a read of EveryShard then: who
// reads many instances names the shards that are here (SnapshotOf).
//
// # What the caller must do
//
//  1. Open once for each directory, and ask Accepting before work is accepted.
//  2. Fill a Batch from NewBatch on one goroutine, with keys of one shard, and give them to Append, Commit or Discard.
//  3. Append false: drop from memory what was refused. True, and the waiter gets ErrOutcomeUnknown: keep it, and show
//     nothing of it until a Barrier succeeds. A waiter must not block.
//  4. Wait for durability before anybody is shown what was read.
//  5. Close cursors, then their snapshot, and the store last.
package persistence
