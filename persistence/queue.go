package persistence

import "sync"

// The states of a ticket. Whoever moves it from waiting to answering calls the
// waiter; nobody else ever does.
const (
	waiting   uint32 = iota // nobody has answered yet
	answering               // somebody is inside Committed
	answered                // Committed has returned
)

// queue holds the tickets of all running Appends in the order of their calls.
//
// The goal: every waiter is called exactly once, in order, never two at a time,
// by a committer that waits for syncs, and when the disk hangs by the watchdog
// instead. A lock around the calls would do, but then a slow waiter would hold
// up every Append. So the tickets have states:
//
//  1. The committer walks the tickets in order. It waits for a ticket's sync and
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
	// wake holds a token while the committer has something to look at.
	wake chan struct{}

	mu struct {
		sync.Mutex
		pending []*Writes     // not taken by the committer yet, oldest first
		busy    []*Writes     // taken by the committer; it alone changes the slice
		closed  bool          // push refuses
		sweep   chan struct{} // closed when the running sweep is over; nil without one
	}
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// push adds a ticket at the end. It is false when the queue is closed.
func (q *queue) push(t *Writes) bool {
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

// close makes push refuse and, once all tickets are answered, take end.
func (q *queue) close() {
	q.mu.Lock()
	q.mu.closed = true
	q.mu.Unlock()
	q.signal()
}

// take waits for tickets and gives them to the committer, which must release
// them. It is false when the queue is closed and empty.
func (q *queue) take() ([]*Writes, bool) {
	for {
		q.mu.Lock()
		if len(q.mu.pending) > 0 {
			q.mu.busy, q.mu.pending = q.mu.pending, q.mu.busy[:0]
			busy := q.mu.busy
			q.mu.Unlock()
			return busy, true
		}
		closed := q.mu.closed
		q.mu.Unlock()
		if closed {
			return nil, false
		}
		<-q.wake
	}
}

// release ends the committer's hold on the tickets of the last take and gives
// their memory back. All of them are answered, so a sweep that begins later
// does not see them; one that is running may still read their states.
func (q *queue) release() {
	q.mu.Lock()
	done := q.mu.busy
	q.mu.busy = q.mu.busy[:0]
	seen := q.mu.sweep != nil
	q.mu.Unlock()
	for i, t := range done {
		if !seen {
			t.recycle()
		}
		done[i] = nil
	}
}

// empty says whether no ticket is left, also none that the watchdog has answered: all
// that was applied is durable.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.mu.pending) == 0 && len(q.mu.busy) == 0
}

// length is the number of tickets, those being answered included.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.mu.pending) + len(q.mu.busy)
}

// beginSweep returns all tickets in order. endSweep must follow.
func (q *queue) beginSweep() []*Writes {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.sweep = make(chan struct{})
	tickets := make([]*Writes, 0, len(q.mu.busy)+len(q.mu.pending))
	return append(append(tickets, q.mu.busy...), q.mu.pending...)
}

func (q *queue) endSweep() {
	q.mu.Lock()
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

// answer calls the waiter of t unless somebody else has. It says whether it did.
func answer(t *Writes, err error) bool {
	if !t.state.CompareAndSwap(waiting, answering) {
		return false
	}
	t.waiter.Committed(err)
	t.state.Store(answered)
	return true
}
