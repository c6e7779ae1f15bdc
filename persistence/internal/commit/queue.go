package commit

import (
	"slices"
	"sync"
)

// The states of a ticket. Anyone who moves it from waiting to answering calls the waiter; nobody else ever does.
const (
	waiting   uint32 = iota // nobody has answered yet
	answering               // somebody is inside Committed
	answered                // Committed has returned
)

// queue holds the tickets of all running Appends in the order of their calls.
//
// The goal: every waiter is called exactly once, in order, never two at a time, by a committer that waits for syncs,
// and when the disk hangs by the watchdog instead. A lock around the calls would do, but then a slow waiter would hold
// up every Append. So the tickets have states:
//
//  1. The committer walks the tickets in order. It waits for the sync of a ticket's group and
//     moves it from waiting to answering.
//  2. The watchdog walks the same tickets in order. It passes those answered,
//     stops at one that the committer is answering, and takes over the first one
//     that waits too long, and the ones behind it.
//  3. A committer that finds a ticket taken waits until that sweep is over. It
//     cannot have passed the ticket before, so the two are never at work at once.
//
// Tickets are used again, so a sweep would see a ticket change under it. Those
// released while a sweep is running are left to the garbage collector.
type queue struct {
	// wake holds a token while the applier has something to look at.
	wake chan struct{}

	mu struct {
		sync.Mutex
		pending []*Ticket     // not in a group yet, oldest first
		groups  []*group      // taken and not released, oldest first
		closed  bool          // push refuses
		sweep   chan struct{} // closed when the running sweep is over; nil without one
	}
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// push adds a ticket at the end. It is false when the queue is closed.
func (q *queue) push(t *Ticket) bool {
	q.mu.Lock()
	if q.mu.closed {
		q.mu.Unlock()
		return false
	}
	q.mu.pending = append(q.mu.pending, t)
	first := len(q.mu.pending) == 1
	q.mu.Unlock()
	if first {
		q.signal()
	}
	return true
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// close makes push refuse and, once no ticket is pending, take end.
func (q *queue) close() {
	q.mu.Lock()
	q.mu.closed = true
	q.mu.Unlock()
	q.signal()
}

// take waits for tickets and moves the oldest into g, as many as are enough. It is false
// when the queue is closed and empty.
func (q *queue) take(g *group) bool {
	for {
		q.mu.Lock()
		if n := q.enough(); n > 0 {
			g.tickets = append(g.tickets, q.mu.pending[:n]...)
			q.mu.pending = slices.Delete(q.mu.pending, 0, n)
			q.mu.groups = append(q.mu.groups, g)
			q.mu.Unlock()
			return true
		}
		closed := q.mu.closed
		q.mu.Unlock()
		if closed {
			return false
		}
		<-q.wake
	}
}

// enough is how many of the pending tickets make a group.
func (q *queue) enough() int {
	bytes := 0
	for n, t := range q.mu.pending {
		if bytes += t.Batch.Len(); n > 0 && bytes > groupBytesMax || n == groupTicketsMax {
			return n
		}
	}
	return len(q.mu.pending)
}

// release ends the hold on the tickets of the oldest group and gives their memory back. All of them are answered, so a
// sweep that begins later does not see them; one that is running may still read their states.
func (q *queue) release(g *group) {
	q.mu.Lock()
	q.mu.groups = slices.Delete(q.mu.groups, 0, 1)
	if q.mu.sweep == nil {
		for _, t := range g.tickets {
			t.Owner.Recycle()
		}
	}
	clear(g.tickets)
	g.tickets = g.tickets[:0]
	q.mu.Unlock()
}

// empty says whether no ticket is left, also none that the watchdog has answered: all that was appended is durable.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.mu.pending) == 0 && len(q.mu.groups) == 0
}

// length is the number of tickets, those being answered included.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.ticketsLocked())
}

// oldest is when the first ticket was appended, on the watchdog's clock; zero without one.
func (q *queue) oldest() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case len(q.mu.groups) > 0:
		return q.mu.groups[0].tickets[0].since
	case len(q.mu.pending) > 0:
		return q.mu.pending[0].since
	}
	return 0
}

// ticketsLocked returns all tickets in order.
func (q *queue) ticketsLocked() (tickets []*Ticket) {
	for _, g := range q.mu.groups {
		tickets = append(tickets, g.tickets...)
	}
	return append(tickets, q.mu.pending...)
}

// beginSweep returns all tickets in order. endSweep must follow.
func (q *queue) beginSweep() []*Ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.sweep = make(chan struct{})
	return q.ticketsLocked()
}

// endSweep also drops tickets that are answered and write nothing: while a disk hangs there
// would be more of them all the time.
func (q *queue) endSweep() {
	q.mu.Lock()
	q.mu.pending = slices.DeleteFunc(q.mu.pending, func(t *Ticket) bool { return t.state.Load() == answered && !t.writes() })
	close(q.mu.sweep)
	q.mu.sweep = nil
	q.mu.Unlock()
}

// awaitSweep returns when no sweep is running.
func (q *queue) awaitSweep() {
	q.mu.Lock()
	running := q.mu.sweep
	q.mu.Unlock()
	if running != nil {
		<-running
	}
}
