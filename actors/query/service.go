package query

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/fanout"
	"troupe/actors/identity"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/filter"
)

// Options says how a Service works. All but Current and Fanout must be set.
type Options struct {
	Store    *persistence.Store
	Catalog  *catalog.Catalog
	Clock    func() time.Time
	InFlight *atomic.Int64 // how many calls instances have to answer
	// QueriesMax is how many queries work at a time, and ListsMax how many lists. Users share them fairly.
	QueriesMax, ListsMax         int
	QueriesOpenMax, ListsOpenMax int           // QueriesOpenMax and ListsOpenMax are how many have a snapshot at a time
	QueryWaitMax                 time.Duration // how long a query waits for a slot
	TimeMax                      time.Duration // how long a query or list may take, and how long a list waits for a slot
	// Current returns when this node's replica of a shard has everything that was acknowledged before, or an error at
	// once without one. Nil: the store is standalone.
	Current func(context.Context, key.Shard) error
	// Fanout asks the nodes that lead the shards. Nil: this node has all of them.
	Fanout *fanout.Service
	// AuditRead records that an operator looks at instances of a workflow, and returns when that is durable. Nil: nobody asks.
	AuditRead func(ctx context.Context, operator identity.UserID, workflow string) error
}

// Service runs queries and lists. Its methods are safe for concurrent use.
type Service struct {
	Limits  Limits // the usual ones, unless they are set before it is asked
	o       Options
	queries *readers // and filters of watches that take long
	lists   *readers
	current *current        // nil: the store is standalone
	kinds   kinds           // what leaders are asked, with Options.Fanout
	stopped context.Context // stopped ends when Stop ends the queries and lists
	stop    context.CancelFunc

	refused, damaged atomic.Int64
}

// New returns a service. Stop ends it.
func New(o Options) *Service {
	s := &Service{
		o: o, Limits: usualLimits,
		queries: newReaders(o.QueriesOpenMax, o.QueriesMax, newShares(o.InFlight)), lists: newReaders(o.ListsOpenMax, o.ListsMax, nil),
	}
	s.stopped, s.stop = context.WithCancel(context.Background())
	s.current = newCurrent(s.stopped, o.Store, o.Current)
	if o.Fanout != nil {
		s.kinds = s.newKinds(o.Fanout)
	}
	return s
}

// Stop refuses new queries and lists with failure.ErrUnavailable and ends the others.
func (s *Service) Stop() { s.stop() }

// Open returns how many slots queries and lists hold; one that works holds two.
func (s *Service) Open() (queries, lists int) { return s.queries.count(), s.lists.count() }

// Metrics are counted since the start.
type Metrics struct {
	Refused, Damaged int64 // those that got no slot in time, Damaged the instances and rows that could not be read
}

// Metrics returns the counters as they are now.
func (s *Service) Metrics() Metrics {
	return Metrics{Refused: s.refused.Load(), Damaged: s.damaged.Load()}
}

// enter waits for slots, which leave gives back also after an error.
func (s *Service) enter(ctx context.Context, of *slots, wait time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if of.open != nil {
		err = of.open.Acquire(ctx)
	}
	if err == nil {
		err = of.resume(ctx)
	}
	if err != nil {
		s.refused.Add(1)
		return failure.ErrBusy
	}
	return nil
}

func (s *Service) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, s.o.TimeMax)
	forget := context.AfterFunc(s.stopped, cancel)
	return ctx, func() { forget(); cancel() }
}

// Work does for a user what costs as much as a query, beside the queries: it waits for a slot of the user's, and check, which is called now and
// then, keeps to their share of the machine and ends with ctx.
func (s *Service) Work(ctx context.Context, user identity.UserID, do func(check func() error) error) error {
	got := s.queries.brief(user)
	if err := got.resume(ctx); err != nil {
		return err
	}
	defer got.leave()
	return do((&throttle{ctx: ctx, slots: got}).check)
}

// Match matches one document beside the queries: it waits for a slot of the user's, keeps to their share of the
// machine, and ends with ctx, or with context.DeadlineExceeded after TimeMax.
func (s *Service) Match(ctx context.Context, user identity.UserID, f *filter.Filter, d filter.Document) (bool, error) {
	got := s.queries.brief(user)
	if err := got.resume(ctx); err != nil {
		return false, err
	}
	defer got.leave()
	ctx, cancel := context.WithTimeout(ctx, s.o.TimeMax)
	defer cancel()
	t := throttle{ctx: ctx, slots: got}
	var ended error
	d.Ended = func() bool {
		if ended == nil {
			ended = t.check()
		}
		return ended != nil
	}
	match := f.Match(d)
	return match, ended
}

// AwaitCurrentIn returns when everything that was acknowledged in some shards before the call is visible on this node; in a
// standalone store it always is. failure.ErrNotLeader: another node leads one of them. failure.ErrUnavailable: it does not
// become so.
func (s *Service) AwaitCurrentIn(ctx context.Context, shards []key.Shard) error {
	_, err := s.current.await(ctx, shards)
	return err
}

// audit has a query recorded that only a privilege makes possible, before it answers: a count or an order tells of data too.
func (q *query) audit(ctx context.Context) error {
	if q.fields.private || q.filter.UsesPrivate() || q.sort != nil && q.sort.Field().Private() {
		return q.service.auditRead(ctx, q.req.Caller, q.workflowID)
	}
	if q.req.Everyones && !q.filter.UsesData() { // ids alone
		return nil
	}
	return q.service.AuditReads(ctx, q.req.Caller, q.rules)
}

// AuditReads has it recorded that a caller is shown data of instances, where the caller is an operator and it may be a
// privilege that makes it possible. It returns when that is durable.
func (s *Service) AuditReads(ctx context.Context, by *identity.Principal, rules *statemachine.Definition) error {
	if !by.IsOperator() || !rules.ReadsByPrivilege(catalog.CallerOf(by), s.o.Clock()) {
		return nil
	}
	return s.auditRead(ctx, by, string(rules.ID))
}

func (s *Service) auditRead(ctx context.Context, by *identity.Principal, workflow string) error {
	if s.o.AuditRead == nil {
		return nil
	}
	return s.o.AuditRead(ctx, by.ID, workflow)
}

func (q *query) explained() *Explain {
	if q.right == statemachine.Granted {
		q.explain.Milliseconds = float64(time.Since(q.begun).Microseconds()) / 1000
		return &q.explain
	}
	e := &Explain{Matched: q.explain.Matched, Considered: []Considered{}}
	names := q.usable(q.filter)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		e.Considered = append(e.Considered, Considered{Index: name})
	}
	return e
}

func (q *query) usable(f *filter.Filter) (names []string) {
	for _, a := range q.accesses(f) {
		names = append(names, a.index)
	}
	for _, branches := range f.Alternatives() {
		for _, b := range branches {
			names = append(names, q.usable(b)...)
		}
	}
	return names
}
