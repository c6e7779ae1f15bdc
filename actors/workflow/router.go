// Package workflow is the way to workflow instances: one Router says who may ask what before an instance is asked,
// finds the node and the shard, and starts and ends the services beside the instances.
//
//	request ─► Router ─► shard ─► instance actor ─► statemachine.Step
//	              ▲                     │ one batch: record, history entry, indexes, tasks, timers, deliveries, idempotency key
//	              │                     ▼
//	              │               persistence.Append ──► applier ──► fsync, shared by many
//	              └──── reply, when the batch is durable ◄──┘
//
// Anyone who sends to an idle instance runs it; what comes meanwhile gets a goroutine. A step ends with Append, which never waits. A reply
// leaves when everything that it shows is durable, also that of a read after an event whose commit is still on its way. A request that
// is refused left nothing behind; when the outcome is not known in time, the answer is failure.ErrOutcomeUnknown, and repeating the
// request with the same key is safe. Requests are admitted before the mailbox, by a limit for each instance and one for all.
//
// Start, then any number of concurrent calls, then Stop, which waits for everything accepted. The store is closed after that.
package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"troupe/actors/bulk"
	"troupe/actors/catalog"
	"troupe/actors/changefeed"
	"troupe/actors/failure"
	"troupe/actors/fanout"
	"troupe/actors/guard"
	"troupe/actors/hold"
	"troupe/actors/identity"
	"troupe/actors/incident"
	"troupe/actors/instance"
	"troupe/actors/internal/businesskey"
	"troupe/actors/internal/instanceid"
	"troupe/actors/internal/retry"
	"troupe/actors/invoke"
	"troupe/actors/job"
	"troupe/actors/message"
	"troupe/actors/outbox"
	"troupe/actors/pace"
	"troupe/actors/pending"
	"troupe/actors/query"
	"troupe/actors/quota"
	"troupe/actors/retention"
	"troupe/actors/schedule"
	"troupe/actors/shard"
	"troupe/actors/task"
	"troupe/actors/timer"
	"troupe/actors/watch"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Router is the way to the instances of all shards. Who may ask what before an instance is asked, it asks package instance
// (permission.go); where the instance is, package shard knows; what it does is in package instance. Its methods are safe for
// concurrent use.
type Router struct {
	o      Options // read only after Start
	env    *instance.Env
	shards *shard.Shards
	// keys has the idempotency keys of creates and batches that are on their way.
	keys retry.Keys
	// businessKeys has those of instances that are about to be created.
	businessKeys retry.Keys

	// The services beside the instances. Callers ask them directly.
	Queries     *query.Service
	Worklists   *task.Lists
	TaskWatches *task.Watcher
	Waiting     *pending.Lists // what waits in the whole store
	Watches     *watch.Service
	Changes     *changefeed.Service
	Incidents   *incident.Service
	Bulk        *bulk.Service
	Jobs        *job.Service // work for programs
	// Fanout asks other nodes what these need of their shards, and answers them; nil without Options.Peers.
	Fanout *fanout.Service

	invokes   *invoke.Service    // whether children may be created
	schedules *schedule.Service  // creates instances at their times
	hold      *hold.Hold         // what is not done after a restore
	retention *retention.Service // deletes instances that were done for long enough
	deleted   deletions
	// eventQuota and createQuota are those of users; nil without one.
	eventQuota, createQuota *quota.Buckets

	stop     chan struct{}
	stopOnce sync.Once
	done     sync.WaitGroup

	// endBuilding ends the building of indexes.
	endBuilding context.CancelFunc
}

// Arrived has the timers, deliveries and jobs of an instance begin that was written by another than its actor, and is visible.
// first is the first deadline of its timers, zero for none.
func (r *Router) Arrived(sh key.Shard, workflowID string, first time.Time, queues []string, jobs []job.Change) {
	if !first.IsZero() {
		r.env.Timers.Began(sh, first)
	}
	r.Jobs.Changed(sh, jobs)
	for _, queue := range queues {
		if r.env.Outbox != nil {
			r.env.Outbox.Began(sh, workflowID, queue, r.o.Clock())
		}
	}
}

