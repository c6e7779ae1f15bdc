package persistence

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
)

// Load returns the value under key, in storage of the caller's own, or
// ErrNotFound. It sees what was appended, durable or not: a caller that shows
// the value to somebody calls AwaitDurable first or is the writer itself.
func (s *Store) Load(key []byte) ([]byte, error) {
	g := s.read()
	if g == nil {
		return nil, ErrClosed
	}
	defer g.Leave()
	return s.load(g, key)
}

func (s *Store) load(v engine.View, k []byte) ([]byte, error) {
	if key.IsReply(k) {
		return s.loadRare(v, k)
	}
	value, closer, err := v.Get(k)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, s.readFault("load", k, err)
	}
	own := make([]byte, len(value))
	copy(own, value)
	if err := closer.Close(); err != nil {
		return nil, s.readFault("load", k, err)
	}
	return own, nil
}

// loadRare is load for keys that are mostly not there: an idempotency key is
// looked up before it is used for the first time. A filter answers that without
// a block of data, at every level.
func (s *Store) loadRare(v engine.View, key []byte) (value []byte, err error) {
	it, err := v.RareIter()
	if err != nil {
		return nil, s.readFault("load", key, err)
	}
	defer func() {
		if cerr := it.Close(); cerr != nil && (err == nil || errors.Is(err, ErrNotFound)) {
			value, err = nil, s.readFault("load", key, cerr)
		}
	}()
	if !it.SeekPrefixGE(key) || !bytes.Equal(it.Key(), key) {
		return nil, ErrNotFound
	}
	found, err := it.ValueAndErr()
	if err != nil {
		return nil, s.readFault("load", key, err)
	}
	return append(make([]byte, 0, len(found)), found...), nil
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

// Scan calls visit for every key that begins with prefix, in order, on one
// consistent view; with [EveryShard] in the prefix, shard after shard. The slices are
// valid during the call only. An error of visit ends the scan and is returned as it
// is.
func (s *Store) Scan(prefix []byte, visit func(key, value []byte) error) error {
	g := s.read()
	if g == nil {
		return ErrClosed
	}
	defer g.Leave()
	return s.scan(g, visit, key.Range{Prefix: prefix})
}

// ScanRanges calls visit for every key of the ranges, in no order: range after range and shard after shard. Otherwise
// it is Scan.
func (s *Store) ScanRanges(visit func(key, value []byte) error, ranges ...key.Range) error {
	g := s.read()
	if g == nil {
		return ErrClosed
	}
	defer g.Leave()
	return s.scan(g, visit, ranges...)
}

func (s *Store) scan(v engine.View, visit func(key, value []byte) error, ranges ...key.Range) error {
	for _, r := range ranges {
		for sh := range s.shardsOf(r) {
			lower, upper := r.In(key.Shard(sh))
			if err := s.scanPart(v, lower, upper, visit); err != nil {
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

// readFault wraps an error of a read with its key. Damage becomes ErrCorrupt
// and is counted.
func (s *Store) readFault(op string, key []byte, err error) error {
	if !errors.Is(err, ErrCorrupt) && !pebble.IsCorruptionError(err) {
		return fmt.Errorf("%s %x: %w", op, key, err)
	}
	s.metrics.corruptReads.Add(1)
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		return fmt.Errorf("%s %x: %w: file %s: %w", op, key, ErrCorrupt, info.Path, info.Details)
	}
	return fmt.Errorf("%s %x: %w: %w", op, key, ErrCorrupt, err)
}
