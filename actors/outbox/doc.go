// Package outbox sends what instances send out: to webhooks, as mails, and to their children and parents.
//
//	instance ──commit: record, delivery, next attempt──► store
//	    ▲                                                  │ attempts in the order of their times
//	    └── outcome ◄── attempt ◄── goroutine of the shard ◄┘
//
// A delivery is a row of its instance's shard; so is its next attempt, by workflow, queue and time. A queue is a
// webhook's name, that of mails, or of messages to children and to the parent (package child). The deliveries of one instance and queue leave one after the other; all others
// do not wait for each other, but for their host, which gets 8 requests at a time.
//
// # What is promised
//
// What was committed leaves when it is durable, at least once, with the same id each time, until it is delivered or dead. An outcome is
// told in the commit that ends the delivery.
package outbox