// Start begins to take calls.
func Start(o Options) (*Router, error) {
	o.EnsureDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	held, err := hold.Open(o.Store, o.Log)
	if err != nil {
		return nil, err
	}
	ids := instanceid.NewGenerator()
	r := &Router{
		o: o, hold: held, keys: retry.NewKeys(), businessKeys: retry.NewKeys(), stop: make(chan struct{}),
		eventQuota:  quota.NewBuckets("event", o.Quotas.EventsPerSecond),
		createQuota: quota.NewBuckets("create", o.Quotas.CreatesPerSecond),
		env: &instance.Env{
			Limits: instance.Limits{
				Quotas: o.Quotas, InstanceInFlightMax: o.InstanceInFlightMax, HistoryResidentBytes: o.HistoryResidentBytes,
				KeysKept: keysKept, KeysKeptFor: o.KeysKeptFor,
			},
			Store: o.Store, System: o.System, Catalog: o.Catalog, Clock: o.Clock, Log: o.Log, Indexes: o.Catalog.IndexesIn,
			IDs: &ids, Tasks: task.NewFeed(o.Store), Steps: &pace.Steps{}, Work: &pace.Work{},
		},
	}
	r.makeServices()
	r.makeInternal()
	r.shards = shard.New(shard.Options{
		Env: r.env, InFlightMax: o.InFlightMax, ReplyWaitMax: o.ReplyWaitMax, IdleAfter: o.IdleAfter, AwakeBytesMax: o.AwakeBytesMax,
		Background: r.background(),
	})
	building, endBuilding := context.WithCancel(context.Background())
	r.endBuilding = endBuilding
	r.done.Add(3)
	go r.every(shard.SweepEvery, "router sweep", r.sweep)
	go r.every(cleanEvery, "router cleaner", r.clean)
	go r.every(trimEvery, "trimming of changes", r.Changes.Trim)
	r.done.Go(func() {
		guard.Loop(building.Done(), r.o.Log, "index builder", func() { r.o.Catalog.BuildIndexes(building, r) })
	})
	r.Incidents.Start()
	r.shards.Start()
	return r, nil
}

// makeServices makes what instances tell, and what asks them. NB: before anything runs that commits, since each commit tells it.
func (r *Router) makeServices() {
	o, e := &r.o, r.env
	if o.Peers != nil {
		r.Fanout = fanout.New(o.Peers, o.Catalog, o.Store.Shards())
	}
	r.Queries = query.New(query.Options{
		Store: o.Store, Catalog: o.Catalog, Clock: o.Clock, InFlight: &e.Counts.InFlight,
		QueriesMax: o.QueriesMax, ListsMax: listsMax, QueriesOpenMax: 16 * o.QueriesMax, ListsOpenMax: 2 * listsMax,
		QueryWaitMax: o.QueryWaitMax, TimeMax: o.QueryTimeMax, Current: o.Current, Fanout: r.Fanout, AuditRead: o.AuditRead,
	})
	r.Changes = changefeed.New(changefeed.Options{
		Store: o.Store, Catalog: o.Catalog, Current: r.Queries.AwaitCurrentIn, Clock: o.Clock, Log: o.Log, Fanout: r.Fanout,
		KeptFor: o.ChangesKeptFor, RowsMax: o.ChangesMax,
	})
	r.Watches = watch.New(watch.Options{Store: o.Store, Catalog: o.Catalog, Queries: r.Queries, Changes: r.Changes, Instances: r, Clock: o.Clock, Fanout: r.Fanout})
	r.Incidents = incident.New(incident.Options{Store: o.Store, Log: o.Log, Elsewhere: o.PutElsewhere})
	e.Changes, e.Watches, e.Incidents = r.Changes, r.Watches, r.Incidents
	r.Worklists = &task.Lists{Store: o.Store, Queries: r.Queries, Catalog: o.Catalog, Bounds: task.UsualBounds, Clock: o.Clock, NameOf: o.NameOf}
	r.TaskWatches = &task.Watcher{Lists: r.Worklists, Feed: e.Tasks, Stopped: r.Watches.Stopped()}
	if r.Fanout != nil {
		r.Worklists.Share(r.Fanout)
		r.TaskWatches.ShareWatches(r.Fanout)
	}
}

