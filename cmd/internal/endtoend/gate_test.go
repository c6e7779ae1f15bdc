package endtoend

import (
	"math/rand/v2"
	"sync"
	"time"
)

// gate lets workers through while a program is running, and stops them while it
// is killed, started again and checked:
//
//	open ──► (killed) ──► shut: all workers stand still ──► open ──► … ──► end
//
// Those of a cluster do not wait for a node that gave no answer, they ask another one.
type gate struct {
	pace time.Duration // the pause after a request
	mu   struct {
		sync.Mutex
		addresses []string // of the program that runs, or of the nodes
		asked     []int    // requests that wait for an answer, by address
		run       int      // counts the programs
		isOpen    bool
		ended     bool // open for the last time: who has nothing pending leaves
		waiting   int  // workers that stand still
	}
	changed *sync.Cond // any field of mu
}

func newGate() *gate {
	g := &gate{}
	g.changed = sync.NewCond(&g.mu)
	return g
}

// open lets the workers on to a program that is ready.
func (g *gate) open(addresses ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.addresses, g.mu.asked, g.mu.isOpen = addresses, make([]int, len(addresses)), true
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
func (g *gate) pass(failed int, pending bool) (run int, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.waiting++
	g.changed.Broadcast()
	for !g.mu.isOpen || g.mu.run == failed && !g.mu.ended {
		g.changed.Wait()
	}
	g.mu.waiting--
	return g.mu.run, !g.mu.ended || pending && g.mu.run != failed
}

// choose returns one of two nodes, the one that has fewer requests to answer, as balancers do: or all
// workers would soon wait for a node that is ill. It is not the one at not.
func (g *gate) choose(random *rand.Rand, not int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	count := len(g.mu.addresses)
	if count == 1 {
		return 0
	}
	a := random.IntN(count)
	b := (a + 1 + random.IntN(count-1)) % count
	if a == not || b != not && g.mu.asked[b] < g.mu.asked[a] {
		return b
	}
	return a
}

// asks notes that a request goes to an address, or that it has ended.
func (g *gate) asks(node, change int) (address string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.asked[node] += change
	return g.mu.addresses[node]
}

func (g *gate) work(w *worker) {
	defer w.link.close()
	failed, node := 0, -1
	for {
		run, ok := g.pass(failed, w.pending != nil)
		if !ok {
			break
		}
		if node < 0 || w.inCluster && w.random.IntN(10) == 0 {
			node = g.choose(w.random, -1)
		}
		end := w.step(g.asks(node, 1))
		g.asks(node, -1)
		switch {
		case end != unknown:
		case w.inCluster:
			node = g.choose(w.random, node)
		default:
			failed = run // it is asked again when the program is back
		}
		pause(g.pace)
	}
	if w.pending != nil {
		w.ledger.violated("%s got no answer from a program that nobody killed", w.pending.key)
	}
}
