package instance

import (
	"errors"
	"math"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"troupe/actors/failure"
	"troupe/actors/internal/instanceid"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Lead is one epoch of a shard: the time in which this node leads it without a break. Its instances live no longer.
// Package shard has the actor that starts and ends them.
type Lead struct {
	*Env
	Shard key.Shard
	Epoch uint64
	// Round counts the sweeps of the node.
	Round *atomic.Int64
	// Resized is called when what instances take has changed, and End when somebody has seen that the epoch is over.
	// Both must not block.
	Resized, End func()
}

// IsStale reports whether the epoch is over.
func (l *Lead) IsStale() bool { return l.Epoch != l.Store.Epoch(l.Shard) }

// Activation is one awake instance as others see it: its actor's address, and what it owes.
type Activation struct {
	lead     *Lead
	instance *Actor // only its actor looks inside, but for what it is called
	// pid and process are written once, before others find the activation. process is what pid leads to, which costs two
	// more looks into the memory of an instance that may not have been asked for long.
	pid     *actor.PID
	process actor.Process

	// pending counts the calls that were admitted and not answered, and those whose outcome is not known yet. closed is
	// added to it, once, by anyone who ends the activation.
	pending atomic.Int32
	// uncommitted counts what was handed to the journal and is not durable yet: writes, and answers that wait for them.
	// A reply that shows the state has to wait for it.
	uncommitted atomic.Int32
	// lastUsed is the sweep's round in which it was used last.
	lastUsed atomic.Int64
	evicted  atomic.Bool
	ended    atomic.Bool
	// size is how many bytes of the instance's are counted in Counts.Bytes.
	size atomic.Int64
}

// closed is far below what pending can be.
const closed = math.MinInt32 / 2

// ErrAsleep: the activation accepts no more calls. It never leaves package shard.
var ErrAsleep = errors.New("instance is asleep")

// New returns an instance that is about to be started. of is the definition of one that is created, and stored the
// record of another; nil: it is not known.
func New(lead *Lead, workflowID string, id key.ID, of *statemachine.Definition, stored []byte) *Activation {
	if d, err := lead.Catalog.Newest(workflowID); err == nil && string(d.ID) == workflowID {
		workflowID = string(d.ID) // NB: one text for all; that of a request keeps the request
	}
	a := &Activation{lead: lead}
	a.instance = &Actor{env: lead.Env, activation: a, id: id, name: instanceid.Text(id), workflowID: workflowID, shard: lead.Shard, of: of, stored: stored}
	a.lastUsed.Store(lead.Round.Load())
	return a
}

// Started says where the actor is, before others find the activation.
func (a *Activation) Started(at *actor.PID) {
	a.pid, a.process = at, a.lead.System.Process(at)
}

// ID is the instance's.
func (a *Activation) ID() key.ID { return a.instance.id }

// Name is its id as text.
func (a *Activation) Name() string { return a.instance.name }

// WorkflowID is the instance's.
func (a *Activation) WorkflowID() string { return a.instance.workflowID }

// Acquire admits one more call. It fails with ErrAsleep when the activation takes no more, and with
// failure.ErrInstanceBusy above the limit.
func (a *Activation) Acquire() error {
	n := a.pending.Add(1)
	switch {
	case n <= 0:
		a.Free()
		return ErrAsleep
	case int(n) > a.lead.InstanceInFlightMax:
		a.Free()
		return failure.ErrInstanceBusy
	}
	a.lastUsed.Store(a.lead.Round.Load())
	return nil
}

// Calls is how many calls are not answered.
func (a *Activation) Calls() int { return max(int(a.pending.Load()), 0) }

func (a *Activation) release() {
	a.lead.Counts.InFlight.Add(-1)
	a.Free()
}

// Free is the end of what Acquire has admitted, when it is not posted.
func (a *Activation) Free() {
	if a.pending.Add(-1) == closed { // it was evicted
		a.end()
	}
}

// barrier has waiter told when everything that the instance wrote is durable.
func (a *Activation) barrier(waiter persistence.Waiter) {
	a.lead.Store.BarrierIn(a.lead.Shard, a.lead.Epoch, waiter)
}

// Evict has an activation accept no more calls. Those that it has can still be answered; then its actor ends.
func (a *Activation) Evict() {
	if a.evicted.CompareAndSwap(false, true) && a.pending.Add(closed) == closed {
		a.end()
	}
}

// PassivateIdle ends an activation that was used last before a round, and owes nothing.
func (a *Activation) PassivateIdle(before int64) {
	if a.lastUsed.Load() < before {
		a.Passivate()
	}
}

// Passivate ends an activation that owes nothing.
func (a *Activation) Passivate() {
	if a.pending.CompareAndSwap(0, closed) {
		a.evicted.Store(true) // NB: closed is added once
		a.end()
	}
}

// end lets the actor go, once. NB: Poison, so that nothing in the mailbox is dropped.
func (a *Activation) end() {
	if !a.ended.CompareAndSwap(false, true) {
		return
	}
	a.uncount()
	a.lead.Counts.Slept.Add(1)
	a.lead.System.Root().Poison(a.pid)
}

const (
	// InstanceBytes is about what an awake instance takes without its data (BenchmarkAwake of package bench).
	InstanceBytes = 5 << 8
	// sizeStepBytes is how much the size of an instance changes before it is counted again.
	sizeStepBytes = 1 << 10
	// gone is the size of an instance that is counted no more.
	gone = -1
)

// Size is how many bytes are counted of it.
func (a *Activation) Size() int64 { return a.size.Load() }

// count takes the size of an instance over. It is called by the instance's actor.
func (a *Activation) count(size int64) {
	for {
		before := a.size.Load()
		if before == gone || before-sizeStepBytes < size && size < before+sizeStepBytes {
			return
		}
		if a.size.CompareAndSwap(before, size) {
			a.lead.Counts.Bytes.Add(size - before)
			a.lead.Resized()
			return
		}
	}
}

func (a *Activation) uncount() {
	if before := a.size.Swap(gone); before != gone {
		a.lead.Counts.Bytes.Add(-before)
	}
}