// Stop refuses new calls with failure.ErrUnavailable, ends queries and lists with it, waits until every accepted call
// is answered or ctx ends, and puts all instances to sleep.
func (r *Router) Stop(ctx context.Context) error {
	r.shards.Refuse()
	r.endBuilding()
	r.Jobs.Stop()
	r.shards.StopBackground()
	r.StopWatching()
	r.Queries.Stop()
	err := r.shards.Stop(ctx, func() string {
		queries, lists := r.Queries.Open() // NB: the store cannot be closed while one reads
		if queries+lists == 0 {
			return ""
		}
		return fmt.Sprintf(", %d slots of queries and %d of lists still held", queries, lists)
	})
	r.stopOnce.Do(func() { close(r.stop) })
	r.done.Wait()
	r.Incidents.Stop()
	return err
}

// every calls do again and again until the router stops, also after a panic. It is the body of a goroutine.
func (r *Router) every(interval time.Duration, name string, do func()) {
	defer r.done.Done()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-ticker.C:
			_ = guard.Try(r.o.Log, name, do) // the log has it
		}
	}
}

// sweep is a round of all that looks at the clock once a second.
func (r *Router) sweep() {
	r.Watches.Sweep(time.Now())
	now := r.o.Clock()
	r.eventQuota.Sweep(now)
	r.createQuota.Sweep(now)
	r.shards.Sweep()
}

const (
	// cleanEvery is the time between two rounds of the cleaner, and trimEvery between two looks at the size of the feed
	// of changes.
	cleanEvery = time.Hour
	trimEvery  = time.Minute
)

// clean forgets the keys of old creates, and how jobs have ended. The keys of events go with a commit of their instance.
func (r *Router) clean() {
	if err := retry.CleanCreates(r.o.Store, r.env.ForgetBefore()); err != nil {
		r.o.Log.Warn().Err(err).Msg("keys of creates cannot be cleaned")
	}
	if err := job.Forget(r.o.Store, r.o.Clock().Add(-r.o.KeysKeptFor)); err != nil {
		r.o.Log.Warn().Err(err).Msg("ends of jobs cannot be cleaned")
	}
}

// Accepting returns nil while writes are taken, else failure.ErrUnavailable.
func (r *Router) Accepting() error { return failure.OfStore(r.o.Store.Accepting()) }

// backlogMax is how much may wait for the store, in bytes, before writes are refused: less than a second of what a disk
// takes. Large records would fill the memory, and the store would take the wait for a disk that hangs.
const backlogMax = 64 << 20

// accepting says whether a write may begin: Accepting, and failure.ErrBusy.
func (r *Router) accepting() error {
	err := r.Accepting()
	if err == nil && r.Backlog() > backlogMax {
		r.shards.Refused()
		err = failure.ErrBusy
	}
	return err
}

// Send delivers one event to an instance: ErrNotFound without such an instance or a newest definition, ErrForbidden
// without the right to the workflow or to the event, ErrInvalid for what the definition does not declare,
// ErrNotAllowed, ErrPrecondition, ErrTooLarge, ErrExecution when an action fails, ErrKeyReused for a key of another
// request, ErrBusy, ErrInstanceBusy and ErrQuota, ErrUnavailable, and ErrOutcomeUnknown.
func (r *Router) Send(_ context.Context, req *message.Event) (*message.Reply, error) {
	if req.Key != "" {
		reply, err := r.sendByKey(req)
		return reply, failure.In("send to", req.WorkflowID, err)
	}
	at, err := r.maySend(req)
	if err != nil {
		return nil, failure.In("send to", req.WorkflowID, err)
	}
	reply, err := r.askAt(at, req.WorkflowID, instance.Send{Event: req})
	if err != nil {
		return nil, failure.In("send to", req.WorkflowID+"/"+req.InstanceID, err)
	}
	return reply, nil
}

