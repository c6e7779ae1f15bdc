package commit

import (
	"sync/atomic"

	"troupe/persistence/internal/engine"
)

// Ticket is a set of writes on its way to the disk, or with an empty batch a place in the queue. It is part of its
// owner, so that it costs no allocation.
type Ticket struct {
	Owner Owner
	Batch engine.Batch
	DB    *engine.Generation // that the batch was made for

	// Announces: Place has rows.
	Announces bool

	// Waiter is told how it ends. It is set before Append, and so are:
	// Ungated: the writes are accepted whatever the gate says. Unsynced: nobody waits for a sync of them.
	Waiter            Waiter
	Ungated, Unsynced bool

	refusal error // why the writes were not accepted; nil when they were
	since   int64 // when Append was called, on the watchdog's clock

	// state says who may call the waiter; see the constants at queue.
	state atomic.Uint32
}

// Owner is what a ticket is part of.
type Owner interface {
	// Place is called in the order in which the writes become visible, before the batch is applied. Each call returns one
	// more row that belongs to them and whose key shows that order, or a nil key. Both are valid until Recycle.
	Place() (key, value []byte)
	// Recycle is called when nobody uses the ticket any more.
	Recycle()
}

// Waiter is told how an Append or a Barrier ended.
type Waiter interface {
	// Committed is called exactly once. Nil means: durable. It is called by the committer or the watchdog, never two
	// at a time, in the order of the calls of Append; after Close it is called within Append. It must not block:
	// every other commit waits meanwhile.
	Committed(err error)
}

// VisibleWaiter is a Waiter that is also told when every reader sees what it waits for.
type VisibleWaiter interface {
	Waiter
	// Applied is called once, by the applier, before Committed. It is not called when the changes were refused. While
	// the disk is stuck it may come after Committed, and what writes nothing may not get it at all. It must not block.
	Applied()
}

// changes reports whether there is anything that could be applied, and writes whether it may be.
func (t *Ticket) changes() bool { return t.Announces || t.Batch.Count() > 0 }
func (t *Ticket) writes() bool  { return t.refusal == nil && t.changes() }

// Reset makes the ticket that of an empty batch.
func (t *Ticket) Reset() {
	t.Batch.Reset()
	t.Waiter, t.refusal, t.Ungated, t.Unsynced, t.Announces = nil, nil, false, false, false
	t.state.Store(waiting)
}

// answer calls the waiter of t unless somebody else has. It says whether it did.
func answer(t *Ticket, err error) bool {
	if !t.state.CompareAndSwap(waiting, answering) {
		return false
	}
	t.Waiter.Committed(err)
	t.state.Store(answered)
	return true
}
