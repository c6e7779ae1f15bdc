package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/puzpuzpuz/xsync/v4"
	"github.com/rs/zerolog"

	"troupe/actors/catalog"
	"troupe/actors/changefeed"
	"troupe/actors/failure"
	"troupe/actors/guard"
	"troupe/actors/identity"
	"troupe/actors/incident"
	"troupe/actors/internal/instanceid"
	"troupe/actors/internal/retry"
	"troupe/actors/invoke"
	"troupe/actors/message"
	"troupe/actors/outbox"
	"troupe/actors/pace"
	"troupe/actors/pending"
	"troupe/actors/query"
	"troupe/actors/quota"
	"troupe/actors/schedule"
	"troupe/actors/timer"
	"troupe/actors/watch"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Router finds or wakes the actor of an instance and hands calls to it. All its
// methods are safe for concurrent use.
type Router struct {
	*pending.Lists // of what waits in the whole store
	tasks          // and for whom

	o         Options // read only after Start
	store     *persistence.Store
	catalog   *catalog.Catalog
	indexesIn func(key.Shard, uint64, string) ([]*catalog.Index, error) // the catalog's, but in tests
	log       zerolog.Logger
	ids       instanceid.Generator
	props     *actor.Props // of every instance

	// awake has every instance that has an actor. Activations are added by those who
	// have something to ask, and removed by whoever closed them.
	awake *xsync.Map[key.ID, *activation]
	// keys has the idempotency keys of creates and batches that are on their way.
	keys retry.Keys

	memory    memory       // of the awake instances
	inFlight  atomic.Int64 // calls admitted and not answered, over all instances
	round     atomic.Int64 // sweeps since the start
	ended     atomic.Int64 // activations that were in awake and are no longer
	stopping  atomic.Bool
	queries   *query.Service
	watches   *watch.Service
	changes   *changefeed.Service
	timers    *timer.Service
	paces     pace.Steps        // that instances cause themselves
	work      pace.Work         // that workflows do by themselves
	invokes   *invoke.Service   // whether children may be created
	schedules *schedule.Service // creates instances at their times
	outbox    *outbox.Service   // nil: nothing leaves
	incidents *incident.Service
	metrics   metrics
	// eventQuota and createQuota are those of users; nil without one.
	eventQuota, createQuota *quota.Buckets

	tick     atomic.Pointer[chan struct{}] // closed and replaced once a second
	stop     chan struct{}
	stopOnce sync.Once
	done     sync.WaitGroup

	// endBuilding ends the building of indexes.
	endBuilding context.CancelFunc
}

// Start begins to take calls.
func Start(o Options) (*Router, error) {
	o.EnsureDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := &Router{
		o:           o,
		store:       o.Store,
		catalog:     o.Catalog,
		indexesIn:   o.Catalog.IndexesIn,
		log:         o.Log,
		ids:         instanceid.NewGenerator(),
		props:       o.System.PropsOfMany(receive),
		awake:       xsync.NewMap[key.ID, *activation](),
		keys:        retry.NewKeys(),
		eventQuota:  quota.NewBuckets("event", o.Quotas.EventsPerSecond),
		createQuota: quota.NewBuckets("create", o.Quotas.CreatesPerSecond),
		stop:        make(chan struct{}),
	}
	r.queries = query.New(query.Options{
		Store: o.Store, Catalog: o.Catalog, Clock: o.Clock, InFlight: &r.inFlight,
		QueriesMax: o.QueriesMax, ListsMax: o.ListsMax, QueriesOpenMax: o.QueriesOpenMax, ListsOpenMax: o.ListsOpenMax,
		QueryWaitMax: o.QueryWaitMax, TimeMax: o.QueryTimeMax, Current: o.Current,
	})
	r.changes = changefeed.New(changefeed.Options{
		Store: o.Store, Catalog: o.Catalog, Current: r.queries.AwaitCurrent, Clock: o.Clock, Log: o.Log,
		KeptFor: o.ChangesKeptFor, RowsMax: o.ChangesMax,
	})
	r.watches = watch.New(watch.Options{Store: o.Store, Catalog: o.Catalog, Queries: r.queries, Changes: r.changes, Instances: r, Clock: o.Clock})
	r.incidents = incident.New(incident.Options{Store: o.Store, Log: o.Log, Elsewhere: o.PutElsewhere})
	r.makeByItself()
	r.makeTasks()
	building, endBuilding := context.WithCancel(context.Background())
	r.endBuilding = endBuilding
	first := make(chan struct{})
	r.tick.Store(&first)
	r.memory.pressure = make(chan struct{}, 1)
	r.done.Add(4)
	go r.relieveLoop()
	go r.every(sweepEvery, "router sweep", r.sweep)
	go r.every(cleanEvery, "router cleaner", r.clean)
	go r.every(trimEvery, "trimming of changes", r.changes.Trim)
	r.done.Go(func() {
		guard.Loop(building.Done(), r.log, "index builder", func() { r.catalog.BuildIndexes(building, r) })
	})
	r.incidents.Start()
	r.startByItself()
	return r, nil
}

