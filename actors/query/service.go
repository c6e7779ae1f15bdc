package query

import (
	"context"
	"sync/atomic"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/identity"
	"troupe/persistence"
	"troupe/persistence/key"
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
	// once without one. Nil: the store stands alone.
	Current func(context.Context, key.Shard) error
}

// Service runs queries and lists. Its methods are safe for concurrent use.
type Service struct {
	o       Options
	limits  limits
	queries *readers // and filters of watches that take long
	lists   *readers
	current *current        // nil: the store stands alone
	stopped context.Context // stopped ends when Stop ends the queries and lists
	stop    context.CancelFunc

	refused, damaged atomic.Int64
}

// New returns a service. Stop ends it.
func New(o Options) *Service {
	s := &Service{
		o: o, limits: usualLimits,
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
