package workflow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/puzpuzpuz/xsync/v4"
	"github.com/rs/zerolog"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/quota"
	"troupe/persistence"
	"troupe/statemachine"
)

// Router finds or wakes the actor of an instance and hands calls to it. All its
// methods are safe for concurrent use.
type Router struct {
	o       Options // read only after Start
	store   *persistence.Store
	catalog *Catalog
	log     zerolog.Logger
	ids     mint

	// awake has every instance that has an actor. Entries are added by wake
	// and create, and removed by whoever closed them.
	awake *xsync.Map[persistence.ID, *entry]
	// creating has the creates with an idempotency key that are on their way.
	creating *xsync.Map[replyDigest, *latch]

	memory   memory       // of the awake instances
	inFlight atomic.Int64 // calls admitted and not answered, over all instances
	round    atomic.Int64 // the sweep's clock, in sweeps
	stopping atomic.Bool
	queries  *readers // and looks of watches that take long
	lists    *readers // of forms
	feeds    feeds
	metrics  metrics
	// events and creates are the quotas of users; nil without one.
	events, creates *quota.Buckets
	// reading ends when Stop ends the queries and lists.
	reading    context.Context
	endReading context.CancelFunc

	tick     atomic.Pointer[chan struct{}] // closed and replaced once a second
	stop     chan struct{}
	stopOnce sync.Once
	done     sync.WaitGroup

	// watching ends when StopWatching ends the watches.
	watching    context.Context
	endWatching context.CancelFunc
}

// Start begins to take calls.
func Start(o Options) (*Router, error) {
	o.EnsureDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := &Router{
		o:        o,
		store:    o.Store,
		catalog:  o.Catalog,
		log:      o.Log,
		ids:      newMint(),
		awake:    xsync.NewMap[persistence.ID, *entry](),
		creating: xsync.NewMap[replyDigest, *latch](),
		queries:  newReaders(o.QueriesOpenMax, o.QueriesMax),
		lists:    newReaders(o.ListsOpenMax, o.ListsMax),
		events:   quota.NewBuckets("event", o.Quotas.EventsPerSecond),
		creates:  quota.NewBuckets("create", o.Quotas.CreatesPerSecond),
		stop:     make(chan struct{}),

		feeds: feeds{byKey: xsync.NewMap[feedKey, *feed]()},
	}
	r.reading, r.endReading = context.WithCancel(context.Background())
	r.watching, r.endWatching = context.WithCancel(context.Background())
	first := make(chan struct{})
	r.tick.Store(&first)
	r.memory.pressure = make(chan struct{}, 1)
	r.done.Add(4)
	go r.relieveLoop()
	go r.every(sweepEvery, r.sweep)
	go r.every(cleanEvery, r.clean)
	go r.buildLoop()
	return r, nil
}

// Stop refuses new calls with failure.ErrUnavailable, ends queries and lists with it,
// waits until every accepted call is answered or ctx ends, and puts all instances
// to sleep.
func (r *Router) Stop(ctx context.Context) error {
	r.stopping.Store(true)
	r.StopWatching()
	r.endReading()
	var err error
	for err == nil && r.inFlight.Load()+int64(r.queries.count()+r.lists.count()) > 0 { // NB: the store cannot be closed while one reads
		select {
		case <-r.ticks():
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			err = fmt.Errorf("stop workflows: %d calls, %d queries and %d lists still open: %w",
				r.inFlight.Load(), r.queries.open.Held(), r.lists.open.Held(), ctx.Err())
		}
	}
	r.stopOnce.Do(func() { close(r.stop) })
	r.done.Wait()
	r.awake.Range(func(_ persistence.ID, e *entry) bool {
		if e.close() {
			r.remove(e)
		}
		return true
	})
	return err
}

// ticks returns a channel that is closed within the next second. Waiting on it
// costs no timer.
func (r *Router) ticks() <-chan struct{} { return *r.tick.Load() }

// admit counts one more call, or says why not. Calls that write ask accepting
// first; reads go on when the store takes nothing (persistence/PROMISES.md, "P4").
func (r *Router) admit() error {
	if r.stopping.Load() {
		return fmt.Errorf("%w: stopping", failure.ErrUnavailable)
	}
	if r.inFlight.Add(1) > int64(r.o.InFlightMax) {
		r.inFlight.Add(-1)
		r.metrics.refused.Add(1)
		return failure.ErrBusy
	}
	return nil
}

// accepting says whether the store takes writes now.
func (r *Router) accepting() error {
	if err := r.store.Accepting(); err != nil {
		return failure.OfStore(err)
	}
	return nil
}

// Send delivers one event to an instance.
func (r *Router) Send(_ context.Context, req *EventRequest) (*Reply, error) {
	d, err := r.catalog.newest(req.WorkflowID)
	if err != nil {
		return nil, fmt.Errorf("send to %s: %w", req.WorkflowID, err)
	}
	if d.SendRight(callerOf(req.Caller), r.o.Clock()) == statemachine.Denied {
		return nil, fmt.Errorf("send to %s: %w", req.WorkflowID, failure.ErrForbidden)
	}
	if err := r.maySend(req); err != nil {
		return nil, fmt.Errorf("send to %s: %w", req.WorkflowID, err)
	}
	reply, err := r.ask(req.WorkflowID, req.InstanceID, func(c *call) { c.event = req })
	if err != nil {
		return nil, fmt.Errorf("send %q to %s/%s: %w", req.Name, req.WorkflowID, req.InstanceID, err)
	}
	return reply, nil
}

