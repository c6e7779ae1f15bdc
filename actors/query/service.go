package query

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/wait"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/replica"
	"troupe/statemachine"
	"troupe/statemachine/filter"
)

// Options says how a Service works. All but Current must be set.
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
}

// Service runs queries and lists. Its methods are safe for concurrent use.
type Service struct {
	Limits  Limits // the usual ones, unless they are set before it is asked
	o       Options
	queries *readers // and filters of watches that take long
	lists   *readers
	current *current        // nil: the store is standalone
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
	s.current = newCurrent(s.stopped, &s.o)
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

func (s *Service) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, s.o.TimeMax)
	forget := context.AfterFunc(s.stopped, cancel)
	return ctx, func() { forget(); cancel() }
}

// Match matches one document beside the queries: it waits for a slot of the user's, keeps to their share of the
// machine, and ends with ctx, or with context.DeadlineExceeded after TimeMax.
func (s *Service) Match(ctx context.Context, user identity.UserID, f *filter.Filter, d filter.Document) (bool, error) {
	got := &slots{of: s.queries, user: user, busy: s.queries.busy.Slot(user)}
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

const currentWaitMax = 5 * time.Second

// current shares the calls between those who ask.
type current struct {
	of     *persistence.Store
	rounds wait.Rounds
}

// newCurrent returns nil for a standalone store: it always is current.
func newCurrent(ctx context.Context, o *Options) *current {
	if o.Current == nil || o.Store.Standalone() {
		return nil
	}
	c := &current{of: o.Store}
	c.rounds.Context, c.rounds.WaitMax = ctx, currentWaitMax
	c.rounds.Ask = func(ctx context.Context) error {
		failed := make([]error, o.Store.Shards())
		var asked sync.WaitGroup
		for sh := range failed {
			asked.Go(func() { failed[sh] = o.Current(ctx, key.Shard(sh)) })
		}
		asked.Wait()
		for _, err := range failed {
			if err != nil {
				return notCurrent(err)
			}
		}
		return nil
	}
	return c
}

// notCurrent is failure.ErrNotLeader when another node can read it, else failure.ErrUnavailable.
func notCurrent(err error) error {
	if kind := failure.Of(err).Kind; kind == failure.ErrNotLeader || kind == failure.ErrUnavailable {
		return err
	}
	return failure.Errorf(failure.ErrUnavailable, "%w", err)
}

type held []*replica.Group

// await returns when everything that was acknowledged before the call is visible here, in every shard.
func (c *current) await(ctx context.Context) (held, error) {
	if c == nil {
		return nil, nil
	}
	replicas := c.replicas()
	if err := c.rounds.Await(ctx); err != nil {
		return nil, notCurrent(err)
	}
	if slices.Contains(replicas, nil) {
		return nil, failure.Errorf(failure.ErrUnavailable, "a replica has come to this node only now")
	}
	return replicas, nil
}

// holds returns nil if a snapshot taken after await still had the rows of all replicas.
func (c *current) holds(h held) error {
	if c == nil || slices.Equal(h, c.replicas()) {
		return nil
	}
	return failure.Errorf(failure.ErrUnavailable, "a replica was taken from this node")
}

func (c *current) replicas() held {
	h := make(held, c.of.Shards())
	for sh := range h {
		h[sh] = c.of.Replica(key.Shard(sh))
	}
	return h
}

// AwaitCurrent returns when everything that was acknowledged before the call is visible on this node, in a shard or in
// key.EveryShard; in a standalone store it always is. failure.ErrNotLeader: this node has not all shards yet,
// and another one has. failure.ErrUnavailable: it does not become so.
func (s *Service) AwaitCurrent(ctx context.Context, sh key.Shard) error {
	if s.current == nil || sh == key.EveryShard {
		_, err := s.current.await(ctx)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, currentWaitMax)
	defer cancel()
	if err := s.o.Current(ctx, sh); err != nil {
		return notCurrent(err)
	}
	return nil
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
