// Package activity is what has happened to an instance, in one order: its history, and beside it comments, claims of
// tasks, and what waits.
//
// A row stands behind the history entry that was the last one when it was written, so comments and claims change
// neither the history nor its sequence numbers. Timers have not come yet: they are the newest. Deliveries stand behind
// the entry that sent them, as long as they have not arrived.
package activity
