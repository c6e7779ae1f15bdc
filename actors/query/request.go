// Package query finds the instances of a workflow that match a filter: plan chooses an index, iterate gives candidates
// in order, evaluate asks the rights and then the filter, and yield is called in batches, without a slot meanwhile. A
// query sees one snapshot, and shows nothing of it before it is durable. It works only while it has a slot, keeps to
// its share of the machine while events need it, and gives way to other users every few milliseconds (throttle). A page
// ends with a cursor, a position in the list that stays valid over a restart. The same slots and batches serve the
// lists of forms (Rows) and the filters of watches that take long (Match).
package query

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Request asks for the instances of a workflow that match a filter.
type Request struct {
	Caller         *identity.Principal
	WorkflowID     string
	Filter         string   // the text of the filter parameter; empty matches all
	Limit          int      // the most instances that the page may have, 1 to 1,000; 0 means all of them and no page
	Cursor         string   // End.Next of the page before; empty is the first page
	Sort           string   // "_id", an indexed path, or either behind "-"; empty is "_id"
	Fields         []string // what entries have besides the usual: "svcHistory", "svcRedirect", "svcPrivate", "title"
	Languages      []string // those of the reader, the preferred one first, for the title
	Count, Explain bool     // Count asks for the number of all matches, Explain for how they were found
	Version        uint64   // Version has only instances of that version of the definition; 0 has all
	// Everyones has all instances, for who runs the service. A filter on more than ids and states finds only what the
	// caller may see.
	Everyones bool
	// Whole is Everyones for who must not miss any: such a filter is failure.ErrForbidden, unless the caller may read all
	// instances.
	Whole bool
}

// End is what there is to say when all instances have been given.
type End struct {
	Next    string   // the cursor of the next page; empty when there is none
	Count   int64    // the number of all matches that the caller may see, when asked
	Explain *Explain // nil unless asked
}

// add adds what a part has to say.
func (e *End) add(part *End) {
	e.Count += part.Count
	of := part.Explain
	switch {
	case of == nil:
		return
	case e.Explain == nil:
		e.Explain = of
		return
	}
	all := e.Explain
	if of.RecordsRead+of.KeysRead > all.RecordsRead+all.KeysRead { // NB: each part has chosen its own
		all.Plan, all.Index = of.Plan, of.Index
	}
	all.KeysRead, all.RecordsRead, all.Matched = all.KeysRead+of.KeysRead, all.RecordsRead+of.RecordsRead, all.Matched+of.Matched
	for _, c := range of.Considered {
		i := slices.IndexFunc(all.Considered, func(has Considered) bool { return has.Index == c.Index })
		if i < 0 {
			all.Considered = append(all.Considered, c)
			continue
		}
		all.Considered[i].Keys += c.Keys
		all.Considered[i].AtLeast = all.Considered[i].AtLeast || c.AtLeast
	}
}

// Explain says how a query found its instances.
type Explain struct {
	// Index is the path whose index gave the candidates; for a union those of all branches, joined by " | "; nil for
	// "ids" and "scan".
	Index *string
	// Plan is "ids", "index", "union", "sorted index" or "scan"; empty when it is not told, and so is everything but
	// Matched and the names in Considered.
	Plan         string
	KeysRead     int64 // KeysRead counts index rows, RecordsRead instances, Matched those given
	RecordsRead  int64
	Matched      int64
	Milliseconds float64
	Considered   []Considered // the indexes that could have been used
}

// Considered is an index that the planner looked at.
type Considered struct {
	Index string
	// Keys is how many rows it would read. AtLeast: counting stopped there.
	Keys    int64
	AtLeast bool
}

// A cursor is a position in a list: version(1) check(8) position, in base64url. The position is that of the last thing
// that the caller was shown, so it tells nothing new.
const (
	cursorVersion = 2 // 1 was encrypted
	cursorHead    = 1 + 8
)

// ErrCursor: the cursor is malformed or of another list. It wraps failure.ErrInvalid.
var ErrCursor = failure.Refuse(failure.ErrInvalid, "the cursor is not of this list")

// List names a list that comes in pages: its kind and what it was asked for.
type List []string

// Cursor returns the text for a position.
func (l List) Cursor(position []byte) string {
	check := l.check(position)
	b := append([]byte{cursorVersion}, check[:]...)
	return base64.RawURLEncoding.EncodeToString(append(b, position...))
}

// Position reads what Cursor wrote; anything else is ErrCursor.
func (l List) Position(text string) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	// NB: the decoder passes over line ends, even a strict one.
	if err != nil || strings.ContainsAny(text, "\r\n") || len(b) < cursorHead || b[0] != cursorVersion {
		return nil, ErrCursor
	}
	if position := b[cursorHead:]; l.check(position) == [8]byte(b[1:cursorHead]) {
		return position, nil
	}
	return nil, ErrCursor
}

func (l List) check(position []byte) [8]byte {
	h := sha256.New()
	for _, part := range l {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part))) // a hash takes everything
		h.Write([]byte(part))
	}
	h.Write(position)
	return [8]byte(h.Sum(nil))
}

