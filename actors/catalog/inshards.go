package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
)

// IndexesIn returns the indexes of a workflow that a commit in an epoch of a shard maintains. It is called after
// BeginCommit, and before the commit is appended. With an error nothing may be written. failure.ErrUnavailable: the
// shard has an index that is not known here yet.
func (c *Catalog) IndexesIn(sh key.Shard, epoch uint64, workflow string) ([]*Index, error) {
	for {
		present := c.indexes.Load()
		// NB: looked at on both sides of the check. The check may know an index that came after the first
		// look; and who replaces the Indexes, and cannot remove the rows of those that go, takes it back before.
		if err := c.checkEpoch(sh, epoch); err != nil || c.indexes.Load() == present {
			return (*present)[workflow], err
		}
	}
}

// checkEpoch returns nil when this node knows every retirement that the shard demands, and all that is appended from now on in an epoch of a shard, with the
// Indexes that are looked at behind it, or were before and are the same still, maintains every
// index that the shard has a row of. A node may lead the shard that does not have yet what was
// published last, or that has it earlier than the leader before.
func (c *Catalog) checkEpoch(sh key.Shard, epoch uint64) error {
	s := &c.inShards
	if c.store.Alone() || s.checked[sh].Load() == epoch {
		return nil
	}
	if c.store.Epoch(sh) != epoch {
		return failure.Elsewhere(uint16(sh))
	}
	// NB: the epoch has begun, so the rows of all before are here. In this one the builder writes rows
	// after the check only.
	states, err := loadStates(c.store, sh)
	if err != nil {
		return failure.OfStore(err)
	}
	floor, err := loadFloor(c.store, sh)
	if err != nil {
		return failure.OfStore(err)
	}
	if floor > c.retirements.Load().Last {
		return failure.Errorf(failure.ErrUnavailable, "retirement %d, which shard %d has, is not known here yet", floor, sh)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maintained := c.indexes.Load().numbers()
	dropped := slices.Clone(s.owed[sh])
	for number := range states {
		if number > s.last {
			return failure.Errorf(failure.ErrUnavailable, "index %d, which shard %d has, is not known here yet", number, sh)
		}
		if !maintained[number] {
			dropped = append(dropped, number)
		}
	}
	if !c.removeRows(sh, epoch, dropped) {
		return failure.Errorf(failure.ErrUnavailable, "indexes of shard %d that were dropped cannot be removed", sh)
	}
	delete(s.owed, sh)
	s.checked[sh].Store(epoch)
	return nil
}

func (c *Catalog) replaceIndexes(now Indexes, last uint32) {
	s := &c.inShards
	s.mu.Lock()
	defer s.mu.Unlock()
	var dropped []uint32
	left := now.numbers()
	for number := range c.indexes.Load().numbers() {
		if !left[number] {
			dropped = append(dropped, number)
		}
	}
	for sh := range s.checked {
		if epoch := s.checked[sh].Load(); epoch != 0 && !c.removeRows(key.Shard(sh), epoch, dropped) {
			// NB: what the shard refuses for a moment only, as while the disk is full, does not end the epoch.
			s.owed[key.Shard(sh)] = append(s.owed[key.Shard(sh)], dropped...)
			s.checked[sh].Store(0)
		}
	}
	c.indexes.Store(&now)
	s.last = last
}

// It does not wait: what is appended later in the epoch stands behind it in the log, or is lost with it. It is false
// when the shard takes no writes in the epoch, which may be for a moment only.
func (c *Catalog) removeRows(sh key.Shard, epoch uint64, dropped []uint32) (taken bool) {
	if len(dropped) == 0 {
		return true
	}
	w := c.store.NewWritesIn(sh, epoch)
	for _, number := range dropped {
		w.Delete(key.IndexState(nil, sh, number))
	}
	return c.store.Append(w, make(confirmation, 1))
}

// moment is a store as it is, or a snapshot of it.
type moment interface {
	Scan(prefix []byte, visit func(key, value []byte) error) error
}

func loadStates(at moment, sh key.Shard) (map[uint32]indexState, error) {
	states := map[uint32]indexState{}
	err := at.Scan(key.IndexStatePrefix(nil, sh), func(rowKey, value []byte) error {
		k, ok := key.Parse(rowKey)
		if ok && k.Number == marks {
			return nil // see floorKey
		}
		state := indexState(value)
		if !ok || state != kept && state != whole {
			return fmt.Errorf("%w: state of an index", persistence.ErrCorrupt)
		}
		states[uint32(k.Number)] = state
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read states of indexes in shard %d: %w", sh, err)
	}
	return states, nil
}

// IsWholeAt reports whether an index has all its entries in a snapshot of a cluster's store, which
// has a replica of every shard. Afterwards Several is true of the snapshot as well.
func (c *Catalog) IsWholeAt(at *persistence.Snapshot, ix *Index) (bool, error) {
	for sh := range key.Shard(c.store.Shards()) {
		state, err := at.Load(key.IndexState(nil, sh, ix.number))
		if errors.Is(err, persistence.ErrNotFound) || err == nil && !bytes.Equal(state, []byte(whole)) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if ix.Several() {
			continue
		}
		_, err = at.Load(appendMark(nil, sh, ix.number))
		switch {
		case err == nil:
			ix.several.Store(true)
		case !errors.Is(err, persistence.ErrNotFound):
			return false, err
		}
	}
	return true, nil
}

func (c *Catalog) numbersIn(sh key.Shard) (map[uint32]bool, error) {
	at := c.store.Snapshot()
	defer func() { _ = at.Close() }() // read-only: nothing to lose
	states, err := loadStates(at, sh)
	if err != nil {
		return nil, err
	}
	numbers := map[uint32]bool{}
	for number := range states {
		numbers[number] = true
	}
	err = at.Scan(key.IndexPrefix(nil, sh, marks), func(k, _ []byte) error {
		value, _, ok := key.ParseIndex(k)
		if !ok || len(value) != 4 {
			return fmt.Errorf("%w: mark of an index", persistence.ErrCorrupt)
		}
		numbers[binary.BigEndian.Uint32(value)] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	// NB: one look for each index, however many entries it has.
	entries := at.Cursor(key.IndexPrefix(nil, sh, marks+1), key.IndexStatePrefix(nil, sh))
	for ok := entries.Next(); ok; {
		k, valid := key.Parse(entries.Key())
		if !valid {
			return nil, errors.Join(fmt.Errorf("%w: entry of an index", persistence.ErrCorrupt), entries.Close())
		}
		number := uint32(k.Number)
		numbers[number] = true
		ok = number+1 != 0 && entries.Seek(key.IndexPrefix(nil, sh, number+1))
	}
	return numbers, errors.Join(entries.Err(), entries.Close())
}

func freeIn(w *persistence.Writes, sh key.Shard, number uint32) {
	entries := key.IndexPrefix(nil, sh, number)
	w.DeleteRange(entries, key.PrefixEnd(entries))
	w.Delete(appendMark(nil, sh, number))
	w.Delete(key.IndexState(nil, sh, number))
}

// It stands where an index has how far it is, and no index has the number.
func floorKey(sh key.Shard) []byte { return key.IndexState(nil, sh, marks) }

func loadFloor(at moment, sh key.Shard) (number uint64, err error) {
	err = at.Scan(floorKey(sh), func(_, value []byte) error {
		number, err = strconv.ParseUint(string(value), 10, 64)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the last retirement of shard %d: %w: %w", sh, persistence.ErrCorrupt, err)
	}
	return number, nil
}