// Stop refuses new calls with failure.ErrUnavailable, ends queries and lists with it,
// waits until every accepted call is answered or ctx ends, and puts all instances
// to sleep.
func (r *Router) Stop(ctx context.Context) error {
	r.stopping.Store(true)
	r.endBuilding()
	r.stopByItself()
	r.StopWatching()
	r.queries.Stop()
	var err error
	for err == nil {
		queries, lists := r.queries.Open() // NB: the store cannot be closed while one reads
		if r.inFlight.Load() == 0 && queries+lists == 0 {
			break
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			err = fmt.Errorf("stop workflows: %d calls still open, %d slots of queries and %d of lists still held: %w",
				r.inFlight.Load(), queries, lists, ctx.Err())
		}
	}
	r.stopOnce.Do(func() { close(r.stop) })
	r.done.Wait()
	r.incidents.Stop()
	r.awake.Range(func(_ key.ID, a *activation) bool {
		if a.close() {
			r.remove(a)
		}
		return true
	})
	return err
}

// ticks returns a channel that is closed within the next second. Waiting on it
// costs no timer.
func (r *Router) ticks() <-chan struct{} { return *r.tick.Load() }

// admit counts one more call, or says why not. Calls that write ask accepting
// first; reads go on when nothing is taken (persistence/PROMISES.md, "P4").
func (r *Router) admit() error {
	if r.stopping.Load() {
		return failure.Errorf(failure.ErrUnavailable, "stopping")
	}
	if r.inFlight.Add(1) > int64(r.o.InFlightMax) {
		r.inFlight.Add(-1)
		r.metrics.refused.Add(1)
		return failure.ErrBusy
	}
	return nil
}

// Accepting returns nil while writes are taken, else failure.ErrUnavailable.
func (r *Router) Accepting() error { return failure.OfStore(r.store.Accepting()) }

// backlogMax is how much may wait for the store, in bytes, before writes are refused: less
// than a second of what a disk takes. Large records would fill the memory, and the store
// would take the wait for a disk that hangs.
const backlogMax = 64 << 20

// accepting says whether a write may begin: Accepting, and failure.ErrBusy.
func (r *Router) accepting() error {
	err := r.Accepting()
	if err == nil && r.Backlog() > backlogMax {
		r.metrics.refused.Add(1)
		err = failure.ErrBusy
	}
	return err
}

// Send delivers one event to an instance: ErrNotFound without such an instance or a
// newest definition, ErrForbidden without the right to the workflow or to the event,
// ErrInvalid for what the definition does not declare, ErrNotAllowed, ErrPrecondition,
// ErrTooLarge, ErrExecution when an action fails, ErrKeyReused for a key of another
// request, ErrBusy, ErrInstanceBusy and ErrQuota, ErrUnavailable, and ErrOutcomeUnknown.
func (r *Router) Send(_ context.Context, req *message.Event) (*message.Reply, error) {
	if err := r.maySend(req); err != nil {
		return nil, failure.In("send to", req.WorkflowID, err)
	}
	reply, err := r.ask(req.WorkflowID, req.InstanceID, sendEvent{req})
	if err != nil {
		return nil, failure.In("send to", req.WorkflowID+"/"+req.InstanceID, err)
	}
	return reply, nil
}

// PostEvent is Send for a caller who does not wait: to gets the answer. The errors that
// it returns are answers themselves, and to gets none. The same request may be posted
// again after ErrBusy and ErrInstanceBusy; it counts once towards its caller's quota.
func (r *Router) PostEvent(req *message.Event, to message.Recipient) (Posted, error) {
	err := r.maySend(req)
	var c *call
	if err == nil {
		c, err = r.post(req.WorkflowID, req.InstanceID, sendEvent{req}, to)
	}
	return Posted{c, r.round.Load()}, err
}

