package engine

import (
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// The interfaces below stand for Pebble in the fields and methods of the types that other packages use. NB: a type of
// Pebble's there, exported or not, makes the compiler build all of Pebble's generic code, a thousand functions, once
// more in each of these packages and of their tests: a second each. Functions may have such types, and a type without a
// database in its reach, such as WriteOptions, costs nothing anywhere.

// View is a database or a snapshot of it.
type View interface {
	Get(key []byte) ([]byte, io.Closer, error)
	// Iter returns an iterator from lower (nil: the first key) up to but not including upper (nil: no bound).
	Iter(lower, upper []byte) (Iterator, error)
	// RareIter returns an iterator whose SeekPrefixGE asks the filters of the bottom
	// level too. Pebble's Get leaves those out, for keys that are mostly there.
	RareIter() (Iterator, error)
	Close() error
}

// database is an open Pebble.
type database interface {
	View
	EmptyBatch(retainedBytes int) Batch
	Snapshot() View
	// ApplyUnsynced makes a batch visible, without a sync of the log.
	ApplyUnsynced(Batch) error
	// ApplySynced makes a batch visible and has the log synced; SyncWait of the batch waits for that.
	ApplySynced(Batch) error
}

// Batch is a *pebble.Batch.
type Batch interface {
	Set(key, value []byte, _ *pebble.WriteOptions) error
	Delete(key []byte, _ *pebble.WriteOptions) error
	DeleteRange(start, end []byte, _ *pebble.WriteOptions) error
	Merge(key, value []byte, _ *pebble.WriteOptions) error
	LogData(data []byte, _ *pebble.WriteOptions) error
	Count() uint32
	Len() int
	Repr() []byte
	SeqNum() pebble.SeqNum
	SyncWait() error
	Reset()
}

// Iterator is a *pebble.Iterator.
type Iterator interface {
	First() bool
	Last() bool
	Next() bool
	Prev() bool
	SeekGE(key []byte) bool
	SeekLT(key []byte) bool
	SeekPrefixGE(key []byte) bool
	SetBounds(lower, upper []byte)
	Valid() bool
	Key() []byte
	ValueAndErr() ([]byte, error)
	Error() error
	Close() error
}

// Pebble is the Pebble of a generation, for what is done seldom.
func Pebble(g *Generation) *pebble.DB { return g.database.(pebbleDB).DB }

// pebbleView is the view of a database or a snapshot.
type pebbleView struct{ pebble.Reader }

var rareKeys = pebble.IterOptions{UseL6Filters: true}

func (v pebbleView) RareIter() (Iterator, error) { return v.open(&rareKeys) }
func (v pebbleView) Iter(lower, upper []byte) (Iterator, error) {
	return v.open(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
}

func (v pebbleView) open(o *pebble.IterOptions) (Iterator, error) {
	it, err := v.NewIter(o)
	if err != nil {
		return nil, err // NB: not it, whose nil would be an iterator
	}
	return it, nil
}

// Join appends what is in a part.
func Join(to, part Batch) error { return to.(*pebble.Batch).Apply(part.(*pebble.Batch), nil) }

// JoinRepr appends what another set of writes is made of; see [Batch].
func JoinRepr(to Batch, repr []byte) error {
	var part pebble.Batch
	if err := part.SetRepr(repr); err != nil {
		return err
	}
	return to.(*pebble.Batch).Apply(&part, nil)
}

// AppendKeys appends the keys that a set of writes changes; see [Batch].
func AppendKeys(keys [][]byte, repr []byte) [][]byte {
	var part pebble.Batch
	if part.SetRepr(repr) != nil {
		return keys
	}
	for r := part.Reader(); ; {
		_, key, _, ok, err := r.Next()
		if !ok || err != nil {
			return keys
		}
		keys = append(keys, slices.Clone(key))
	}
}

// FirstKey returns the key of the first change of a set of writes, a part of repr; nil when there is none.
func FirstKey(repr []byte) []byte {
	var part pebble.Batch
	if part.SetRepr(repr) != nil {
		return nil
	}
	r := part.Reader()
	_, key, _, _, _ := r.Next()
	return key
}

// EachSet visits what a set of writes sets, and with a nil value each key that it deletes by name; both are valid during the call.
func EachSet(repr []byte, visit func(key, value []byte)) {
	var part pebble.Batch
	if part.SetRepr(repr) != nil {
		return
	}
	for r := part.Reader(); ; {
		kind, key, value, ok, err := r.Next()
		if !ok || err != nil {
			return
		}
		switch kind {
		case pebble.InternalKeyKindSet:
			visit(key, value) // NB: an empty one is not nil, it is a part of the batch
		case pebble.InternalKeyKindDelete:
			visit(key, nil)
		}
	}
}

type pebbleDB struct {
	*pebble.DB
	pebbleView // of the same
}

func (db pebbleDB) EmptyBatch(retainedBytes int) Batch {
	return db.NewBatch(pebble.WithMaxRetainedSizeBytes(retainedBytes))
}
func (db pebbleDB) Snapshot() View              { return pebbleView{db.NewSnapshot()} }
func (db pebbleDB) ApplyUnsynced(b Batch) error { return db.Apply(b.(*pebble.Batch), pebble.NoSync) }

func (db pebbleDB) ApplySynced(b Batch) error {
	return db.ApplyNoSyncWait(b.(*pebble.Batch), pebble.Sync)
}
