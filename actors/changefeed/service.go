// Package changefeed tells in order what instances went through, from rows in the store: over a restart, and on any
// node. A row says that an instance of a workflow has a new history entry; the store gives it its place when the order
// of the commits is known (persistence.Batch.Announce), so a reader that goes on behind its Cursor misses nothing, and
// entries of one instance come in their order. What is older than Options.KeptFor, or beyond Options.RowsMax rows of a
// shard, is removed; a cursor from before is ErrGone. Rights are those of now. DESIGN.md has the reasons.
package changefeed

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/fanout"
	"troupe/actors/internal/history"
	"troupe/actors/internal/instanceid"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Options says how a Service works.
type Options struct {
	// Store, Catalog, Current and Clock are required. Current is query.Service.AwaitCurrentIn.
	Store   *persistence.Store
	Catalog *catalog.Catalog
	Current func(context.Context, []key.Shard) error
	// Fanout asks the nodes that lead the shards. Nil: this node has all of them.
	Fanout *fanout.Service
	Clock  func() time.Time
	Log    zerolog.Logger
	// KeptFor is how long rows are kept, and RowsMax how many are kept in a shard. Required.
	KeptFor time.Duration
	RowsMax int
}

// Service writes, reads and trims the feed. Its methods are safe for concurrent use.
type Service struct {
	o       Options
	stopped context.Context // stopped ends when Stop ends the waits
	stop    context.CancelFunc
	kinds   kinds // with Options.Fanout
}

// New returns a service. Stop ends it.
func New(o Options) *Service {
	s := &Service{o: o}
	s.stopped, s.stop = context.WithCancel(context.Background())
	if o.Fanout != nil {
		s.kinds = s.newKinds(o.Fanout)
	}
	return s
}

// Stop has all calls of Changes that wait answered with what there is.
func (s *Service) Stop() { s.stop() }

// Announce adds the row of a new entry to its commit, which is of the instance's shard. placed, unless nil, gets the row's
// place before the waiter of the commit is told anything.
func (s *Service) Announce(w *persistence.Batch, of *Row, placed *key.FeedPlace) {
	var room [128]byte
	w.Announce(s.o.Clock().UnixMilli(), of.appendValue(room[:0]), placed)
}

// Put is Announce at a time, for what writes into a store without a service.
func Put(w *persistence.Batch, at time.Time, of *Row) {
	w.Announce(at.UnixMilli(), of.appendValue(nil), nil)
}

// Now is a cursor behind everything that is visible on this node in some shards; it has no place in others. What precedes
// it may not be durable yet; persistence.Store.AwaitDurable waits for that.
func (s *Service) Now(shards []key.Shard) (Cursor, error) {
	sn := s.o.Store.SnapshotOf(shards)
	defer func() { _ = sn.Close() }() // read-only: nothing to lose
	c := make(Cursor, s.o.Store.Shards())
	for _, sh := range shards {
		last, err := sn.FeedEnd(sh)
		if err != nil {
			return nil, failure.OfStore(err)
		}
		c[sh] = last.Place
	}
	return c, nil
}

func (s *Service) oldest(sn *persistence.Snapshot) (Cursor, error) {
	c := make(Cursor, s.o.Store.Shards())
	for _, sh := range sn.Shards() {
		var err error
		if c[sh], err = sn.FeedFloor(sh); err != nil {
			return nil, failure.OfStore(err)
		}
	}
	return c, nil
}

// ErrEnough, returned by visit, ends Walk.
var ErrEnough = errors.New("seen enough")

