package persistence_test

import (
	"maps"
	"sync"

	"troupe/persistence/key"
)

// workload appends events to instances like the program does: one writer each,
// a few commits in flight, the next event built on top of one that is not
// durable yet.
type workload struct {
	instances int // writers
	from      int // events of each that are there already
	events    int // of each, those included
	window    int // commits in flight of each
	padding   int // bytes of an event

	mu struct {
		sync.Mutex
		acked   ledger
		covered ledger // acknowledged before the last Append was called
	}
}

func newWorkload(instances, events int) *workload {
	w := &workload{instances: instances, events: events, window: 4, padding: 400}
	w.mu.acked = ledger{}
	return w
}

// acked returns what is acknowledged by now.
func (w *workload) acked() ledger {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.mu.acked)
}

// covered returns what was acknowledged before the last Append: the log itself
// says of all that that it was durable.
func (w *workload) covered() ledger {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.mu.covered)
}

// run appends everything, or until goOn is false, and waits for the answers.
func (w *workload) run(j journal, goOn func() bool) {
	var wg sync.WaitGroup
	for n := range w.instances {
		wg.Go(func() { w.write(j, n, goOn) })
	}
	wg.Wait()
}

func (w *workload) write(j journal, n int, goOn func() bool) {
	id, sh := instance(n)
	slots := make(chan struct{}, w.window)
	for seq := uint64(w.from) + 1; seq <= uint64(w.events) && goOn(); seq++ {
		slots <- struct{}{}
		w.mu.Lock()
		w.mu.covered = maps.Clone(w.mu.acked)
		w.mu.Unlock()
		e := event{Shard: sh, Instance: id, Seq: seq, Padding: w.padding}
		j.appendEvent(e, eventAck{w: w, id: id, seq: seq, slots: slots})
	}
	for range w.window { // until the last answer is there
		slots <- struct{}{}
	}
}

// eventAck notes an acknowledged event in the ledger.
type eventAck struct {
	w     *workload
	id    key.ID
	seq   uint64
	slots chan struct{}
}

func (a eventAck) Committed(err error) {
	if err == nil {
		a.w.mu.Lock()
		a.w.mu.acked[a.id] = a.seq
		a.w.mu.Unlock()
	}
	<-a.slots
}
