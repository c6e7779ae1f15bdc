package workflow

import (
	"time"

	"troupe/actors/catalog"
	"troupe/actors/internal/retry"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/persistence"
	"troupe/persistence/key"
)

// What tests outside the package ask of its inside.
const (
	InstanceBytes = instanceBytes
	SweepEvery    = sweepEvery
)

// SweepAfter is a round of the sweep as it would come after d.
func (r *Router) SweepAfter(d time.Duration) {
	r.round.Add(int64(d / sweepEvery))
	r.sweep()
}

// SweepIdle is a round of the sweep when all instances are idle. It reports whether all
// are asleep.
func (r *Router) SweepIdle() bool {
	r.SweepAfter(r.o.IdleAfter)
	m := r.Metrics()
	return m.Awake == 0 && m.AwakeBytes == 0
}

// Clean is a round of the cleaner.
func (r *Router) Clean() { r.clean() }

// KeysKept is how many idempotency keys of an instance are stored.
func (r *Router) KeysKept(id key.ID) (int, error) {
	rows, err := retry.Rows(r.store, key.ReplyPrefix(nil, r.store.ShardOf(id), id))
	return len(rows), err
}

// Occupy takes up n calls of an awake instance until release is called.
func (r *Router) Occupy(id key.ID, n int32) (release func()) {
	a, _ := r.awake.Load(id)
	a.pending.Add(n)
	return func() { a.pending.Add(-n) }
}

// OccupyAll takes up n calls of all instances until release is called.
func (r *Router) OccupyAll(n int64) (release func()) {
	r.inFlight.Add(n)
	return func() { r.inFlight.Add(-n) }
}

// ReadToWake reads an instance's record as whoever wakes it does; wake is the rest of that.
func (r *Router) ReadToWake(workflowID string, id key.ID) (wake func(), err error) {
	ended := r.ended.Load()
	stored, err := r.load(workflowID, id)
	return func() { r.wakeWith(workflowID, id, r.store.Epoch(r.store.ShardOf(id)), stored, ended) }, err
}

// SendUnchecked sends an event to an awake instance without the checks of Send.
func (r *Router) SendUnchecked(id key.ID, e *message.Event) (*message.Reply, error) {
	if e.Caller != nil {
		e.As = catalog.CallerOf(e.Caller)
	}
	return r.sendUnchecked(id, sendEvent{e})
}

// CreateFor is what PostCreate does with a request that may have to wait.
func (r *Router) CreateFor(req *message.Create, to message.Recipient) {
	r.inFlight.Add(1)
	r.createFor(req, to)
}

// EnterAwake enters an awake instance into an index, as a late call of the builder does.
func (r *Router) EnterAwake(id key.ID, ix *catalog.Index) error {
	_, err := r.sendUnchecked(id, enterIndex{ix})
	return err
}

func (r *Router) sendUnchecked(id key.ID, m request) (*message.Reply, error) {
	a, _ := r.awake.Load(id)
	if err := a.acquire(); err != nil {
		return nil, err
	}
	r.inFlight.Add(1)
	return r.wait(r.send(a, m, nil))
}

// SkipIndexCheck plants a mistake: a node that leads a shard commits before it knows all indexes
// that the shard has.
func (r *Router) SkipIndexCheck() {
	r.indexesIn = func(_ key.Shard, _ uint64, workflow string) ([]*catalog.Index, error) {
		return (*r.catalog.Indexes())[workflow], nil
	}
}

// Store is the router's.
func (r *Router) Store() *persistence.Store { return r.store }

// BoundTasks has pages of tasks look at so much.
func (r *Router) BoundTasks(to task.Bounds) { r.tasks.Bounds = to }

// Delete deletes an instance, whoever may.
func (r *Router) Delete(workflowID, id string) error {
	_, err := r.ask(workflowID, id, deleteInstance{func(*instance) error { return nil }})
	return err
}