// PostEvent is Send for a caller who does not wait: to gets the answer. The errors that it returns are answers
// themselves, and to gets none. The same request may be posted again after ErrBusy and ErrInstanceBusy; it counts once
// towards its caller's quota.
func (r *Router) PostEvent(req *message.Event, to message.Recipient) (Posted, error) {
	if req.Key != "" {
		return Posted{}, r.answerLater(req.WorkflowID, to, func() (*message.Reply, error) { return r.sendByKey(req) })
	}
	at, err := r.maySend(req)
	var c *instance.Call
	if err == nil {
		c, err = r.post(at, req.WorkflowID, instance.Send{Event: req}, to)
	}
	return r.posted(c), err
}

// maySend makes the checks of an event that come before its instance, and finds that, or the shard of its key.
func (r *Router) maySend(req *message.Event) (at shard.Place, err error) {
	now := r.o.Clock()
	if err = r.env.MaySend(req, now); err != nil {
		return at, err
	}
	var found error
	if req.Key == "" {
		at, found = r.shards.Find(req.InstanceID)
	} else {
		at, found = r.shards.Lead(businesskey.ShardOf(r.o.Store, req.WorkflowID, req.Key))
	}
	if errors.Is(found, failure.ErrNotLeader) {
		return at, found // before it counts towards a quota, as it does where it is led
	}
	if err = r.accepting(); err == nil && !req.Counted {
		err = r.env.CountRefusal(r.eventQuota.Take(req.Caller.ID, now))
		req.Counted = err == nil
	}
	return at, cmp.Or(err, found)
}

// Load returns an instance as it is after everything that was acknowledged: ErrNotFound, ErrForbidden without the right
// to read the workflow, ErrExecution when what is stored cannot be read, ErrBusy and ErrInstanceBusy, and
// ErrUnavailable.
//
// With At it is the instance after that entry, made of its history, which is read beside the actor: failure.ErrNotFound
// when there is no such entry, and failure.ErrNotKept when the history does not have all that made one.
func (r *Router) Load(ctx context.Context, req *message.Load) (reply *message.Reply, err error) {
	if req.At > 0 {
		reply, err = r.loadAt(ctx, req)
	} else {
		reply, err = r.askReader(req, instance.Load{Load: req})
	}
	return reply, failure.In("load", req.WorkflowID+"/"+req.InstanceID, err)
}

// askReader asks an instance what only readers of the workflow may ask.
func (r *Router) askReader(req *message.Load, m instance.Request) (*message.Reply, error) {
	if err := r.env.MayRead(req); err != nil {
		return nil, err
	}
	return r.ask(req.WorkflowID, req.InstanceID, m)
}

// StopWatching ends all calls of Watch, and refuses new ones. Calls of Changes wait no more.
func (r *Router) StopWatching() { r.Watches.Stop(); r.Changes.Stop() }

// Choices lists the workflows that the caller may create, by id.
func (r *Router) Choices(p *identity.Principal) []catalog.Choice {
	return r.o.Catalog.Choices(catalog.CallerOf(p), r.o.Clock())
}

// Choice returns one of the Choices; false when the caller may not create it.
func (r *Router) Choice(p *identity.Principal, workflowID string) (catalog.Choice, bool) {
	return r.o.Catalog.Choice(workflowID, catalog.CallerOf(p), r.o.Clock())
}

// Declares reports whether new instances of the workflow know the event.
func (r *Router) Declares(workflowID, event string) bool {
	d, err := r.o.Catalog.Creatable(workflowID)
	name, ok := statemachine.ParseEventName(event)
	return ok && err == nil && d.Declares(name)
}

