package activity

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"

	"troupe/actors/failure"
	"troupe/actors/internal/history"
	"troupe/actors/internal/instanceid"
	"troupe/actors/pending"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// LimitMax is the longest page.
const LimitMax = 1000

// Item is one line of what has happened. Exactly one of its last fields is set.
type Item struct {
	At time.Time
	// User did it; "" for what waits.
	User string

	Entry    data.Value // of the history, with its data
	Sequence uint64     // of Entry
	Row      *Row
	Timer    *statemachine.Timer
	Delivery *pending.Delivery
	// Name is that of the timer.
	Name string

	place place
}

// place is where an item stands: behind an entry, in a rank, by number.
type place struct {
	sequence uint64
	rank     byte
	number   uint64
}

// The ranks of what stands behind one entry.
const (
	entryRank byte = iota
	rowRank
	deliveryRank
	timerRank
)

const placeBytes = 8 + 1 + 8

func (p place) append(dst []byte) []byte {
	return binary.BigEndian.AppendUint64(append(binary.BigEndian.AppendUint64(dst, p.sequence), p.rank), p.number)
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.sequence, q.sequence), cmp.Compare(p.rank, q.rank), cmp.Compare(p.number, q.number))
}

// Request asks for a page of an instance that the caller may see.
type Request struct {
	Instance persistence.ID
	// Sequence is that of its last entry. Entries up to that are durable.
	Sequence   uint64
	Timers     []statemachine.Timer
	Deliveries []pending.Delivery
	// OldestFirst: otherwise the newest come first.
	OldestFirst bool
	Limit       int
	Cursor      string
}

// Page is a part of it. Next is empty at the end.
type Page struct {
	Items []*Item
	Next  string
}

// Read returns a page: failure.ErrInvalid for a limit or cursor that cannot be, and the errors of failure.OfStore.
func Read(store *persistence.Store, req *Request) (*Page, error) {
	if req.Limit < 1 || req.Limit > LimitMax {
		return nil, failure.Refuse(failure.ErrInvalid, "the limit must be 1 to %d", LimitMax)
	}
	r := &reading{store: store, req: req, sh: store.ShardOf(req.Instance)}
	order := "desc"
	if req.OldestFirst {
		order = "asc"
	}
	list := query.List{"activity", instanceid.Text(req.Instance), order}
	if req.Cursor != "" {
		position, err := list.Position(req.Cursor)
		if err == nil && len(position) != placeBytes {
			err = query.ErrCursor
		}
		if err != nil {
			return nil, err
		}
		r.after = &place{binary.BigEndian.Uint64(position), position[8], binary.BigEndian.Uint64(position[9:])}
	}
	if err := errors.Join(r.addEntries(), r.addRows()); err != nil {
		return nil, err
	}
	r.addWaiting()
	slices.SortFunc(r.items, func(a, b *Item) int { return r.order(a.place, b.place) })
	page := &Page{Items: r.items}
	if len(r.items) > req.Limit {
		page.Items = r.items[:req.Limit]
		page.Next = list.Cursor(page.Items[req.Limit-1].place.append(nil))
	}
	return page, nil
}

// reading is one call of Read. Of each kind it has one item more than the page, at least, where there are so many.
type reading struct {
	store *persistence.Store
	req   *Request
	sh    persistence.Shard
	after *place // where the page before ended; nil for the first
	items []*Item
}

func (r *reading) order(a, b place) int {
	if r.req.OldestFirst {
		return a.compare(b)
	}
	return b.compare(a)
}

// add takes an item that belongs to this page or a later one.
func (r *reading) add(i *Item) {
	if r.after == nil || r.order(i.place, *r.after) > 0 {
		r.items = append(r.items, i)
	}
}

// addEntries reads history entries next to the place.
func (r *reading) addEntries() error {
	first, last := uint64(1), r.req.Sequence
	most := uint64(r.req.Limit) + 1 //nolint:gosec // positive
	if r.req.OldestFirst {
		if r.after != nil {
			first = r.after.sequence
		}
		last = min(last, first+most)
	} else {
		if r.after != nil {
			last = min(last, r.after.sequence)
		}
		if last > most {
			first = last - most
		}
	}
	for n := max(first, 1); n <= last; n++ {
		entry, _, err := history.Page(r.store, r.sh, r.req.Instance, n, n, true)
		if err != nil {
			return failure.OfStore(err)
		}
		item := &Item{Entry: entry, Sequence: n, place: place{n, entryRank, 0}}
		if user, ok := item.Entry.Lookup("user"); ok {
			item.User = user.Text()
		}
		if ts, ok := item.Entry.Lookup("ts"); ok {
			item.At, _ = time.Parse(statemachine.TimeLayout, ts.Text())
		}
		r.add(item)
	}
	return nil
}

// addRows reads rows next to the place.
func (r *reading) addRows() error {
	prefix := persistence.ActivityPrefix(nil, r.sh, r.req.Instance)
	snapshot := r.store.Snapshot()
	defer func() { _ = snapshot.Close() }() // read-only: nothing to lose
	lower, upper := prefix, persistence.PrefixEnd(prefix)
	if r.after != nil {
		at := binary.BigEndian.AppendUint64(slices.Clone(prefix), r.after.sequence)
		if r.req.OldestFirst {
			lower = at
		} else {
			upper = binary.BigEndian.AppendUint32(at, math.MaxUint32)
		}
	}
	cursor := snapshot.Backward
	if r.req.OldestFirst {
		cursor = snapshot.Cursor
	}
	c := cursor(lower, upper)
	before, read := len(r.items), error(nil)
	for c.Next() && len(r.items)-before <= r.req.Limit {
		var row Row
		if row, read = Parse(c.Key(), c.Value()); read != nil {
			read = failure.Errorf(failure.ErrExecution, "%w", read)
			break
		}
		r.add(&Item{At: row.At, User: row.User, Row: &row, place: place{row.Sequence, rowRank, uint64(row.Number)}})
	}
	return errors.Join(read, failure.OfStore(errors.Join(c.Err(), c.Close())))
}

// addWaiting adds what is there as long as it waits.
func (r *reading) addWaiting() {
	for i := range r.req.Deliveries {
		d := &r.req.Deliveries[i]
		_, sequence, number, _ := instanceid.ParsePart(d.ID)
		r.add(&Item{At: d.Created, Delivery: d, place: place{sequence, deliveryRank, uint64(number)}})
	}
	timers := slices.SortedFunc(slices.Values(r.req.Timers), func(a, b statemachine.Timer) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.ID.Sequence, b.ID.Sequence), cmp.Compare(a.ID.Number, b.ID.Number))
	})
	for i := range timers {
		t := &timers[i]
		const among = 1 << 12 // more than an instance can have
		r.add(&Item{
			At: t.Due, Timer: t, Name: instanceid.PartText(r.req.Instance, t.ID.Sequence, t.ID.Number),
			place: place{math.MaxUint64, timerRank, uint64(max(t.Due.UnixMilli(), 0))*among + uint64(i)}, //nolint:gosec // not negative
		})
	}
}
