package changefeed

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
)

// Options says how a Service works.
type Options struct {
	// Store, Catalog, Current and Clock are required. Current is query.Service.AwaitCurrent.
	Store   *persistence.Store
	Catalog *catalog.Catalog
	Current func(context.Context, key.Shard) error
	Clock   func() time.Time
	Log     zerolog.Logger
	// KeptFor is how long rows are kept, and RowsMax how many are kept in a shard. Required.
	KeptFor time.Duration
	RowsMax int
}

// Service writes, reads and trims the feed. Its methods are safe for concurrent use.
type Service struct {
	o       Options
	stopped context.Context // stopped ends when Stop ends the waits
	stop    context.CancelFunc
}

// New returns a service. Stop ends it.
func New(o Options) *Service {
	s := &Service{o: o}
	s.stopped, s.stop = context.WithCancel(context.Background())
	return s
}

// Stop has all calls of Changes that wait answered with what there is.
func (s *Service) Stop() { s.stop() }

// Announce adds the row of a new entry to its commit, which is of the instance's shard. placed,
// unless it is nil, has the row's place before the waiter of the commit is told anything;
func (s *Service) Announce(w *persistence.Writes, of *Row, placed *key.FeedPlace) {
	var room [128]byte
	w.Announce(s.o.Clock().UnixMilli(), of.appendValue(room[:0]), placed)
}

// Now is a cursor behind everything that is visible on this node. What it stands behind may not be durable yet;
// persistence.Store.AwaitDurable waits for that.
func (s *Service) Now() (Cursor, error) {
	sn := s.o.Store.Snapshot()
	defer func() { _ = sn.Close() }() // read-only: nothing to lose
	c := make(Cursor, s.o.Store.Shards())
	for sh := range c {
		last, err := sn.FeedEnd(key.Shard(sh)) //nolint:gosec // of the store
		if err != nil {
			return nil, failure.OfStore(err)
		}
		c[sh] = last.Place
	}
	return c, s.hasReplicas()
}

func (s *Service) hasReplicas() error {
	if s.o.Store.Alone() {
		return nil
	}
	for sh := range s.o.Store.Shards() {
		if s.o.Store.Replica(key.Shard(sh)) == nil {
			return failure.Errorf(failure.ErrUnavailable, "this node has no replica of shard %d any more", sh)
		}
	}
	return nil
}

func (s *Service) oldest(sn *persistence.Snapshot) (Cursor, error) {
	c := make(Cursor, s.o.Store.Shards())
	for sh := range c {
		var err error
		if c[sh], err = sn.FeedFloor(key.Shard(sh)); err != nil { //nolint:gosec // of the store
			return nil, failure.OfStore(err)
		}
	}
	return c, s.hasReplicas()
}

// ErrEnough, returned by visit, ends Walk.
var ErrEnough = errors.New("seen enough")

// Walk calls visit for each row behind c, in the order of their places, and moves c on behind each for which visit has
// returned nil. When it returns nil, c is behind all that the snapshot has. ErrGone: rows behind c were removed.
func (s *Service) Walk(sn *persistence.Snapshot, c Cursor, visit func(*Row) error) (err error) {
	ranges := make([]key.Range, len(c))
	for n := range c {
		sh := key.Shard(n) //nolint:gosec // of the store
		floor, err := sn.FeedFloor(sh)
		if err != nil {
			return failure.OfStore(err)
		}
		if c[n] < floor {
			return ErrGone
		}
		first := key.Feed(nil, sh, c[n]+1)
		prefix := key.FeedPrefix(nil, sh)
		ranges[n] = key.Range{Prefix: prefix, From: first[len(prefix):]}
	}
	m := sn.Merge(ranges...)
	defer func() { err = errors.Join(err, failure.OfStore(m.Close())) }()
	for m.Next() {
		row, err := ParseRow(m.Key(), m.Value())
		if err != nil {
			return failure.OfStore(err)
		}
		if err := visit(&row); err != nil {
			return err
		}
		c.Saw(row.Shard, row.Place)
	}
	return failure.OfStore(m.Err())
}