func (r *Router) ask(workflowID, instanceID string, m instance.Request) (*message.Reply, error) {
	at, err := r.shards.Find(instanceID)
	if err != nil {
		return nil, err
	}
	return r.askAt(at, workflowID, m)
}

func (r *Router) askAt(at shard.Place, workflowID string, m instance.Request) (*message.Reply, error) {
	c, err := r.post(at, workflowID, m, nil)
	if err != nil {
		return nil, err
	}
	return r.shards.Wait(c)
}

func (r *Router) post(at shard.Place, workflowID string, m instance.Request, to message.Recipient) (*instance.Call, error) {
	if err := r.shards.Admit(); err != nil {
		return nil, err
	}
	return r.shards.Post(at, workflowID, m, to)
}

// Metrics is a snapshot of the router's counters.
type Metrics struct {
	// Awake, AwakeBytes (about) and InFlight are what there is now.
	Awake, AwakeBytes, InFlight int64
	// The rest is counted since the start: Refused by limits of capacity, OverQuota by Options.Quotas.
	Woken, Slept, Refused, OverQuota, Panics, Damaged, Events, Creates, Incidents int64
	// Deletions, by cause: a request for one, that for the one that invoked it, a bulk job, the retention of a workflow.
	DeletedByRequest, DeletedByCascade, DeletedByBulk, DeletedByRetention int64
	// Restarts are those of instances that panicked, Rests how often one was not woken for a while behind too many, and
	// DeadLetters messages to actors that had ended.
	Restarts, Rests, DeadLetters int64
	// Recovered is how often a goroutine of the process panicked and went on (package guard).
	Recovered int64
	// Timers and Outbox are those of what happens on its own.
	Timers timer.Metrics
	Outbox outbox.Metrics
}

// Metrics returns the counters as they are now.
func (r *Router) Metrics() Metrics {
	queries := r.Queries.Metrics()
	counts, shards, system := &r.env.Counts, r.shards.Metrics(), r.o.System.Metrics()
	m := Metrics{
		Awake: shards.Awake, AwakeBytes: shards.AwakeBytes, InFlight: shards.InFlight,
		Woken: shards.Woken, Slept: counts.Slept.Load(), Refused: shards.Refused + queries.Refused, OverQuota: counts.OverQuota.Load(),
		Panics: counts.Panics.Load(), Damaged: counts.Damaged.Load() + queries.Damaged,
		Events: counts.Events.Load(), Creates: counts.Creates.Load(), Incidents: counts.Incidents.Load(),
		DeletedByRequest: r.deleted.request.Load(), DeletedByCascade: r.deleted.cascade.Load(),
		DeletedByBulk: r.deleted.bulk.Load(), DeletedByRetention: r.deleted.retention.Load(),
		Restarts: shards.Restarts, Rests: shards.Rests, DeadLetters: system.DeadLetters,
		Recovered: guard.Panics(), Timers: r.env.Timers.Metrics(),
	}
	if r.env.Outbox != nil {
		m.Outbox = r.env.Outbox.Metrics()
	}
	return m
}

// InFlightMax is Options.InFlightMax.
func (r *Router) InFlightMax() int { return r.o.InFlightMax }

// Backlog is how many bytes wait for the store.
func (r *Router) Backlog() int64 { return r.o.Store.Backlog() }

// Posted is a request on its way to its instance.
type Posted struct {
	call   *instance.Call // nil: the answer comes in any case
	router *Router
	round  int64 // of the sweep, when it was posted
}

func (r *Router) posted(c *instance.Call) Posted { return Posted{c, r, r.shards.Round()} }

// GiveUp says what a request has come to that was not answered in time: failure.ErrBusy when it will never be applied,
// else failure.ErrOutcomeUnknown, and then an answer may still come; nil while there is time.
func (p Posted) GiveUp() error {
	if p.call == nil || p.router.shards.Round()-p.round <= int64(p.router.o.ReplyWaitMax/shard.SweepEvery) {
		return nil
	}
	return p.call.GiveUp()
}