// Walk calls visit for each row behind c in the shards of a snapshot, in the order of their places, and moves c on behind each for which visit has
// returned nil. When it returns nil, c is behind all that the snapshot has. ErrGone: rows behind c were removed.
func (s *Service) Walk(sn *persistence.Snapshot, c Cursor, visit func(*Row) error) (err error) {
	ranges := make([]key.Range, len(sn.Shards()))
	for n, sh := range sn.Shards() {
		floor, err := sn.FeedFloor(sh)
		if err != nil {
			return failure.OfStore(err)
		}
		if c[sh] < floor {
			return ErrGone
		}
		first := key.Feed(nil, sh, c[sh]+1)
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

// Cursor is how far a reader is: for each numbered shard the place of the last row that it has seen, 0 for none.
type Cursor []key.FeedPlace

// ErrGone: the feed no longer has what follows the cursor.
var ErrGone = failure.Refuse(failure.ErrGone, "the change feed no longer has the entries after this cursor; read the current state and continue without the cursor")

// cursors are cursors of one list, whatever a reader picks from it.
var cursors = query.List{"changes"}

// String is the text of a cursor: the latest place, and for each shard 0 for none or how far it is behind that, plus
// one. It is the same on every node.
func (c Cursor) String() string {
	latest := uint64(slices.Max(c))
	b := binary.AppendUvarint(make([]byte, 0, 10+5*len(c)), latest)
	for _, place := range c {
		if place == 0 {
			b = append(b, 0)
			continue
		}
		b = binary.AppendUvarint(b, latest-uint64(place)+1)
	}
	return cursors.Cursor(b)
}

// ParseCursor reads what String wrote, for a store of so many shards; anything else is query.ErrCursor.
func ParseCursor(text string, shards int) (Cursor, error) {
	b, err := cursors.Position(text)
	if err != nil {
		return nil, err
	}
	latest, n := binary.Uvarint(b)
	if n <= 0 {
		return nil, query.ErrCursor
	}
	c := make(Cursor, shards)
	for sh := range c {
		b = b[n:]
		var behind uint64
		if behind, n = binary.Uvarint(b); n <= 0 || behind > latest {
			return nil, query.ErrCursor
		}
		if behind > 0 {
			c[sh] = key.FeedPlace(latest - behind + 1)
		}
	}
	if len(b) != n {
		return nil, query.ErrCursor
	}
	return c, nil
}

// Saw moves the cursor on to a row.
func (c Cursor) Saw(sh key.Shard, place key.FeedPlace) { c[sh] = max(c[sh], place) }

// Raise moves the cursor on to another one, where that is further.
func (c Cursor) Raise(to Cursor) {
	for sh, place := range to {
		c[sh] = max(c[sh], place)
	}
}

// Has reports whether the cursor is at or behind another one in every shard.
func (c Cursor) Has(other Cursor) bool {
	for sh, place := range other {
		if c[sh] < place {
			return false
		}
	}
	return true
}

// Row says that an instance has a new entry.
type Row struct {
	Shard    key.Shard
	Place    key.FeedPlace
	ID       key.ID
	Sequence uint64 // of the entry
	Workflow string
}

// appendValue appends id(16) sequence(uvarint) workflow.
func (r *Row) appendValue(dst []byte) []byte {
	dst = binary.AppendUvarint(append(dst, r.ID[:]...), r.Sequence)
	return append(dst, r.Workflow...)
}

// ParseRow reads a row as the store has it. Everything in it is the caller's own.
func ParseRow(k, stored []byte) (r Row, err error) {
	of, ok := persistence.ParseFeedRow(k, stored)
	if !ok || len(of.Value) < len(r.ID) {
		return Row{}, persistence.ErrCorrupt
	}
	rest := of.Value[copy(r.ID[:], of.Value):]
	sequence, n := binary.Uvarint(rest)
	if n <= 0 || sequence == 0 || n == len(rest) {
		return Row{}, persistence.ErrCorrupt
	}
	r.Shard, r.Place = key.Shard(binary.BigEndian.Uint16(k)), of.Place
	r.Sequence, r.Workflow = sequence, string(rest[n:])
	return r, nil
}

// Entry is what a row leads to.
type Entry struct {
	*Row
	Name   string // the id as text
	Text   data.Value
	States []byte // that the entry led to
	// Instance is as it is now, under the definition Of. Newest says that this is how the entry left it.
	Instance statemachine.Instance
	Of       *statemachine.Definition
	Newest   bool
}

// Load reads what a row leads to, in the snapshot in which the row was read. It is nil when the instance is gone.
func (s *Service) Load(sn *persistence.Snapshot, row *Row) (*Entry, error) {
	in, err := query.LoadInstance(sn, s.o.Catalog, row.Shard, row.Workflow, row.ID)
	if errors.Is(err, failure.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &Entry{Row: row, Name: instanceid.Text(row.ID), Instance: in.State, Of: in.Of}, nil
}

// LoadText reads the entry itself, which Load has left out: it is read after the rights were checked.
func (s *Service) LoadText(sn *persistence.Snapshot, e *Entry) error { return s.loadText(sn, e, false) }

func (s *Service) loadText(sn *persistence.Snapshot, e *Entry, withData bool) error {
	value, err := sn.Load(key.Entry(nil, e.Shard, e.ID, e.Sequence))
	if err != nil {
		return failure.OfStore(err)
	}
	r := history.NewReader(sn, e.Shard, e.ID)
	read := r.Entry
	if withData {
		read = r.EntryWithData
	}
	if e.Text, err = read(e.Sequence, value); err != nil {
		return failure.Errorf(failure.ErrExecution, "entry of %s: %w", e.Name, err)
	}
	if e.Newest = e.Sequence == e.Instance.Sequence; e.Newest {
		e.States = e.Of.States(&e.Instance)
	} else {
		e.States = e.Of.StatesOf(e.Text)
	}
	return nil
}

// slack is the part of a bound by which a feed may be over it, so that rows go many at a time.
const slack = 64

// Trim removes the rows that are too old or too many, but for the last one of a shard, in the shards that this node
// leads.
func (s *Service) Trim() {
	for n := range s.o.Store.Shards() {
		sh := key.Shard(n)
		epoch := s.o.Store.Epoch(sh)
		if epoch == 0 {
			continue
		}
		last, err := s.removable(sh)
		if err == nil && last > 0 {
			w := s.o.Store.NewBatchIn(sh, epoch)
			persistence.TrimFeed(w, last)
			err = s.o.Store.Commit(w)
		}
		if err != nil && !errors.Is(err, persistence.ErrNotLed) && !errors.Is(err, persistence.ErrClosed) {
			s.o.Log.Warn().Err(err).Uint16("shard", n).Msg("the feed of changes cannot be trimmed")
		}
	}
}

func (s *Service) removable(sh key.Shard) (key.FeedPlace, error) {
	sn := s.o.Store.Snapshot()
	defer func() { _ = sn.Close() }() // read-only: nothing to lose
	end, err := sn.FeedEnd(sh)
	if err != nil || end.Place == 0 {
		return 0, err
	}
	f := shardFeed{sh: sh}
	f.cursor = sn.Cursor(key.Feed(nil, sh, 1), key.PrefixEnd(key.FeedPrefix(nil, sh)))
	before := sn.Backward(key.Feed(nil, sh, 1), key.PrefixEnd(key.FeedPrefix(nil, sh)))
	defer func() { _, _ = f.cursor.Close(), before.Close() }() // read-only: nothing to lose
	first := f.at(1)
	if f.err != nil {
		return 0, f.err
	}
	var cut key.FeedPlace // rows before it go
	now := s.o.Clock()
	if kept := s.o.KeptFor; first.Place.Time() < now.Add(-kept-kept/slack).UnixMilli() {
		cut = key.FeedPlaceAt(now.Add(-kept).UnixMilli())
	}
	if most := uint64(s.o.RowsMax); end.Ordinal-first.Ordinal >= most+most/slack {
		cut = max(cut, f.place(first.Place, end.Place, end.Ordinal-most+1))
	}
	cut = min(cut, end.Place) // NB: the last row stays, it has the ordinal and the place behind which the next one comes
	if cut == 0 || f.err != nil || !before.Seek(key.Feed(nil, sh, cut)) {
		return 0, errors.Join(f.err, before.Err())
	}
	row, ok := persistence.ParseFeedRow(before.Key(), before.Value())
	if !ok {
		return 0, persistence.ErrCorrupt
	}
	return row.Place, nil
}

type shardFeed struct {
	sh     key.Shard
	cursor *persistence.Cursor
	err    error // the first one
}

func (f *shardFeed) at(place key.FeedPlace) persistence.FeedRow {
	if f.err != nil {
		return persistence.FeedRow{}
	}
	if !f.cursor.Seek(key.Feed(nil, f.sh, place)) {
		f.err = errors.Join(persistence.ErrCorrupt, f.cursor.Err())
		return persistence.FeedRow{}
	}
	row, ok := persistence.ParseFeedRow(f.cursor.Key(), f.cursor.Value())
	if !ok {
		f.err = persistence.ErrCorrupt
	}
	return row
}

// Ordinals grow with places: it halves what is left.
func (f *shardFeed) place(first, last key.FeedPlace, ordinal uint64) key.FeedPlace {
	for first < last && f.err == nil {
		middle := first + (last-first)/2
		if row := f.at(middle); row.Ordinal < ordinal {
			first = row.Place + 1
		} else {
			last = middle
		}
	}
	return first
}
