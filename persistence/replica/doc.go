// Package replica keeps a shard on several nodes: one Raft group for each shard, by hashicorp/raft, whose log and state
// are rows of the one store beneath. It knows no rule of the rows.
//
//	Append ──► queue ──► proposer, one entry for what waits ──► Raft: log rows, synced here
//	                                                            and on a majority of nodes
//	Change.Done, in order ◄── finisher ◄── state: rows of the shard, on every node alike
//
// # Epochs
//
// A group is led by one node at a time. Raft alone does not keep a writer from going on with what it remembers from an
// earlier leadership, so each leadership begins with an entry of its own, whose index is the epoch. Every entry of
// writes has the epoch in which its writers have read, and the revision of the shard that it follows: how many entries
// of writes this epoch has. Every node applies an entry only when both are what it has itself, so a change that was
// built on something that was lost is refused everywhere alike. A writer whose change is refused, or whose outcome is
// unknown, drops what it holds in memory.
//
// # What an answer means
//
// Nil: the change is durable on a majority of the voters and visible here. ErrNotLed: nothing was applied and nothing
// will be. ErrLost: leadership was lost meanwhile, and the outcome is unknown yet; the next leader does.
//
// What is where when the answer is nil:
//
//	                   leader     another of the majority      the others
//	entry in the log   synced     synced                       perhaps
//	rows of the shard  visible    with the next message        later
//
// The rows need not be synced anywhere: what a crash takes of them is applied again from the log. That an entry is
// confirmed, a follower learns with the leader's next message, so what it shows is a little behind; AwaitApplied waits.
//
// # What stands where
//
// The rows of the log, the term and the vote stand outside the shard, so that a copy of the shard does not have them.
// How far the state is, and which snapshot Raft may count on, stand inside, at its beginning: they are copied and
// replaced with it, in one step. A snapshot is only that row; anyone who needs it gets the rows of the shard as they are
// when they are sent, which may be newer, and skips the entries that they contain.
package replica
