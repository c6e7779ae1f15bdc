// Package timer has the events of timers come to their instances.
//
//	instance ──commit: record, row of the timer──► store
//	    ▲                                            │ rows in the order of their deadlines
//	    └──── Fire ◄── goroutine of the shard ◄──────┘
//
// A timer is a part of its instance, which alone decides what it means; the row beside it says when to look. A
// goroutine for each shard reads the rows that are due, a few at a time, and waits for them: so what comes by
// itself leaves room for callers. It keeps no timer in memory but those that could not be taken.
//
// # What the caller must do
//
// Call Began when a timer has begun and its row is visible. Fire calls done when the row is gone, or with the
// reason why it is still there. Stop before the store is closed.
//
// # What is promised
//
// Nothing comes before its deadline by the clock, and nothing twice: the row goes in the commit of the event. After
// a start what is overdue comes in the order of the deadlines.
package timer
