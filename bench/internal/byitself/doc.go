// Package byitself measures what instances do by themselves, in a server that is a process of its own.
//
// Pending: so many timers that are not due, and beside it a store of as many instances without any: how long a start takes,
// and how much memory the process has then.
//
// Storm: so many timers that are due at the same moment, while other instances get events all the time: how fast
// the timers come, and what callers notice.
//
// Outbox: so many deliveries to a receiver that is away, then it comes, and the server is killed again and again until all
// have arrived. It demands that each has arrived at least once, those of one instance in their order, and always under the same
// id.
//
// Children: so many instances that have a child each, half of which leave it, and the server is killed again and again while children
// are created, answer and are cancelled. It demands that nobody has two, that all of them have ended, and that each
// parent that stayed was told once.
//
// Tasks: so many open tasks for one role of a user who has five, and how long lists of 50 take in each scope and order.
//
// What it finds otherwise ends it with an error.
package byitself
