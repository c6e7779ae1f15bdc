package persistence

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
)

// Load returns the value under key, in storage of the caller's own, or ErrNotFound. It sees what was appended, durable
// or not: a caller that shows the value to somebody calls AwaitDurable first or is the writer itself.
//
// ErrNotLed, of this and of every other read: this node has no replica of a numbered shard that was read.
func (s *Store) Load(key []byte) ([]byte, error) {
	g := s.read()
	if g == nil {
		return nil, ErrClosed
	}
	defer g.Leave()
	return s.loadHeld(g, key)
}

// loadHeld is load of what may be in a shard that is not here.
func (s *Store) loadHeld(v engine.View, k []byte) ([]byte, error) {
	value, err := s.load(v, k)
	if held := s.checkHeld(k); held != nil {
		return nil, held
	}
	return value, err
}

func (s *Store) load(v engine.View, k []byte) ([]byte, error) {
	// NB: an idempotency key is looked up before it is used for the first time.
	value, err := engine.Load(v, k, key.IsReply(k))
	switch {
	case err == nil:
		return value, nil
	case errors.Is(err, pebble.ErrNotFound):
		return nil, ErrNotFound
	}
	return nil, s.readFault("load", k, err)
}

// checkHeld returns ErrNotLed for a key of a numbered shard of which this node has no replica. NB: it is asked when the key has
// been read. Leave removes rows after the replica is none, so that what was not there may be gone.
func (s *Store) checkHeld(k []byte) error {
	if s.replicas == nil || len(k) == 0 {
		return nil
	}
	if sh := key.ShardOf(k); int(sh) < s.shards && s.replicas.At(sh).Load() == nil {
		return NotLed(sh)
	}
	return nil
}

// Count returns the counter under key; one that was never written is zero.
func (s *Store) Count(key []byte) (int64, error) {
	value, err := s.Load(key)
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := engine.ParseCounter(value)
	if err != nil {
		return 0, s.readFault("load", key, err)
	}
	return n, nil
}

// CountAll returns the sum of the counters under a prefix, which may have [EveryShard].
func (s *Store) CountAll(prefix []byte) (int64, error) { return sumCounters(s.Scan, prefix) }

func sumCounters(scan func([]byte, func(key, value []byte) error) error, prefix []byte) (total int64, err error) {
	err = scan(prefix, func(_, value []byte) error {
		n, err := engine.ParseCounter(value)
		total += n
		return err
	})
	return total, err
}

// ParseCount reads a counter's value as Scan or a cursor gives it.
func ParseCount(value []byte) (int64, error) { return engine.ParseCounter(value) }

// Scan calls visit for every key that begins with prefix, in order, on one consistent view; with [EveryShard] in the prefix, shard after shard. The
// slices are valid during the call only. An error of visit ends the scan and is returned as it is.
func (s *Store) Scan(prefix []byte, visit func(key, value []byte) error) error {
	g := s.read()
	if g == nil {
		return ErrClosed
	}
	defer g.Leave()
	return s.scan(g, s.numbered, visit, key.Range{Prefix: prefix})
}

// ScanRanges calls visit for every key of the ranges, in no order: range after range and shard after shard. Otherwise it is Scan.
func (s *Store) ScanRanges(visit func(key, value []byte) error, ranges ...key.Range) error {
	g := s.read()
	if g == nil {
		return ErrClosed
	}
	defer g.Leave()
	return s.scan(g, s.numbered, visit, ranges...)
}

func (s *Store) scan(v engine.View, shards []key.Shard, visit func(key, value []byte) error, ranges ...key.Range) error {
	for _, r := range ranges {
		in := shards
		if !r.IsEveryShard() {
			in = shards[:1] // it has its own
		}
		for _, sh := range in {
			lower, upper := r.In(sh)
			err := s.scanPart(v, lower, upper, visit)
			if err == nil {
				err = s.checkHeld(lower)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) scanPart(v engine.View, lower, upper []byte, visit func(key, value []byte) error) (err error) {
	it, err := v.Iter(lower, upper)
	if err != nil {
		return s.readFault("scan", lower, err)
	}
	defer func() {
		if cerr := it.Close(); err == nil && cerr != nil {
			err = s.readFault("scan", lower, cerr)
		}
	}()
	for it.First(); it.Valid(); it.Next() {
		value, verr := it.ValueAndErr()
		if verr != nil {
			return s.readFault("scan", it.Key(), verr)
		}
		if err := visit(it.Key(), value); err != nil {
			return err
		}
	}
	return nil
}
