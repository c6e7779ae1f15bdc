// Package workflow is the way to workflow instances: one Router says who may ask what before an instance is
// asked, and finds the instance.
//
//	request ─► Router ─► shard ─► instance actor ─► statemachine.Step
//	              ▲                     │ one batch: record, history entry, indexes, count,
//	              │                     ▼ tasks, timers, what leaves, idempotency key
//	              │               persistence.Append ──► applier ──► fsync, shared by many
//	              └──── reply, when the batch is durable ◄──┘
//
// # The life of an instance
//
//	asleep ──request──► loading ──► awake ──idle──► asleep
//	                       │          │
//	                       └─ damaged └─ panic: restarted, read again; after too many it rests
//
// A sleeping instance is only bytes in the store. The first request for it
// has the actor of its shard start its own, which loads the record. The sweep passivates actors that nobody
// asked for a while and that owe nobody an answer, and the memory relief some
// earlier when all together take too much memory. At most one actor lives for
// an instance at a time: the shard's actor starts one when the one before has ended.
//
// # Who does the rest
//
// The router passes on what other packages do, and ends them when it stops:
//
//	catalog   definitions, and the building of indexes; a create pins its definition
//	query     queries, and lists of forms
//	changefeed  rows of what was committed, in its order; reading and trimming them
//	watch     feeds, to which the journal's goroutine gives what has become durable
//	form      what a form's record and row are, and drafts
//	task      the rows of tasks, and their lists and watches
//	activity  comments and claims, and the one order of all that happened
//	message   what callers ask and are answered
//	shard     the actors of shards, which start and end those of instances
//	instance  the actor of an instance
//	batch     many requests of one caller, which share commits
//	quota     rates, and the length of histories
//	timer     the rows of timers, and which of them come when
//	outbox    the rows of what leaves, and the attempts
//	incident  what failed for whoever asked for it
//	schedule  instances that are created at times of a clock
//	pace      how fast instances may cause their own steps
//	child     what parents and children tell each other
//	deletion  what an instance has in the store, and the end of it
//	failure   the errors that all of them return
//
// The way of a timer, and by outbox that of what leaves and of its outcome; a step that fails commits the row as an incident:
//
//	step ─► commit: entry, record, row of the timer ─► visible: timer.Began ─► goroutine of the shard
//	                                                                               │ due, or found after a start
//	entry, record, no row any more ◄─ commit ◄─ step (Definition.Fire) ◄─ postInternal ◄┘
//
// # On whose goroutine
//
// Whoever sends to an idle instance runs it: the goroutine of a connection, of a batch, of a
// create in it that waits for another with its key, of a worker of the form portal, the index
// builder, the sweep, or the memory relief. What comes meanwhile gets a goroutine. A step ends with Append, which never
// waits; reading may, for a disk, and for what the instance itself has just written. The
// journal's committer, or its watchdog, gives the answer to whoever waits, and it may end the
// actor of a create that failed.
//
// # What is promised
//
// A reply leaves when everything that it shows is durable: the actor goes on
// with the next event at once, but the answers wait for the journal, also those
// of reads that came after an event whose commit is still on its way. A
// request that is refused left nothing behind. One whose outcome is not known in
// time is failure.ErrOutcomeUnknown; repeating it with the same key is safe.
//
// Requests are admitted before the mailbox: a limit for each instance and one
// for all. A panic in one instance is answered with failure.ErrInternal and touches no
// other.
//
// # What the caller must do
//
// Start, then any number of concurrent calls, then Stop, which waits for
// everything accepted. The store is closed after that and not before.
package workflow
