// Package actors holds everything in troupe that is alive: who owns what, and
// who may change it.
//
//	service
//	├─ shard-0 … shard-n           shard.Shards. One actor for each shard that this node leads; its life is the epoch
//	│   └─ instances               instance.Actor, by their ids: started, watched, restarted and ended by the shard's actor
//	├─ form portal ── workers      formportal.Portal
//	├─ template ── workers         template.Service
//	└─ files ── workers            repository.Service
//
// The running program prints it, with counts: System.Tree.
//
// Every workflow instance that is awake is one protoactor actor, a child of its shard's. It alone reads
// and changes the instance's state. It is started when the first request comes and passivated when it was idle, or
// when instances in memory take too much. When the epoch of the shard ends, its instances end, and then the
// shard's actor: nothing that waits in a mailbox is dropped.
//
//	gateway ──► workflow.Router ──► shard.Shards ──► instance.Actor ──► statemachine.Step
//	             who may ask         where it is      what it does      │
//	             before the mailbox                                     └─► persistence.Store
//
// Beside the actors stand identity.Service, which is the one writer of credentials, and home.Watcher, which
// follows the text files.
//
// # Packages
//
// Each imports only what stands below it; treecheck holds that.
//
//	home
//	formportal   presentation   migration      template
//	workflow                                   repository
//	shard                                        │
//	instance                                     │
//	message   pace   deletion   activity         │
//	task   form   watch   pending                │
//	changefeed   outbox   timer   schedule       │
//	invoke                                       │
//	query   child   incident                     │
//	catalog                                      │
//	quota                                      internal/supervise
//	failure   identity   internal/…
//	guard
//
// cluster, the node of a cluster, imports failure, guard and its port, cluster/peer, which imports guard alone.
//
// # Actors and goroutines
//
//	name                  owner              after a panic  ends with
//	portal supervisor     formportal.Portal  protoactor     Portal.Stop
//	portal worker         its supervisor     answers        its request
//	template supervisor   template.Service   protoactor     Service.Stop
//	template worker       its supervisor     answers        its request
//	files supervisor      repository.Service protoactor     Service.Stop
//	files worker          its supervisor     answers        its request
//	files index           repository.Service again          Service.Stop
//	files watch           repository.Service looks          Service.Stop
//	notices of the disk   disk.Disk          ends           Disk.Close
//	shard actor           shard.Shards       answers        the end of its epoch, or Router.Stop
//	instance actor        its shard's actor  restarts       sweep, relief, or the end of the epoch
//	router sweep          workflow.Router    round          Router.Stop
//	router cleaner        workflow.Router    round          Router.Stop
//	trimming of changes   workflow.Router    round          Router.Stop
//	memory relief         shard.Shards       round          Router.Stop
//	index builder         workflow.Router    again          Router.Stop
//	timers of a shard     timer.Service      again          Router.Stop
//	sender of a shard     outbox.Service     again          Router.Stop
//	attempt of a delivery outbox.Service     failed         its answer, or Router.Stop
//	schedules             schedule.Service   round          Router.Stop
//	runs of a schedule    schedule.Service   failed         its last run that is due, or Router.Stop
//	writing of incidents  incident.Service   again          Router.Stop
//	slow match            watch.Service      caller         its call of Watch
//	identity flush        identity.Service   ends           Service.Stop
//	home watch            home.Watcher       again          Watcher.Stop
//	home followers, two   home.Watcher       round          Watcher.Stop
//	published home        home.Published     round          Published.Stop
//	greeting, and four    cluster.Node       round          Node.Stop
//	tending of a shard    cluster.Node       again          the end of its leadership, or Node.Stop
//	cluster port, Accept  peer.Port          again          Port.Stop
//	handshake of a node   peer.Port          closes         5.5 s, or Port.Stop
//	calls and joins, two  peer.Port          ends           Port.Stop
//	journal applier       persistence.Store  ends           Store.Close
//	journal committer     persistence.Store  ends           Store.Close
//	store watchdog        persistence.Store  ends           Store.Close
//	store space loop      persistence.Store  ends           Store.Close
//	integrity recorder    persistence.Store  ends           Store.Close
//	proposer of a shard   replica.Group      ends           Store.Close, Store.Leave
//	finisher of a shard   replica.Group      ends           Store.Close, Store.Leave
//	leadership of a shard replica.Group      ends           Store.Close, Store.Leave
//	trimming of a log     replica.Group      ends           Store.Close, Store.Leave
//	checking of messages  replica.transport  ends           Store.Close, Store.Leave
//	gateway, serving      gateway.Server     ends           Server.Stop
//	gateway, places       gateway.Server     again          Server.Stop
//	admin socket          admin.Server       ends           Server.Stop
//	operations listener   admin.Operations   ends           Operations.Stop
//
// Every other goroutine is net/http's own, one for each connection, or Pebble's or Raft's, or ends by
// itself soon: one that handles the messages of a busy instance, one for a create of a batch that
// waits for another with its key, one that reads the lines of a batch, and those that ask other nodes or
// migrate instances for a request.
//
// # Panics
//
// What the third column says, and what holds it:
//
//	answers     the request gets an error, and the others go on
//	restarts    the request gets an error; the actor drops its state, its parent restarts it, and it reads the state again
//	            from the store with the next request: what was not durable then was not acknowledged either. After more than ten panics
//	            within a minute the instance rests for a minute: callers are answered at once, and an incident says so.
//	protoactor  it has no state but its workers, and protoactor calls it again
//	again       it is logged, counted (Recovered, of the metrics of workflows) and begun anew, after 1 s at first and
//	            1 min at last (package guard). All that it knows it reads again from the store.
//	round       it is logged and counted, and the next round comes as if nothing was (package guard)
//	failed      what it was about has failed: a delivery is tried again and is at last a dead letter, a
//	            run of a schedule is made with the next look at the clock
//	looks       changes of the files are found by looking from then on
//	closes      the connection is closed
//	caller      it goes on in the goroutine that waits, which is a request
//	ends        the process ends on purpose. It alone knows what is not durable yet (the journal, the one writer of
//	            credentials), or may have left a shard between two states that must not be mixed (Raft), or
//	            only hands connections to others. The next start reads what is there.
//
// Goroutines that ask other nodes end the process as well. One that migrates an instance for a request, and a create of a batch,
// answer with an error.
//
// # Glossary
//
// Words that have a meaning of their own here. Those of a chart are W3C SCXML's;
// statemachine/DEFINITION.md, "Semantics" has them in full.
//
//	home                  the folder with a server's text files and its store
//	workflow              all versions of one definition; it has an id
//	definition            one version of a workflow: machines, data, rights
//	current version       the definition that new instances get
//	instance              one run of a definition: a record and a history
//	record                an instance as it is now: positions, svcPublic, svcPrivate
//	history entry         who moved an instance, by which event, from where to where
//	position              a machine of an instance and a node that is active in it
//	macrostep             all that one event causes, until no transition without an
//	                      event is left to take; it leaves one history entry
//	microstep             transitions that are taken at once; a macrostep has many
//	unmatched             an event that the definition declares and no transition
//	                      takes now; "unmatched" says what becomes of it
//	activation            an instance in memory: its actor, mailbox and callers
//	rest                  a minute in which an instance that panicked again and again is not woken
//	passivation           an activation leaves memory, because nobody asked for it or
//	                      memory is short; the instance stays in the store
//	in-flight key         an idempotency key whose first request is still running
//	batch                 many requests of a caller in one (POST workflow/api/v1/events). Of the
//	                      store: what one Append takes, all of it or nothing; or Pebble's, which
//	                      joins those of many
//	item                  one request of a batch
//	window                the items of a batch that are on their way. Of bench: the time measured
//	place                 the room of one request among all that are worked on at once
//	round                 the time between two sweeps of the router, a second. Of bench: each
//	                      target measured once, in turn
//	form                  an instance made from a template: besides its record it has
//	                      an owner, a draft for each user, and when it was submitted.
//	                      Its kind is form or checklist
//	template              a file that describes a form or a checklist. A template of
//	                      the repository is a report or a document with parameters
//	plain form            a form that belongs to no workflow
//	form of a task        a template that a task names: what is filled in becomes the data of one of
//	                      the task's events, and no instance is made
//	task                  work for people that an instance waits for, while a node is active; it begins
//	                      when the node is entered
//	candidate             who may take a task over
//	claim                 a candidate takes a task over and is its assignee; it holds others back
//	bring on, decide      to send an event that a transition of the task's own node takes and leaves it by
//	worklist              the rows of the open tasks for a role, a privilege, a user or everybody, of those
//	                      that a user has, and of those that a user has decided
//	activity              what happened to an instance in one order: history entries, comments, claims,
//	                      and what waits
//	feed                  the latest history entries in memory, which watchers follow
//	feed of changes       rows in the store that say which instance has a new entry, in the
//	                      order of the commits of a shard
//	lost                  what a watcher is told when no feed has what it missed
//	credential            a token or a session
//	privilege             a right that the interface asks for, such as mod-form; roles
//	                      give privileges, and workflows name roles
//	node                  a server of a cluster; its id stays when its address changes
//	authority             the key of a cluster that signs the certificates of its nodes
//	stream                a connection between two nodes for one shard
//	shard                 a range of keys; an instance lies wholly in one
//	replica               a node's copy of a shard
//	group                 the replicas of a shard, which have one log (Raft); one of them
//	                      leads. Of the journal: tickets that share one batch of Pebble's
//	                      and one sync
//	epoch                 the time in which one node leads a shard without a break
//	journal               the store as the writers see it: Append takes writes, and their
//	                      waiter is told when they are durable
//	ticket                what one Append takes, in the queue of the journal. The committer
//	                      answers tickets in their order, or the watchdog when it takes too
//	                      long
//	applier               the goroutine that joins what many have appended into one batch
//	                      of Pebble's, and makes it visible
//	group commit          one fsync that makes the batches of many instances durable
//	backlog               the bytes that were appended and are not durable yet
//	generation            one opening of the store's database; a set that is replaced as a
//	                      whole, such as all indexes or the tree of files
//	durable               on the disk: no crash takes it back
//	AwaitDurable          returns when everything that a reader can see is durable
//	durability watermark  up to which write the store is durable
//	WAL stamp             the watermark as each record of the log carries it
//	integrity checkpoint  the file that says what was durable, for the next start
//	outcome unknown       an answer did not come in time: the request was applied or
//	                      not; repeating it with its key tells
package actors
