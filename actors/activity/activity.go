// Package activity is what has happened to an instance, in one order: its history, and beside it comments, claims of
// tasks, and what waits.
//
// A row follows the history entry that was the last one when it was written, so comments and claims change
// neither the history nor its sequence numbers. Timers have not come yet: they are the newest. Deliveries follow
// the entry that sent them, as long as they have not arrived.
package activity

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"troupe/actors/failure"
	"troupe/actors/internal/history"
	"troupe/actors/internal/instanceid"
	"troupe/actors/pending"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/packed"
)

// Kind is what a Row is. Its numbers are part of the on-disk format.
type Kind byte

const (
	Comment  Kind = iota + 1 // somebody has written Text
	Claimed                  // somebody has taken a task over
	Released                 // a task is nobody's again
	Assigned                 // a task belongs to To
	kinds
)

// String is the action of a task's activity.
func (k Kind) String() string {
	return [kinds]string{Comment: "comment", Claimed: "claim", Released: "release", Assigned: "assign"}[k]
}

// Row is something that happened to an instance and is not a history entry.
type Row struct {
	Kind     Kind
	At       time.Time
	User     string
	Text     string                 // of a comment
	Task     statemachine.ElementID // Task and its node are those that was claimed, released or assigned; To has it now
	Node     statemachine.Position
	To       string
	Sequence uint64 // that of the last history entry before it, and Number counts those behind that entry
	Number   uint32
}

const rowFormat = 1

// ErrDamaged: a row cannot be read.
var ErrDamaged = errors.New("an activity cannot be read")

// Append appends the stored form, which is without Sequence and Number: format(1) kind(1) time user text task node to.
func (r *Row) Append(dst []byte) []byte {
	dst = packed.AppendTime(append(dst, rowFormat, byte(r.Kind)), r.At)
	dst = packed.AppendText(packed.AppendText(dst, r.User), r.Text)
	if r.Kind == Comment {
		return dst
	}
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, r.Task.Sequence), uint64(r.Task.Number))
	dst = packed.AppendText(packed.AppendText(dst, r.Node.Machine), r.Node.Node)
	return packed.AppendText(dst, r.To)
}

// Parse reads a row.
func Parse(k, stored []byte) (a Row, err error) {
	sequence, number, ok := key.ParseActivity(k)
	r := packed.NewReader(stored)
	format := r.Byte()
	a = Row{Kind: Kind(r.Byte()), At: r.Time(), User: string(r.Text()), Text: string(r.Text()), Sequence: sequence, Number: number}
	if a.Kind != Comment {
		a.Task.Sequence = r.Uvarint()
		a.Task.Number = uint32(r.Uvarint()) //nolint:gosec // what does not fit is no number of a task
		a.Node = statemachine.Position{Machine: statemachine.MachineID(r.Text()), Node: statemachine.NodeID(r.Text())}
		a.To = string(r.Text())
	}
	if !ok || format != rowFormat || a.Kind == 0 || a.Kind >= kinds || !r.Whole() {
		return Row{}, fmt.Errorf("%w: layout", ErrDamaged)
	}
	return a, nil
}

// Next is the number of the next row behind a history entry. The store has all rows of the instance.
func Next(store *persistence.Store, sh key.Shard, id key.ID, sequence uint64) (uint32, error) {
	prefix := binary.BigEndian.AppendUint64(key.ActivityPrefix(nil, sh, id), sequence)
	snapshot := store.Snapshot()
	defer func() { _ = snapshot.Close() }() // read-only: nothing to lose
	c := snapshot.Backward(prefix, key.PrefixEnd(prefix))
	next := uint32(0)
	if c.Next() {
		_, last, ok := key.ParseActivity(c.Key())
		if !ok {
			return 0, failure.OfStore(errors.Join(persistence.ErrCorrupt, c.Close()))
		}
		next = last + 1
	}
	return next, failure.OfStore(errors.Join(c.Err(), c.Close()))
}

const (
	LimitMax     = 1000    // the longest page
	pageBytesMax = 4 << 20 // pageBytesMax ends a page early, so that it fits into memory
)

// Item is one line of what has happened. Exactly one of its last fields is set.
type Item struct {
	At   time.Time
	User string // User did it; "" for what waits

	Entry    data.Value // of the history, with its data
	Sequence uint64     // of Entry
	Row      *Row
	Timer    *statemachine.Timer
	Delivery *pending.Delivery
	Name     string // that of the timer

	place place
}

// place is where an item stands: behind an entry, in a rank, by number.
type place struct {
	sequence uint64
	rank     byte
	number   uint64
}

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
	Instance key.ID
	// Sequence is that of its last entry. Entries up to that are durable, and nothing behind a later one is shown.
	Sequence    uint64
	Timers      []statemachine.Timer
	Deliveries  []pending.Delivery
	OldestFirst bool // otherwise the newest come first
	// From is the entry that the first page begins with when the oldest come first; 0: the first.
	From   uint64
	Limit  int // 1 to LimitMax, and Cursor Page.Next of the page before, in the same order
	Cursor string
}

// Page is a part of it. It may be shorter than the limit although more follows: Next is empty at the end.
type Page struct {
	Items []*Item
	Next  string
}

