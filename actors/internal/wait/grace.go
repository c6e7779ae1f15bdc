package wait

import (
	"sync"
	"sync/atomic"
)

const slots = 16

// Period waits for the readers of a value that was replaced. A reader enters, loads a pointer, works with what it
// found, and leaves. A writer replaces the pointer and calls Wait, which returns when every reader that entered before
// has left. A reader never waits, not even while a writer does, so it may do I/O before it leaves. That is what a lock
// cannot give: behind a writer that waits for a lock, new readers queue up. The zero value is ready. Its methods are
// safe for concurrent use.
type Period struct {
	// Its readers are counted in readers[epoch%2]; the other row belongs to the epoch before and is zero when no Wait
	// is on its way.
	epoch    atomic.Uint64
	readers  [2][slots]counter
	draining atomic.Bool // draining says that a Wait looks for an entry of left after its row has changed

	// The channels are made by make, once. turn has room for one Wait at a time. NB: a mutex would keep the clock of a
	// test that uses synctest from going on while another Wait is on its way.
	once sync.Once
	turn chan struct{}
	left chan struct{} // see changed
}

type counter struct {
	n atomic.Int64
	_ [56]byte
}

// Reader is one that has entered.
type Reader struct{ in *counter }

// Enter begins a read. Readers with different hints do not contend. Leave must follow, on any goroutine.
func (p *Period) Enter(hint uint16) Reader {
	for {
		epoch := p.epoch.Load()
		r := Reader{&p.readers[epoch%2][hint%slots]}
		r.in.n.Add(1)
		if p.epoch.Load() == epoch {
			return r
		}
		p.Leave(r) // NB: a Wait may have looked at the counter already
	}
}

// Leave ends a read.
func (p *Period) Leave(r Reader) {
	if r.in.n.Add(-1) == 0 && p.draining.Load() {
		select {
		case p.changed() <- struct{}{}:
		default:
		}
	}
}

// Wait returns when every reader has left that entered before the call. The caller must not be one.
func (p *Period) Wait() {
	p.make()
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	p.draining.Store(true)
	defer p.draining.Store(false)
	before := &p.readers[(p.epoch.Add(1)-1)%2]
	for i := range before {
		for before[i].n.Load() != 0 {
			<-p.changed()
		}
	}
}

func (p *Period) changed() chan struct{} {
	p.make()
	return p.left
}

func (p *Period) make() {
	p.once.Do(func() { p.turn, p.left = make(chan struct{}, 1), make(chan struct{}, 1) })
}
