package signal

import (
	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/fault"
)

// Raised is an event that the machine itself has raised.
type Raised struct {
	Name chart.EventName
	Data data.Value
	Done *chart.Node // the node whose completion raised it; nil for all others
	// Fault is why, of error.execution; nil for all others.
	Fault  *fault.Fault
	Signal Signal
}

// Queue is SCXML's internal queue.
type Queue struct {
	events []Raised
	head   int // the first one
	bytes  int // of their data
}

// Put adds an event behind the others, or returns the bound that it passes.
func (q *Queue) Put(e Raised) error {
	q.bytes += len(e.Data)
	switch {
	case q.bytes > fault.MaxWaitingBytes:
		return fault.ErrTooMuchWaits
	case len(q.events)-q.head >= fault.MaxWaiting:
		return fault.ErrTooManyWait
	}
	q.events = append(q.events, e)
	return nil
}

// IsEmpty reports whether nothing waits.
func (q *Queue) IsEmpty() bool { return q.head == len(q.events) }

// Take removes the first event.
func (q *Queue) Take() Raised {
	e := q.events[q.head]
	q.events[q.head] = Raised{} // its data is not kept until the queue is empty
	q.bytes -= len(e.Data)
	q.head++
	if q.head == len(q.events) {
		q.events, q.head = q.events[:0], 0
	}
	return e
}

// Waiting are the events that wait.
func (q *Queue) Waiting() []Raised { return q.events[q.head:] }

// Drop removes all events.
func (q *Queue) Drop() {
	clear(q.events)
	*q = Queue{events: q.events[:0]}
}

// Emptied is a queue with the room of this one, unless that is large.
func (q *Queue) Emptied() Queue {
	const kept = 64
	if cap(q.events) > kept {
		return Queue{}
	}
	clear(q.events[:cap(q.events)])
	return Queue{events: q.events[:0]}
}
