// Package actors holds everything in troupe that is alive: who owns what, and
// who may change it.
//
//	           gateway
//	              │ calls
//	   ┌──────────┴───────────┐
//	formportal.Portal    identity.Service     home.Watcher
//	   │ mailbox              │ (one writer)      │ (text files)
//	   ▼                      │                   ▼
//	supervisor ─► workers     │       formportal.Templates, workflow.Catalog
//	   │                      │                   │
//	workflow.Router           │                   │
//	   │ mailbox              ▼                   │
//	   ▼               persistence.Store ◄────────┘
//	instance actor …
//
// Beside the portal stand two more supervisors of the same kind: repository.Service
// has the files of the home, and template.Service reads them as the caller.
//
// Every workflow instance that is awake is one protoactor actor. It alone reads
// and changes the instance's state; it is started by the router when the first
// request comes and put to sleep by the router's sweep when it was idle.
//
// # Actors and goroutines
//
//	name                  owner              ends with
//	portal supervisor     formportal.Portal  Portal.Stop
//	portal worker         its supervisor     its request
//	template supervisor   template.Service   Service.Stop
//	template worker       its supervisor     its request
//	files supervisor      repository.Service Service.Stop
//	files worker          its supervisor     its request
//	files index           repository.Service Service.Stop
//	files watch           repository.Service Service.Stop
//	notices of the disk   disk.Disk          Disk.Close
//	instance actor        workflow.Router    sweep, or Router.Stop
//	router sweep          workflow.Router    Router.Stop
//	router cleaner        workflow.Router    Router.Stop
//	identity flush        identity.Service   Service.Stop
//	home watch            home.Watcher       Watcher.Stop
//	home followers, two   home.Watcher       Watcher.Stop
//	journal committer     persistence.Store  Store.Close
//	store watchdog        persistence.Store  Store.Close
//
// Every other goroutine is net/http's own, one for each connection.
//
// # Restart rules
//
// protoactor never restarts one of our actors: a panic in an instance actor is
// caught inside Receive, the request that caused it gets an error, the state in
// memory is dropped and read again from the store with the next request. What
// was not durable then was not acknowledged either.
package actors