// maySend makes the checks of an event that come before its instance.
func (r *Router) maySend(req *message.Event) error {
	d, err := r.catalog.Newest(req.WorkflowID)
	if err != nil {
		return err
	}
	req.As = catalog.CallerOf(req.Caller)
	now := r.o.Clock()
	if d.SendRight(req.As, now) == statemachine.Denied {
		return failure.Refuse(failure.ErrForbidden, "permission denied: you may not send events to instances of %s (allow.send)", req.WorkflowID)
	}
	if err := r.isElsewhere(req.InstanceID); err != nil {
		return err // before it counts towards a quota, as it does where it is led
	}
	if err = r.accepting(); err == nil && !req.Counted {
		err = r.countRefusal(r.eventQuota.Take(req.Caller.ID, now))
		req.Counted = err == nil
	}
	return err
}

// isElsewhere returns failure.ErrElsewhere when another node leads the shard of an instance.
func (r *Router) isElsewhere(instanceID string) error {
	if r.store.Alone() {
		return nil
	}
	id, ok := instanceid.Parse(instanceID)
	if !ok {
		return nil
	}
	_, err := r.epochOf(r.store.ShardOf(id))
	return err
}

// countRefusal counts the refusals of quotas among errors.
func (r *Router) countRefusal(err error) error {
	if err != nil {
		r.metrics.overQuota.Add(1)
	}
	return err
}

// Load returns an instance as it is after everything that was acknowledged: ErrNotFound,
// ErrForbidden without the right to read the workflow, ErrExecution when what is stored
// cannot be read, ErrBusy and ErrInstanceBusy, and ErrUnavailable.
func (r *Router) Load(_ context.Context, req *message.Load) (*message.Reply, error) {
	reply, err := r.askReader(req, loadInstance{req})
	return reply, failure.In("load", req.WorkflowID+"/"+req.InstanceID, err)
}

// askReader asks an instance what only readers of the workflow may ask.
func (r *Router) askReader(req *message.Load, m request) (*message.Reply, error) {
	d, err := r.catalog.Newest(req.WorkflowID)
	if err != nil {
		return nil, err
	}
	if d.ReadRight(catalog.CallerOf(req.Caller), r.o.Clock()) == statemachine.Denied {
		return nil, failure.MayNotRead(req.WorkflowID)
	}
	return r.ask(req.WorkflowID, req.InstanceID, m)
}

// Query calls yield with the instances of a workflow that match, as query.Service
// says.
func (r *Router) Query(ctx context.Context, req *query.Request, yield func(item []byte) error) (*query.End, error) {
	return r.queries.Query(ctx, req, yield)
}

// Standing counts how many instances stand where, as query.Service says.
func (r *Router) Standing(ctx context.Context, p *identity.Principal, workflowID string, at []statemachine.Position) ([]query.Standing, error) {
	return r.queries.Standing(ctx, p, workflowID, at)
}

// Read calls read once with one consistent moment, as query.Service says.
func (r *Router) Read(ctx context.Context, user identity.UserID, read func(*query.Reader) error) error {
	return r.queries.Read(ctx, user, read)
}

// Watch calls yield with what is committed from now on, as watch.Service says.
func (r *Router) Watch(ctx context.Context, req *watch.Request, yield func(watch.Event) error) error {
	return r.watches.Watch(ctx, req, yield)
}

// Changes returns what was committed behind a cursor, as changefeed.Service says.
func (r *Router) Changes(ctx context.Context, req *changefeed.Request) (*changefeed.Page, error) {
	return r.changes.Changes(ctx, req)
}

// StopWatching ends all calls of Watch, and refuses new ones. Calls of Changes wait no more.
func (r *Router) StopWatching() { r.watches.Stop(); r.changes.Stop() }

// Choices lists the workflows that the caller may create, by id.
func (r *Router) Choices(p *identity.Principal) []catalog.Choice {
	return r.catalog.Choices(catalog.CallerOf(p), r.o.Clock())
}

// Choice returns one of the Choices; false when the caller may not create it.
func (r *Router) Choice(p *identity.Principal, workflowID string) (catalog.Choice, bool) {
	return r.catalog.Choice(workflowID, catalog.CallerOf(p), r.o.Clock())
}

// Declares reports whether new instances of the workflow know the event.
func (r *Router) Declares(workflowID, event string) bool {
	d, err := r.catalog.Creatable(workflowID)
	name, ok := statemachine.ParseEventName(event)
	return ok && err == nil && d.Declares(name)
}

// ask posts a request and waits for its answer.
func (r *Router) ask(workflowID, instanceID string, m request) (*message.Reply, error) {
	c, err := r.post(workflowID, instanceID, m, nil)
	if err != nil {
		return nil, err
	}
	return r.wait(c)
}

