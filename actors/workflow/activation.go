package workflow

import (
	"errors"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"troupe/actors/failure"
	"troupe/persistence"
)

// activation is the router's side of one awake instance.
type activation struct {
	router   *Router
	instance *instance  // only its actor looks inside, but for what it is called
	pid      *actor.PID // written once, before the activation is in the map
	// epoch is that of the instance's shard in which the activation began; it writes and
	// answers in no other.
	epoch uint64

	// pending counts the calls that were admitted and not answered, and those whose outcome
	// is not known yet. closed is added to it, once, by whoever puts the instance to sleep.
	pending atomic.Int32
	// uncommitted counts what was handed to the journal and is not durable yet: writes, and
	// answers that wait for them. A reply that shows the state has to wait for it.
	uncommitted atomic.Int32
	// touched is the sweep's round in which it was used last.
	touched   atomic.Int64
	abandoned atomic.Bool
	// size is how many bytes of the instance's are counted in Router.memory.
	size atomic.Int64
}

const closed = -1 << 30

// errAsleep: the instance was put to sleep between looking it up and asking it;
// the router looks again. It never leaves the package.
var errAsleep = errors.New("instance is asleep")

// acquire admits one more call. It fails with errAsleep when the activation is no
// longer in the map, and with failure.ErrInstanceBusy above the limit.
func (a *activation) acquire() error {
	n := a.pending.Add(1)
	switch {
	case n <= 0:
		a.pending.Add(-1)
		return errAsleep
	case int(n) > a.router.o.InstanceInFlightMax:
		a.pending.Add(-1)
		return failure.ErrInstanceBusy
	}
	a.touched.Store(a.router.round.Load())
	return nil
}

// release is the end of a call that acquire admitted.
func (a *activation) release() {
	a.router.inFlight.Add(-1)
	if a.pending.Add(-1) == closed { // it was abandoned
		a.end()
	}
}

// barrier has waiter told when everything that the instance wrote is durable.
func (a *activation) barrier(waiter persistence.Waiter) {
	a.router.store.BarrierIn(a.instance.shard, a.epoch, waiter)
}

// isOver reports whether the epoch of the activation is.
func (a *activation) isOver() bool { return a.epoch != a.router.store.Epoch(a.instance.shard) }

// abandon takes an activation out of the map whose epoch is over. The calls that it has can still
// be answered, with errors; who comes later looks again.
func (a *activation) abandon() {
	if a.abandoned.CompareAndSwap(false, true) {
		a.router.forget(a)
		a.uncount()
		if a.pending.Add(closed) == closed {
			a.end()
		}
	}
}

// end lets the actor go.
func (a *activation) end() {
	a.router.o.System.Root().Poison(a.pid)
	a.router.metrics.slept.Add(1)
}

// close reports whether the activation owes nothing and takes no call from now on.
func (a *activation) close() bool {
	return a.pending.CompareAndSwap(0, closed)
}
