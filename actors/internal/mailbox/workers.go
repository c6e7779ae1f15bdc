package mailbox

import "sync/atomic"

// workersKept is how many workers wait for the next mailbox while there is none. A batch
// needs as many as it has instances, single requests about as many as processors, and more
// only while the disk is slow.
const workersKept = 256

// Workers are the goroutines that empty mailboxes. A new goroutine for each message
// begins with a small stack, which is copied into a larger one step by step on the way
// to the store: that was 3 of 70 µs of an event. These are used again.
type Workers struct {
	// full has no room: a mailbox is handed to a worker that waits.
	full chan *Mailbox
	idle atomic.Int32
	quit chan struct{}
}

// NewWorkers returns workers that do nothing yet.
func NewWorkers() *Workers { return &Workers{full: make(chan *Mailbox), quit: make(chan struct{})} }

// Stop ends the workers that wait, and the others when their mailbox is empty. It is
// called once.
func (w *Workers) Stop() { close(w.quit) }

// empty has a mailbox emptied soon. It never waits.
func (w *Workers) empty(m *Mailbox) {
	select {
	case w.full <- m:
	default:
		go w.work(m)
	}
}

func (w *Workers) work(m *Mailbox) {
	for {
		m.process()
		if w.idle.Add(1) > workersKept {
			w.idle.Add(-1)
			return
		}
		select {
		case m = <-w.full:
			w.idle.Add(-1)
		case <-w.quit:
			return
		}
	}
}
