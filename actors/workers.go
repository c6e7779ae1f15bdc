package actors

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// workersKept is how many workers wait for the next message while there is none. Under
// load there are about as many as processors; more only while the disk is slow.
const workersKept = 64

// workers is a protoactor dispatcher whose goroutines are used again. A new goroutine
// for each message begins with a small stack, which grows step by step on the way to
// the store: that was 3 of 70 µs of an event.
type workers struct {
	// jobs has no room: a job is handed to a worker that waits.
	jobs chan func()
	idle atomic.Int32
	quit chan struct{}
}

func newWorkers() *workers {
	return &workers{jobs: make(chan func()), quit: make(chan struct{})}
}

var _ actor.Dispatcher = (*workers)(nil)

// Schedule implements actor.Dispatcher. It never waits.
func (w *workers) Schedule(job func()) {
	select {
	case w.jobs <- job:
	default:
		go w.work(job)
	}
}

// Throughput is how many messages of one actor are handled before others get a turn.
func (*workers) Throughput() int { return 300 }

func (w *workers) work(job func()) {
	for {
		job()
		if w.idle.Add(1) > workersKept {
			w.idle.Add(-1)
			return
		}
		select {
		case job = <-w.jobs:
			w.idle.Add(-1)
		case <-w.quit:
			return
		}
	}
}
