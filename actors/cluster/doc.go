// Package cluster makes several nodes one service: it decides which nodes keep which shard, has shards move when nodes
// come and go, and knows who leads what.
//
//	                 the shard Meta, on every node
//	                 one row: nodes, wanted placement,
//	                 join keys, the cluster's authority
//	                  ▲ written where          │ followed
//	                  │ Meta is led            ▼ by all
//	Invite, Join, Remove, place()      tend(shard), where the shard is led:
//	                                   learner ─► caught up ─► voter ─► others lose their votes
//
//	greet: every node tells every other one once a second what it has
//
// A Node is this process's part. Its life:
//
//	Load ──► Claim ──► the store is opened ──► Run ──► HandOver ──► Stop ──► the store is
//	            │        with Replication                                     closed ──► ClosePort
//	            └ opens the cluster port and makes sure that no other
//	              process has this node's identity
//
// # What it promises
//
//   - Every node gets every shard: as many nodes as Options.Replicas says have a vote in it, the others a copy without
//     one, so each answers lists and streams from its own store.
//   - A shard has never fewer voters than it should have because of a move: a node loses its vote when the one that
//     takes its place has one, and has caught up.
//   - A node that was removed reaches no other one again.
//   - [Node.Current] returns when everything that was acknowledged before is visible here. A node that still copies
//     says that another one, [Node.Complete], has all.
//   - A node that says it knows what the others wrote ([Node.Fresh]) knows everything that is older than three seconds.
//
// A node that is merely slow keeps its leaderships. One whose disk is full loses them. No node is replaced without its
// operator, who knows whether it comes back.
package cluster
