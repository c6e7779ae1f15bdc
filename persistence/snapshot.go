package persistence

import (
	"errors"

	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
)

// Snapshot is one moment of the store, for any number of reads. It may contain what is not durable yet; call [Store.AwaitDurable] after taking it and
// before showing anything. It keeps old tables on disk, so it must be closed soon.
//
// A snapshot is safe for concurrent use; its cursors belong to one goroutine.
type Snapshot struct {
	store  *Store
	of     *engine.Generation
	db     engine.View // nil after Close of the store
	shards []key.Shard // those that EveryShard stands for
}

// Snapshot returns the present moment. On a closed store every read of it returns ErrClosed.
func (s *Store) Snapshot() *Snapshot { return s.SnapshotOf(s.numbered) }

// SnapshotOf is a snapshot in which [key.EveryShard] stands for some of the numbered shards, at least one.
func (s *Store) SnapshotOf(shards []key.Shard) *Snapshot {
	sn := &Snapshot{store: s, shards: shards}
	if g := s.read(); g != nil {
		sn.of, sn.db = g, g.Snapshot()
	}
	return sn
}

// Shards are those that [key.EveryShard] stands for. The slice is read only.
func (sn *Snapshot) Shards() []key.Shard { return sn.shards }

// Close gives the snapshot back. Cursors must be closed before. It must be called once.
func (sn *Snapshot) Close() error {
	if sn.db == nil {
		return nil
	}
	defer sn.of.Leave()
	return sn.db.Close()
}

// Load is [Store.Load] at this moment.
func (sn *Snapshot) Load(key []byte) ([]byte, error) {
	if sn.db == nil {
		return nil, ErrClosed
	}
	return sn.store.loadHeld(sn.db, key)
}

// Scan is [Store.Scan] at this moment.
func (sn *Snapshot) Scan(prefix []byte, visit func(key, value []byte) error) error {
	if sn.db == nil {
		return ErrClosed
	}
	return sn.store.scan(sn.db, sn.shards, visit, key.Range{Prefix: prefix})
}

// CountAll is [Store.CountAll] at this moment.
func (sn *Snapshot) CountAll(prefix []byte) (int64, error) { return sumCounters(sn.Scan, prefix) }

// Cursor returns a cursor over the keys from lower (nil: the first) up to but not including upper (nil: no bound). It stands before the first key.
func (sn *Snapshot) Cursor(lower, upper []byte) *Cursor {
	return sn.cursor(lower, upper, false)
}

// Backward is Cursor from the last key to the first.
func (sn *Snapshot) Backward(lower, upper []byte) *Cursor {
	return sn.cursor(lower, upper, true)
}

func (sn *Snapshot) cursor(lower, upper []byte, backward bool) *Cursor {
	if sn.db == nil {
		return &Cursor{err: ErrClosed}
	}
	c := &Cursor{store: sn.store, lower: lower, backward: backward}
	it, err := sn.db.Iter(lower, upper)
	if err != nil {
		c.err = sn.store.readFault("open cursor at", lower, err)
		return c
	}
	c.it = it
	c.err = sn.store.checkHeld(lower)
	return c
}

// Cursor walks over keys in order:
//
//	c := snapshot.Cursor(prefix, key.PrefixEnd(prefix))
//	defer c.Close()
//	for c.Next() {
//		use(c.Key(), c.Value())
//	}
//	return c.Err()
type Cursor struct {
	store *Store
	it    engine.Iterator // nil when it could not be opened
	lower []byte          // for messages
	value []byte
	err   error // the first error; the cursor has ended
	moved bool  // whether it stands on or behind the first key

	backward bool
}

// Next moves to the next key, which is the one before for a cursor that goes backward. It is false at the end and after an error.
func (c *Cursor) Next() bool {
	switch {
	case c.err != nil:
		return false
	case c.moved && c.backward:
		return c.land(c.it.Prev())
	case c.moved:
		return c.land(c.it.Next())
	}
	c.moved = true
	if c.backward {
		return c.land(c.it.Last())
	}
	return c.land(c.it.First())
}

// Seek moves to the first key at or behind key, within the cursor's bounds; a cursor that goes backward moves to the
// last key before key. It is false when there is none and after an error.
func (c *Cursor) Seek(key []byte) bool {
	if c.err != nil {
		return false
	}
	c.moved = true
	if c.backward {
		return c.land(c.it.SeekLT(key))
	}
	return c.land(c.it.SeekGE(key))
}

// confine gives the cursor other bounds, and has it stand before the first key.
func (c *Cursor) confine(lower, upper []byte) {
	c.lower, c.moved = lower, false
	if c.it != nil {
		c.it.SetBounds(lower, upper)
	}
	if c.err == nil {
		c.err = c.store.checkHeld(lower)
	}
}

// land reads what stands at the new position.
func (c *Cursor) land(valid bool) bool {
	c.value = nil
	err := c.it.Error()
	if valid && err == nil {
		c.value, err = c.it.ValueAndErr()
	}
	if err != nil {
		c.err = c.store.readFault("read behind", c.lower, err)
		return false
	}
	return valid
}

// Key is the present key. The slice is valid until the next move.
func (c *Cursor) Key() []byte { return c.it.Key() }

// Value is the present value. The slice is valid until the next move.
func (c *Cursor) Value() []byte { return c.value }

// Err is why the cursor ended early, or nil.
func (c *Cursor) Err() error { return c.err }

// Close gives the cursor back. It must be called once.
func (c *Cursor) Close() error {
	if c.it == nil {
		return nil
	}
	return c.it.Close()
}

// ScanRanges calls visit for every key of the ranges, in no order: range after range and shard after shard. Otherwise it is Scan.
func (sn *Snapshot) ScanRanges(visit func(key, value []byte) error, ranges ...key.Range) error {
	if sn.db == nil {
		return ErrClosed
	}
	return sn.store.scan(sn.db, sn.shards, visit, ranges...)
}

// Hop calls visit with the first key of each range in each shard, and then with the first one at or behind next, which it returned; nil leads to the next
// range. The slice is valid during the call only. An error of visit ends it and is returned as it is.
func (sn *Snapshot) Hop(visit func(key []byte) (next []byte, err error), ranges ...key.Range) (err error) {
	c := sn.cursor(nil, nil, false)
	defer func() { err = errors.Join(err, c.Close()) }()
	for i, sh := range sn.shards {
		for _, r := range ranges {
			if i > 0 && !r.IsEveryShard() {
				continue
			}
			c.confine(r.In(sh))
			for more := c.Next(); more; {
				next, err := visit(c.Key())
				if err != nil {
					return err
				}
				more = next != nil && c.Seek(next)
			}
			if err := c.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}