// maySend asks what has to be asked before each event, whatever way it came.
func (r *Router) maySend(req *EventRequest) error {
	if err := r.accepting(); err != nil || req.NoQuota {
		return err
	}
	return r.countRefusal(r.events.Take(req.Caller.ID, r.o.Clock()))
}

// countRefusal counts the refusals of quotas among errors.
func (r *Router) countRefusal(err error) error {
	if err != nil {
		r.metrics.overQuota.Add(1)
	}
	return err
}

// Load returns an instance as it is after everything that was acknowledged.
func (r *Router) Load(_ context.Context, req *LoadRequest) (*Reply, error) {
	d, err := r.catalog.newest(req.WorkflowID)
	if err != nil {
		return nil, fmt.Errorf("load from %s: %w", req.WorkflowID, err)
	}
	if d.ReadRight(callerOf(req.Caller), r.o.Clock()) == statemachine.Denied {
		return nil, fmt.Errorf("load from %s: %w", req.WorkflowID, failure.ErrForbidden)
	}
	reply, err := r.ask(req.WorkflowID, req.InstanceID, func(c *call) { c.load = req })
	if err != nil {
		return nil, fmt.Errorf("load %s/%s: %w", req.WorkflowID, req.InstanceID, err)
	}
	return reply, nil
}

// Choices lists the workflows that the caller may create, by id.
func (r *Router) Choices(p *identity.Principal) []Choice {
	return r.catalog.choices(callerOf(p), r.o.Clock())
}

// Choice returns one of the Choices; false when the caller may not create it.
func (r *Router) Choice(p *identity.Principal, workflowID string) (Choice, bool) {
	return (*r.catalog.current.Load())[workflowID].choice(workflowID, callerOf(p), r.o.Clock())
}

// Declares reports whether new instances of the workflow know the event.
func (r *Router) Declares(workflowID, event string) bool {
	d, err := r.catalog.offered(workflowID)
	name, ok := statemachine.ParseEventName(event)
	return ok && err == nil && d.Declares(name)
}

// ask finds the instance's actor, waking it if needed, and waits for its answer.
func (r *Router) ask(workflowID, instanceID string, fill func(*call)) (*Reply, error) {
	id, ok := parseInstanceID(instanceID)
	if !ok {
		return nil, failure.ErrNotFound
	}
	if err := r.admit(); err != nil {
		return nil, err
	}
	for {
		e, ok := r.awake.Load(id)
		if !ok {
			var err error
			if e, err = r.wake(workflowID, id); err != nil {
				r.inFlight.Add(-1)
				return nil, err
			}
		}
		if e.workflow != workflowID {
			r.inFlight.Add(-1)
			return nil, failure.ErrNotFound
		}
		switch err := e.acquire(); {
		case errors.Is(err, errAsleep):
			r.awake.Compute(id, func(old *entry, loaded bool) (*entry, xsync.ComputeOp) {
				if loaded && old == e {
					return nil, xsync.DeleteOp
				}
				return old, xsync.CancelOp
			})
			continue
		case err != nil:
			r.inFlight.Add(-1)
			r.metrics.refused.Add(1)
			return nil, err
		}
		c := newCall(e)
		fill(c)
		r.o.System.Root().Send(e.pid, c)
		return r.wait(c)
	}
}

// wake starts the actor of an instance that the store has. What the store shows
// without an actor is durable: an actor only goes to sleep when all it wrote is.
func (r *Router) wake(workflowID string, id persistence.ID) (*entry, error) {
	key := persistence.RecordKey(nil, r.store.ShardOf(id), workflowID, id)
	if _, err := r.store.Load(key); errors.Is(err, persistence.ErrNotFound) {
		return nil, failure.ErrNotFound
	} else if err != nil {
		return nil, failure.OfStore(err)
	}
	e, _ := r.awake.Compute(id, func(old *entry, loaded bool) (*entry, xsync.ComputeOp) {
		if loaded {
			return old, xsync.CancelOp
		}
		return r.spawn(&instance{workflowID: workflowID, id: id}), xsync.UpdateOp
	})
	return e, nil
}

// spawn starts the actor i, of which the caller set what identifies it.
func (r *Router) spawn(i *instance) *entry {
	e := &entry{router: r, id: i.id, workflow: i.workflowID}
	e.touched.Store(r.round.Load())
	i.router, i.entry, i.name, i.shard = r, e, instanceName(i.id), r.store.ShardOf(i.id)
	e.pid = r.o.System.Root().Spawn(actor.PropsFromFunc(i.Receive))
	r.metrics.woken.Add(1)
	return e
}

// remove ends a closed entry's actor.
func (r *Router) remove(e *entry) {
	r.awake.Compute(e.id, func(old *entry, loaded bool) (*entry, xsync.ComputeOp) {
		if loaded && old == e {
			return nil, xsync.DeleteOp
		}
		return old, xsync.CancelOp
	})
	e.uncount()
	r.o.System.Root().Poison(e.pid)
	r.metrics.slept.Add(1)
}

// callerOf is what the state machine sees of a principal.
func callerOf(p *identity.Principal) *statemachine.Caller {
	return &statemachine.Caller{ID: string(p.ID), Roles: p.Roles, Privileges: p.Privileges}
}
