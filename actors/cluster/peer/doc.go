// Package peer is the cluster port: it moves bytes between nodes that prove who they are. It knows nothing of Raft,
// workflows or the store. The handshake (ALPN) says what a connection is for: the bytes of one shard, calls over
// HTTP/2, or the one request of a machine that is no node yet. Whoever dials a node names its id and takes nobody else
// who answers; an address means only where to look. DESIGN.md has what the port promises and what its caller must do.
package peer
