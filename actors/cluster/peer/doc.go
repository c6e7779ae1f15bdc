// Package peer is the cluster port: it moves bytes between nodes that prove who they are.
//
//	node A                                                  node B
//	Streams(7).Dial(B) ──┐                             ┌──► Streams(7).Accept
//	RoundTrip(https://B) ├─► dial ─► TLS 1.3 ─► Port ──┼──► Options.Calls, NodeOf = A
//	DialJoin(key) ───────┘     both certificates       └──► Options.Join
//	  no certificate           are verified
//
// It knows nothing of Raft, workflows or the store. What a connection is for is decided by the handshake (ALPN):
//
//	troupe-stream/1  bytes of one shard, behind two that say which
//	h2               calls: HTTP/2, many at once on a connection
//	troupe-join/1    one small request of a machine that is no node yet
//
// # Who is who
//
// A cluster has one Authority. It signs for each node's Identity that its key is that of troupe://CLUSTER/NODE, for 90
// days. Whoever dials a node names its id, and takes nobody else who answers; addresses mean nothing but where to look,
// and may change. A JoinKey has the fingerprint of the authority's key, so a new machine knows the cluster before it
// trusts it.
//
// # What the caller must do
//
//  1. Keep the bytes of the authority where every node has them, and secret: they are the
//     keys to the cluster. Replace them when Authority.Renewed returns another one.
//  2. Keep the identity by Save, and when NeedsRenewal says so, have its CSR signed, Accept
//     and Save it. Ports need not be told. A node that was off for longer than its certificate
//     lasts signs for itself, from its own copy of the authority, before it starts the port.
//  3. Take a shard's Streams into use before others dial them, and close them with the shard.
//  4. When a node is removed, refuse it in Options.Admits, and Disconnect it.
//  5. Check a join key's Hash, time and use in Options.Join, and sign.
//
// # What it promises
//
//   - No byte of whoever has no valid certificate of this cluster reaches a stream or a call. A dialed connection ends
//     at the node that was meant, or is an error.
//   - An error of Dial, RoundTrip or Accept is one line that names the node, its address and the cause. What the other
//     end refuses is in its log, at most one warning a second.
//   - Whoever connects has 5 s to say who they are and what they want. How many may be at that, in all and for each
//     address, how many are connected, wait and call, are bounded (Options). Beyond a bound a connection is closed at
//     once and counted (Metrics).
//   - A connection of calls whose other end is gone is closed after 5 s. A stream that nobody writes to is closed by
//     TCP after some 11 s; whoever writes should set deadlines.
//   - Stop closes everything and returns when the goroutines of the port are gone. With calls of others connected it
//     takes a second, in which they read their answers.
//
// It does not say whether the other node has had a call that failed, does not retry a call that may have been carried
// out, and does not compress.
package peer