// post gives a request to the instance's actor, waking it if needed.
func (r *Router) post(workflowID, instanceID string, m request, to message.Recipient) (*call, error) {
	id, ok := instanceid.Parse(instanceID)
	if !ok {
		return nil, failure.ErrNotFound
	}
	if err := r.admit(); err != nil {
		return nil, err
	}
	return r.dispatch(workflowID, id, m, to)
}

// dispatch is post of a request that was admitted.
func (r *Router) dispatch(workflowID string, id key.ID, m request, to message.Recipient) (*call, error) {
	for {
		a, ok := r.awake.Load(id)
		if ok && a.isOver() {
			a.abandon()
			continue
		}
		if !ok {
			var err error
			if a, err = r.wake(workflowID, id); err != nil {
				r.inFlight.Add(-1)
				return nil, err
			}
		}
		if a.instance.workflowID != workflowID { // there is nothing by that name
			r.inFlight.Add(-1)
			return nil, failure.ErrNotFound
		}
		switch err := a.acquire(); {
		case errors.Is(err, errAsleep):
			r.forget(a)
			continue
		case err != nil:
			r.inFlight.Add(-1)
			r.metrics.refused.Add(1)
			return nil, err
		}
		return r.send(a, m, to), nil
	}
}

// send puts a request that was admitted into the mailbox of an activation.
func (r *Router) send(a *activation, m request, to message.Recipient) *call {
	c := newCall(a, m, to)
	r.o.System.Root().Send(a.pid, c)
	return c
}

// wake starts the actor of an instance that the store has. What the store shows
// without an actor is durable: an actor only goes to sleep when all it wrote is.
func (r *Router) wake(workflowID string, id key.ID) (*activation, error) {
	ended := r.ended.Load()
	epoch, err := r.epochOf(r.store.ShardOf(id)) // NB: before anything of the shard is read
	if err != nil {
		return nil, err
	}
	stored, err := r.loadLed(workflowID, id, epoch)
	if err != nil {
		return nil, err
	}
	return r.wakeWith(workflowID, id, epoch, stored, ended), nil
}

// loadLed reads the record of an instance whose shard this node leads in an epoch.
func (r *Router) loadLed(workflowID string, id key.ID, epoch uint64) ([]byte, error) {
	stored, err := r.load(workflowID, id)
	if errors.Is(err, failure.ErrNotFound) {
		// NB: another node may have it by now.
		err = cmp.Or(failure.OfStore(r.store.AwaitLed(context.Background(), r.store.ShardOf(id), epoch)), err)
	}
	return stored, err
}

// epochOf is the epoch of a shard, or failure.ErrElsewhere.
func (r *Router) epochOf(sh key.Shard) (uint64, error) {
	epoch := r.store.Epoch(sh)
	if epoch == 0 {
		return 0, failure.Elsewhere(uint16(sh))
	}
	return epoch, nil
}

// wakeWith is wake after the record was read, before which so many activations had ended.
func (r *Router) wakeWith(workflowID string, id key.ID, epoch uint64, stored []byte, ended int64) *activation {
	a, _ := r.awake.Compute(id, func(old *activation, loaded bool) (*activation, xsync.ComputeOp) {
		if loaded {
			return old, xsync.CancelOp
		}
		i := &instance{workflowID: workflowID, id: id}
		if r.ended.Load() == ended { // otherwise an actor of this instance may have written and gone
			i.stored = stored
		}
		return r.spawn(i, epoch), xsync.UpdateOp
	})
	return a
}

// spawn starts the actor of i, which has its id and its workflow's, in an epoch of its shard.
func (r *Router) spawn(i *instance, epoch uint64) *activation {
	if d, err := r.catalog.Newest(i.workflowID); err == nil && string(d.ID) == i.workflowID {
		i.workflowID = string(d.ID) // NB: one text for all; that of a request keeps the request
	}
	a := &activation{router: r, instance: i, epoch: epoch}
	a.touched.Store(r.round.Load())
	i.router, i.activation, i.name, i.shard = r, a, instanceid.Text(i.id), r.store.ShardOf(i.id)
	a.pid = r.o.System.Root().Spawn(r.props)
	r.metrics.woken.Add(1)
	return a
}

// forget takes an activation out of the map, if it is there.
func (r *Router) forget(a *activation) {
	r.awake.Compute(a.instance.id, func(old *activation, loaded bool) (*activation, xsync.ComputeOp) {
		if loaded && old == a {
			r.ended.Add(1) // NB: after all that a wrote, and before another can take its place
			return nil, xsync.DeleteOp
		}
		return old, xsync.CancelOp
	})
}

// remove ends the actor of a closed activation.
func (r *Router) remove(a *activation) {
	r.forget(a)
	a.uncount()
	a.end()
}
