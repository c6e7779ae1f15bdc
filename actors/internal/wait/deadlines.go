package wait

import (
	"sync"
	"time"
)

// Deadlines ends many waits with one timer, which is that of the earliest. Its zero value has none. Its methods are safe for concurrent use.
type Deadlines struct {
	mu    sync.Mutex
	open  Heap[*Deadline]
	timer *time.Timer
}

// Deadline is the end of a wait. Over is closed when its time has come.
type Deadline struct {
	Over  chan struct{}
	at    time.Time
	place int // in the heap; -1: it is not there
}

// Time is when it comes.
func (of *Deadline) Time() time.Time { return of.at }

// Place implements Timed.
func (of *Deadline) Place() *int { return &of.place }

// NewDeadline returns a deadline that waits for Add.
func NewDeadline(at time.Time) *Deadline {
	return &Deadline{Over: make(chan struct{}), at: at, place: -1}
}

// Add has a deadline come. One that is there, or that has come, stays as it is.
func (d *Deadlines) Add(of *Deadline) {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-of.Over:
		return
	default:
	}
	if of.place >= 0 {
		return
	}
	if d.open.Put(of) {
		d.setLocked()
	}
}

// Remove has a deadline not come. It may be called again.
func (d *Deadlines) Remove(of *Deadline) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open.Remove(of)
	if d.open.Len() == 0 && d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// Len is how many there are.
func (d *Deadlines) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open.Len()
}

func (d *Deadlines) setLocked() {
	if d.timer != nil {
		d.timer.Stop()
	}
	d.timer = time.AfterFunc(time.Until(d.open.First().at), d.ring)
}

func (d *Deadlines) ring() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for d.open.Len() > 0 && !d.open.First().at.After(now) {
		of := d.open.First()
		d.open.Remove(of)
		close(of.Over)
	}
	if d.open.Len() > 0 {
		d.setLocked()
	}
}
