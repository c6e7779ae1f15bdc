// Package actors holds everything in troupe that is alive: who owns what, and who may change it.
//
//	service
//	├─ shard-0 … shard-n      shard.Shards: one actor for each shard that this node leads; its life is the epoch
//	│   ├─ instances          instance.Actor, by their ids: started, watched, restarted and ended by the shard's actor
//	│   ├─ timers             timer.Service: fires what is due in the shard
//	│   ├─ jobs               job.Service: gives jobs to programs, and ends leases that run out
//	│   ├─ schedules          schedule.Service: creates instances at their times
//	│   ├─ bulk               bulk.Service: one page after the other of what bulk jobs do
//	│   ├─ retention          retention.Service: deletes instances that were done for long enough
//	│   └─ outbox             outbox.Service: sends what instances send out
//	├─ form portal ── workers     formportal.Portal; as in the two below, each request has an actor of its own
//	├─ template ── workers        template.Service
//	└─ repository ── workers      repository.Service
//
// The running program prints it: `troupe actors`, of System.Tree.
//
// Every instance in memory is one protoactor actor. It alone reads and changes the instance's state. The first request
// activates it; it is passivated when it was idle, or when instances take too much memory. When the epoch of a shard ends,
// the children of the shard's actor end first, and then the shard's actor: no request that waits in a mailbox is dropped.
//
//	gateway ──► workflow.Router ──► shard.Shards ──► instance.Actor ──► statemachine.Step
//	             who may ask         where it is      what it does      │
//	             before the mailbox                                     └─► persistence.Store
//
// Packages import only what stands below them; cmd/internal/treecheck/testdata/arrows.txt has all arrows.
//
// # After a panic
//
//	instance            Its caller gets an error; it drops its state, its parent restarts it, and it reads the state again with the
//	                    next request; what was not yet durable had not been acknowledged. After more than ten panics within a minute it
//	                    is not run for a minute (it rests): callers are answered at once, and an incident says so.
//	background work     Its parent restarts it after a pause, 1 s at first; after six panics in a row, none of whose runs lasted a
//	                    minute, it rests for a minute, and an incident says so. All that it knows it reads again from the store.
//	worker              Its caller gets an error, and its supervisor ends it.
//	shard, supervisor   It goes on with what it has.
//
// All of them are counted, and so are messages to actors that have ended (System.Metrics).
//
// # Beside the actors
//
// Services of the node have goroutines; each ends with the Stop or Close of its owner. The router passivates idle instances and removes
// what is too old, the catalog builds indexes, and others write incidents, watch the home and the repository's files, and send heartbeats
// to other nodes. After a panic they continue (package guard), and read again what they need. A panic ends the process in what alone has
// data that is not durable yet, or accepts connections: the journal and its committer, Raft, the one writer of credentials, the
// listeners. The next start reads what is there. Every other goroutine belongs to net/http, the cluster port, Pebble or
// Raft, or ends with the request that started it.
//
// # Glossary
//
// Words that have a meaning of their own here. Those of a chart are W3C SCXML's (statemachine/DEFINITION.md, "Semantics").
//
//	home                  the folder with a server's text files and its store
//	workflow              all versions of one definition; it has an id
//	definition            one version of a workflow: machines, data, rights; new instances get the current one
//	instance              one run of a definition: a record (positions, svcPublic, svcPrivate) and a history
//	history entry         who moved an instance, by which event, from where to where
//	position              a machine of an instance and a node that is active in it
//	macrostep             all that one event causes; it leaves one history entry and has many microsteps
//	unmatched             an event that the definition declares and no transition takes now
//	activation            an instance in memory: its actor, mailbox and callers; passivation is its end
//	rest                  a minute in which what panicked again and again is not run
//	in-flight key         an idempotency key whose first request is still running
//	batch                 many requests of a caller in one, each an item; of the store: what one Append takes, all of it or nothing
//	window                the items of a batch that are on their way
//	round                 the time between two sweeps of the router, a second
//	form                  an instance made from a template, with an owner, drafts and the time when it was submitted; a plain
//	                      form belongs to no workflow
//	form of a task        a template that a task names: what is filled in becomes the data of one of its events
//	task                  work for people that an instance waits for while a node is active
//	candidate, claim      a user who can take a task over; doing so, which makes them its assignee
//	worklist              the open tasks for a role, a privilege, a user or everybody
//	activity              what happened to an instance in one order: history, comments, claims, and what waits
//	feed                  the latest history entries in memory, which watchers follow; the feed of changes is in the store
//	credential            a token or a session
//	privilege             a right that the interface asks for, such as mod-form; roles give privileges
//	node                  a server of a cluster; its id stays when its address changes
//	authority             the key of a cluster that signs the certificates of its nodes
//	shard                 a range of keys; an instance lies wholly in one
//	replica, group        a node's copy of a shard; all of them, with one log (Raft), of which one leads
//	epoch                 the time in which one node leads a shard without a break
//	journal               the store as writers see it: Append takes a ticket, the applier makes it visible, the committer durable
//	group commit          one fsync that makes the batches of many instances durable
//	backlog               the bytes that were appended and are not durable yet
//	generation            one opening of the store's database; a set that is replaced as a whole, such as all indexes
//	durability watermark  up to which write the store is durable; each record of the log carries it (WAL stamp)
//	integrity checkpoint  the file that says what was durable, for the next start
//	outcome unknown       an answer did not come in time: the request was applied or not; repeating it with its key tells
package actors
