package workflow

import (
	"time"

	"troupe/actors/catalog"
	"troupe/actors/instance"
	"troupe/actors/message"
	"troupe/actors/past"
	"troupe/actors/task"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// SweepAfter is a round of the sweep as it would come after d.
func (r *Router) SweepAfter(d time.Duration) {
	r.shards.Pass(d)
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

// HoldReset holds what a reset to a moment of a definition needs, and lets go of it.
func (r *Router) HoldReset(workflow string, of *statemachine.Definition) error {
	release, err := r.holdReset(workflow, &past.Moment{Of: of}, "")
	if err == nil {
		release()
	}
	return err
}

// Occupy takes up n calls of an awake instance until release is called.
func (r *Router) Occupy(id key.ID, n int32) (release func()) {
	a := r.Awake(id)
	for range n {
		_ = a.Acquire() // it counts also above the limit
	}
	return func() {
		for range n {
			a.Free()
		}
	}
}

// Awake is the activation of an awake instance.
func (r *Router) Awake(id key.ID) *instance.Activation {
	at, _ := r.shards.At(id)
	return r.shards.Awake(at)
}

// OccupyAll takes up n calls of all instances until release is called.
func (r *Router) OccupyAll(n int64) (release func()) {
	r.env.Counts.InFlight.Add(n)
	return func() { r.env.Counts.InFlight.Add(-n) }
}

// SendUnchecked sends an event to an awake instance without the checks of Send.
func (r *Router) SendUnchecked(id key.ID, e *message.Event) (*message.Reply, error) {
	return r.sendUnchecked(id, instance.Send{Event: e})
}

// ReadToWake reads an instance's record as whoever wakes it does; wake is the rest of that.
func (r *Router) ReadToWake(workflowID string, id key.ID) (wake func(), err error) {
	at, err := r.shards.At(id)
	if err != nil {
		return nil, err
	}
	w, err := at.Read(workflowID)
	return func() {
		if a, err := w.Wake(); err == nil {
			a.Free()
		}
	}, err
}

// CreateFor is what PostCreate does with a request that may have to wait.
func (r *Router) CreateFor(req *message.Create, to message.Recipient) {
	r.env.Counts.InFlight.Add(1)
	r.answerFor(req.WorkflowID, to, func() (*message.Reply, error) { return r.create(req) })
}

// EnterAwake enters an awake instance into an index, as a late call of the builder does.
func (r *Router) EnterAwake(id key.ID, ix *catalog.Index) error {
	_, err := r.sendUnchecked(id, instance.EnterIndex{Index: ix})
	return err
}

func (r *Router) sendUnchecked(id key.ID, m instance.Request) (*message.Reply, error) {
	a := r.Awake(id)
	if err := a.Acquire(); err != nil {
		return nil, err
	}
	r.env.Counts.InFlight.Add(1)
	return r.shards.Wait(a.Post(m, nil))
}

// SkipIndexCheck plants a mistake: a node that leads a shard commits before it knows all indexes
// that the shard has.
func (r *Router) SkipIndexCheck() {
	r.env.Indexes = func(_ key.Shard, _ uint64, workflow string) ([]*catalog.Index, error) {
		return (*r.o.Catalog.Indexes())[workflow], nil
	}
}

// Store is the router's.
func (r *Router) Store() *persistence.Store { return r.o.Store }

// BoundTasks has pages of tasks look at so much.
func (r *Router) BoundTasks(to task.Bounds) { r.Worklists.Bounds = to }

// Panic has an instance panic as it handles a request.
func (r *Router) Panic(workflowID, id string) error {
	_, err := r.ask(workflowID, id, instance.Delete{May: func(*instance.Actor) error { panic("planted") }})
	return err
}