// position is where a page ended: value is that of the instance id in the index that sorts, nil when _id sorts.
type position struct {
	value []byte
	id    key.ID
}

func (p position) append(dst []byte) []byte { return append(append(dst, p.id[:]...), p.value...) }

func parsePosition(b []byte) (*position, error) {
	p := &position{}
	if len(b) < len(p.id) {
		return nil, ErrCursor
	}
	if copy(p.id[:], b); len(b) > len(p.id) {
		p.value = b[len(p.id):]
	}
	return p, nil
}

// Loader is what a row is read from: a snapshot, a Reader, or the store.
type Loader interface {
	Load(key []byte) ([]byte, error)
}

// Instance is an instance as the store has it.
type Instance struct {
	Of    *statemachine.Definition // its own
	State statemachine.Instance
}

// LoadInstance reads an instance: failure.ErrNotFound when there is none, failure.ErrExecution when it cannot be read.
// It asks for no right.
func LoadInstance(from Loader, c *catalog.Catalog, sh key.Shard, workflow string, id key.ID) (*Instance, error) {
	stored, err := from.Load(key.Record(nil, sh, workflow, id))
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, failure.ErrNotFound
	}
	if err != nil {
		return nil, failure.OfStore(err)
	}
	in := &Instance{}
	name := instanceid.Text(id)
	record, err := statemachine.ParseRecord(stored)
	if err == nil {
		if in.Of, err = c.Version(workflow, record.Version); err == nil {
			in.State, err = in.Of.Restore(name, record)
		}
	}
	if err != nil {
		return nil, failure.Errorf(failure.ErrExecution, "instance %s: %w", name, err)
	}
	return in, nil
}

type candidate struct {
	id     key.ID
	value  []byte // what the entry of the index that sorts has; nil when _id sorts
	record []byte // the stored record, or the row of a list; nil when it has to be loaded
}

// iterator gives candidates in the order of the list, never the same twice in succession. Their slices are valid until
// next.
type iterator interface {
	next() (candidate, bool, error)
	close() error
}

type sortedIDs struct {
	ids []key.ID
	at  int
}

func (l *sortedIDs) next() (candidate, bool, error) {
	if l.at == len(l.ids) {
		return candidate{}, false, nil
	}
	id := l.ids[l.at]
	l.at++
	return candidate{id: id}, true, nil
}

func (l *sortedIDs) close() error { return nil }

func newSortedIDs(ids []key.ID, down bool, after *position) *sortedIDs {
	slices.SortFunc(ids, func(a, b key.ID) int { return bytes.Compare(a[:], b[:]) })
	ids = slices.Compact(ids)
	if down {
		slices.Reverse(ids)
	}
	if after != nil {
		behind := func(id key.ID) bool { return isBehind(bytes.Compare(id[:], after.id[:]), down) }
		if n := slices.IndexFunc(ids, behind); n >= 0 {
			ids = ids[n:]
		} else {
			ids = nil
		}
	}
	return &sortedIDs{ids: ids}
}

func isBehind(order int, down bool) bool {
	if down {
		return order < 0
	}
	return order > 0
}

type merged struct {
	cursor *persistence.MergeCursor
	kind   rowKind
	last   key.ID // of the candidate that was given last
	given  bool   // there was one
	rows   *int64 // rows counts the index rows that were read
}

// Several rows may name the same instance: those follow each other, unless values decide the order.
func (m *merged) next() (candidate, bool, error) {
	for m.cursor.Next() {
		c := candidate{}
		var ok bool
		if c.value, c.id, ok = m.kind.parse(m.cursor.Key()); !ok {
			return candidate{}, false, persistence.ErrCorrupt
		}
		if m.kind != recordRow {
			*m.rows++
		}
		if m.given && m.last == c.id && m.kind != sortedRow && m.kind != listRow {
			continue
		}
		m.last, m.given = c.id, true
		if m.kind == recordRow || m.kind == listRow {
			c.record = m.cursor.Value()
		}
		return c, true, nil
	}
	return candidate{}, false, m.cursor.Err()
}

func (m *merged) close() error { return m.cursor.Close() }

type rowKind uint8

const (
	recordRow rowKind = iota
	entryRow          // of the index of nodes or of a declared one
	sortedRow         // of a declared index where the value decides the order
	listRow           // a row of a user's list, which shows what it is about itself
)

// parse reads the key of a row. value is what decides the order, where that is not the id; it is a part of the key.
func (k rowKind) parse(rowKey []byte) (value []byte, id key.ID, ok bool) {
	switch k {
	case recordRow:
		id, ok = key.RecordID(rowKey)
	case entryRow:
		if id, ok = key.NodeID(rowKey); !ok {
			_, id, ok = key.ParseIndex(rowKey)
		}
	case sortedRow:
		value, id, ok = key.ParseIndex(rowKey)
	case listRow:
		value, id, ok = key.ParseList(rowKey)
	}
	return value, id, ok
}
