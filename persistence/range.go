package persistence

import (
	"errors"

	"troupe/persistence/key"
)

// shardsOf is in how many shards a range is.
func (s *Store) shardsOf(r key.Range) int {
	if r.IsEveryShard() {
		return s.shards
	}
	return 1
}

// ScanRanges calls visit for every key of the ranges, in no order: range after range
// and shard after shard. Otherwise it is Scan.
func (sn *Snapshot) ScanRanges(visit func(key, value []byte) error, ranges ...key.Range) error {
	if sn.db == nil {
		return ErrClosed
	}
	return sn.store.scan(sn.db, visit, ranges...)
}

// Hop calls visit with the first key of each range in each shard, and then with the first one at or behind next, which it returned; nil leads to the next
// range. The slice is valid during the call only. An error of visit ends it and is returned as it is.
func (sn *Snapshot) Hop(visit func(key []byte) (next []byte, err error), ranges ...key.Range) (err error) {
	c := sn.cursor(nil, nil, false)
	defer func() { err = errors.Join(err, c.Close()) }()
	for sh := range sn.store.shards {
		for _, r := range ranges {
			if sh >= sn.store.shardsOf(r) {
				continue
			}
			c.confine(r.In(key.Shard(sh)))
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

// Estimate is about how many keys there are.
type Estimate struct {
	Keys  int64
	Exact bool  // all of them were counted
	Read  int64 // how many were
}

// Estimate counts the keys of ranges. Once a shard is done and enough were counted,
// it takes the other shards for like those that it has read: ids are spread over them
// by a hash. It reads no more than most keys, most is not less than enough, and all
// ranges are of EveryShard. visit is called with each key that it reads, and with nil
// before it looks for the first one of a range in a shard, which costs as much as some
// keys. The slice is valid during the call only. An error of visit ends it and is returned
// as it is.
func (sn *Snapshot) Estimate(enough, most int64, visit func(key []byte) error, ranges ...key.Range) (Estimate, error) {
	var e Estimate
	shards := int64(sn.store.shards)
	for sh := range shards {
		for _, r := range ranges {
			err := visit(nil)
			if err != nil {
				return Estimate{}, err
			}
			c := sn.Cursor(r.In(key.Shard(sh)))
			for err == nil && e.Read < most && c.Next() {
				e.Read++
				err = visit(c.Key())
			}
			if cerr := errors.Join(c.Err(), c.Close()); err == nil {
				err = cerr
			}
			if err != nil {
				return Estimate{}, err
			}
		}
		if e.Read >= enough {
			e.Keys = e.Read * shards / (sh + 1)
			return e, nil
		}
	}
	e.Keys, e.Exact = e.Read, true
	return e, nil
}

// DeletePrefixes removes every key that begins with one of the prefixes, which are
// built for EveryShard: one durable set of writes for each shard. After an error or a
// crash it is called again. With replicas it does so in the shards that this node leads.
func (s *Store) DeletePrefixes(prefixes ...[]byte) error {
	for sh := range s.shards {
		if s.Epoch(key.Shard(sh)) == 0 {
			continue
		}
		w := s.NewWrites(key.Shard(sh))
		for _, prefix := range prefixes {
			w.DeleteRange(key.Range{Prefix: prefix}.In(key.Shard(sh)))
		}
		if err := s.Commit(w); err != nil {
			return err
		}
	}
	return nil
}

// deletesMax is the most keys that one set of writes of DeleteWhere removes.
const deletesMax = 1000

// DeleteWhere removes every key that begins with prefix, which is built for
// EveryShard, and of whose value gone says so: in durable sets of writes, shard after
// shard. What it cannot read or write in one shard keeps it from no other. With replicas
// it does so in the shards that this node leads.
func (s *Store) DeleteWhere(prefix []byte, gone func(value []byte) (bool, error)) error {
	var failed error
	for sh := range s.shards {
		if s.Epoch(key.Shard(sh)) == 0 {
			continue
		}
		inShard, _ := key.Range{Prefix: prefix}.In(key.Shard(sh))
		w := s.NewWrites(key.Shard(sh))
		err := s.Scan(inShard, func(k, value []byte) error {
			yes, err := gone(value)
			if yes {
				w.Delete(k)
			}
			if err != nil || w.Len() < deletesMax {
				return err
			}
			err, w = s.Commit(w), s.NewWrites(key.Shard(sh))
			return err
		})
		failed = errors.Join(failed, err, s.Commit(w))
	}
	return failed
}
