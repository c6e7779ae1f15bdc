package endtoend

import (
	"sync"

	"github.com/stretchr/testify/require"
)

// gate lets workers through while a program is running, and stops them while it
// is killed, started again and checked:
//
//	open ──► (killed) ──► shut: all workers stand still ──► open ──► … ──► end
type gate struct {
	mu struct {
		sync.Mutex
		address string // of the running program
		run     int    // counts the programs
		isOpen  bool
		ended   bool // open for the last time: who has nothing pending leaves
		waiting int  // workers that stand still
	}
	changed *sync.Cond // any field of mu
}

func newGate() *gate {
	g := &gate{}
	g.changed = sync.NewCond(&g.mu)
	return g
}

// open lets the workers on to a program that is ready.
func (g *gate) open(p *program) {
	address, err := p.log.listening()
	require.NoError(p.t, err)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.address, g.mu.isOpen = address, true
	g.mu.run++
	g.changed.Broadcast()
}

// shut returns when all workers stand still, so that nothing is under way.
func (g *gate) shut(workers int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.isOpen = false
	for g.mu.waiting < workers {
		g.changed.Wait()
	}
}

// end lets the workers leave: those with a pending request when it is definite,
// or when it got no answer from the program that runs last.
func (g *gate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.isOpen, g.mu.ended = true, true
	g.changed.Broadcast()
}

// pass waits until the gate is open to another program than the one that
// failed. It is false when the worker shall leave.
func (g *gate) pass(failed int, pending bool) (address string, run int, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.waiting++
	g.changed.Broadcast()
	for !g.mu.isOpen || g.mu.run == failed && !g.mu.ended {
		g.changed.Wait()
	}
	g.mu.waiting--
	return g.mu.address, g.mu.run, !g.mu.ended || pending && g.mu.run != failed
}

// work is the life of a worker.
func (g *gate) work(w *worker) {
	defer w.link.close()
	failed := 0
	for {
		address, run, ok := g.pass(failed, w.pending != nil)
		if !ok {
			break
		}
		if w.step(address) == unknown {
			failed = run // it is asked again when the program is back
		}
	}
	if w.pending != nil {
		w.ledger.violated("%s got no answer from a program that nobody killed", w.pending.key)
	}
}
