// Package cluster makes several nodes one service: it decides which nodes keep which shard, has shards move when nodes
// come and go, and knows who leads what. The row "cluster" of the shard Meta says what is wanted; the leader of each
// shard brings its group there, one vote at a time, so that a move never costs a vote. Nodes tell each other once a
// second what they have. DESIGN.md says what is promised.
//
// The life of a Node: Load, Claim, the store is opened with Replication, Run, HandOver, Stop, the store is closed,
// ClosePort.
package cluster
