// Package replica keeps shards on several nodes: a Raft group, by go.etcd.io/raft, for some shards in a row, whose log and
// state are rows of the one store beneath. It knows no rule of the rows.
//
// # One host for all groups
//
// A [Host] runs the groups of a node, as CockroachDB's store and TiKV's do. It works in rounds: a round steps every group
// that has something to do, sends what all of them say to another node in one stream, and writes what all of them have
// for the disk in one batch, which one sync makes safe.
//
//	Append ──► queue ┐                        ┌─► streams: one for each node and direction
//	messages ──► inbox ├─► round: Raft steps ─┤
//	ticks ───────────┘                        └─► one batch: logs, then states ─┬─ visible: answers to changes
//	      ▲                                                                     └─ safe: answers to other nodes
//	      └───────────────────────────────────────────────────────────────────────────┘
//
// Entries leave for other nodes while this one writes them. What is confirmed is applied in the next round.
//
// # Liveness
//
// Nodes tell each other ten times in a Tick that they are alive, and say so only while their disk takes writes. A group
// has no timers of its own while all its members are alive and have everything: it costs nothing. When the node that
// leads it is not heard for half a Tick, the others forget that it leads, and one of them is elected.
//
// # Epochs
//
// A group is led by one node at a time. Raft alone does not keep a writer from going on with what it remembers from an
// earlier leadership, so each leadership begins an epoch: the index of its first entry. Every entry of
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
//	entry in the log   perhaps    synced                       perhaps
//	rows of the shard  visible    with the next message        later
//
// When the leader has synced the entry too, one of the others need not. The rows need not be synced anywhere: what a crash
// takes of them is applied again from the log. That an entry is confirmed, a follower learns with the leader's next
// message, and in a busy group it applies once a tick, so what it shows is a little behind; AwaitApplied waits, and has
// both done at once.
//
// # What stands where
//
// The rows of the log, the term and the vote stand outside the shards, so that a copy of the group does not have them. The
// log has what some member may lack, and not much more.
// How far the state is, who the members are, and which shard is the last, stand at the beginning of the first shard: they
// are copied and replaced with the rows, in one step. A snapshot is the rows of the group as they are when they are sent.
//
// # A group is divided
//
// [Group.Split] gives the shards from one on to a group of their own: by an entry of the log, with which each member writes
// the beginning of the new group. No row is copied. Both parts are in another epoch then.
package replica