// Read returns a page when everything on it is durable: failure.ErrInvalid for a limit or cursor that cannot be, and the errors of
// failure.OfStore.
func Read(store *persistence.Store, req *Request) (*Page, error) {
	if req.Limit < 1 || req.Limit > LimitMax {
		return nil, failure.Refuse(failure.ErrInvalid, "the limit must be 1 to %d", LimitMax)
	}
	r := &reading{store: store, req: req, sh: store.ShardOf(req.Instance)}
	r.entries = history.NewReader(store, r.sh, req.Instance)
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
	if r.after == nil && req.OldestFirst && req.From > 1 {
		r.after = &place{req.From - 1, math.MaxUint8, math.MaxUint64}
	}
	if err := errors.Join(r.addEntries(), r.addRows()); err != nil {
		return nil, err
	}
	r.addWaiting()
	page := &Page{Items: r.items}
	if n, more := r.cut(); more {
		page.Items = r.items[:n]
		page.Next = list.Cursor(page.Items[n-1].place.append(nil))
	}
	return page, failure.OfStore(store.AwaitDurable())
}

// reading is one call of Read. Of each kind it has one item more than the page, where there are so many.
type reading struct {
	store   *persistence.Store
	req     *Request
	sh      key.Shard
	entries *history.Reader // read one after the other
	after   *place          // where the page before ended; nil for the first
	end     *place          // the page ends there at the latest: of some kind nothing was read behind it; nil for nowhere
	items   []*Item
}

func (r *reading) order(a, b place) int {
	if r.req.OldestFirst {
		return a.compare(b)
	}
	return b.compare(a)
}

func (r *reading) add(i *Item) (size int) {
	if r.after != nil && r.order(i.place, *r.after) <= 0 {
		return 0
	}
	r.items = append(r.items, i)
	return i.size()
}

func (r *reading) endAt(p place) {
	if r.end == nil || r.order(p, *r.end) < 0 {
		r.end = &p
	}
}

func (r *reading) cut() (n int, more bool) {
	slices.SortFunc(r.items, func(a, b *Item) int { return r.order(a.place, b.place) })
	size := 0
	for n, i := range r.items {
		if n == r.req.Limit || size >= pageBytesMax || r.end != nil && r.order(i.place, *r.end) > 0 {
			return n, true
		}
		size += i.size()
	}
	return len(r.items), r.end != nil
}

func (i *Item) size() int {
	if i.Row != nil {
		return len(i.Row.Text)
	}
	return len(i.Entry)
}

func (r *reading) addEntries() error {
	first, last := uint64(1), r.req.Sequence
	if r.after != nil && r.req.OldestFirst {
		first = max(first, r.after.sequence)
	}
	if r.after != nil && !r.req.OldestFirst {
		last = min(last, r.after.sequence)
	}
	for size, read := 0, 0; first <= last && read < r.req.Limit+2; read++ { // NB: the one at the place may be on the page before
		n := first
		if r.req.OldestFirst {
			first++
		} else {
			n = last
			last--
		}
		item, err := r.entry(n)
		if err != nil {
			return err
		}
		if size += r.add(item); size >= pageBytesMax {
			r.endAt(item.place)
			break
		}
	}
	return nil
}

func (r *reading) entry(n uint64) (*Item, error) {
	entry, _, err := r.entries.Page(n, n, true)
	if err != nil {
		return nil, failure.OfStore(err)
	}
	item := &Item{Entry: entry, Sequence: n, place: place{n, entryRank, 0}}
	if user, ok := item.Entry.Lookup("user"); ok {
		item.User = user.Text()
	}
	if ts, ok := item.Entry.Lookup("ts"); ok {
		item.At, _ = time.Parse(statemachine.TimeLayout, ts.Text())
	}
	return item, nil
}

func (r *reading) addRows() error {
	snapshot := r.store.Snapshot()
	defer func() { _ = snapshot.Close() }() // read-only: nothing to lose
	cursor := snapshot.Backward
	if r.req.OldestFirst {
		cursor = snapshot.Cursor
	}
	c := cursor(r.rowRange())
	before, size, read := len(r.items), 0, error(nil)
	for len(r.items)-before <= r.req.Limit && c.Next() {
		var row Row
		if row, read = Parse(c.Key(), c.Value()); read != nil {
			read = failure.Errorf(failure.ErrExecution, "%w", read)
			break
		}
		at := place{row.Sequence, rowRank, uint64(row.Number)}
		if size += r.add(&Item{At: row.At, User: row.User, Row: &row, place: at}); size >= pageBytesMax {
			r.endAt(at)
			break
		}
	}
	return errors.Join(read, failure.OfStore(errors.Join(c.Err(), c.Close())))
}

func (r *reading) rowRange() (lower, upper []byte) {
	prefix := key.ActivityPrefix(nil, r.sh, r.req.Instance)
	lower, upper = prefix, behind(prefix, r.req.Sequence)
	if r.after == nil || r.after.sequence > r.req.Sequence && !r.req.OldestFirst {
		return lower, upper
	}
	of := binary.BigEndian.AppendUint64(slices.Clone(prefix), r.after.sequence)
	number := uint32(min(r.after.number, math.MaxUint32)) //nolint:gosec // bounded
	at := of
	switch {
	case r.after.rank == rowRank && r.req.OldestFirst:
		at = append(binary.BigEndian.AppendUint32(of, number), 0)
	case r.after.rank == rowRank:
		at = binary.BigEndian.AppendUint32(of, number)
	case r.after.rank > rowRank:
		at = behind(prefix, r.after.sequence)
	}
	if r.req.OldestFirst {
		return slices.MinFunc([][]byte{at, upper}, bytes.Compare), upper
	}
	return lower, at
}

func behind(prefix []byte, sequence uint64) []byte {
	return key.PrefixEnd(binary.BigEndian.AppendUint64(slices.Clone(prefix), sequence))
}

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
