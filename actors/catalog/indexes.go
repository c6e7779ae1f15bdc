package catalog

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"troupe/actors/failure"
	"troupe/actors/internal/wait"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine/data"
	"troupe/statemachine/filter"
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

// checkEpoch returns nil when this node knows every retirement that the shard requires, and all that is appended from now on in an epoch of a shard, with the
// Indexes that are looked at behind it, or were before and are the same still, maintains every
// index that the shard has a row of. A node may lead the shard that does not have yet what was
// published last, or that has it earlier than the leader before.
func (c *Catalog) checkEpoch(sh key.Shard, epoch uint64) error {
	s := &c.inShards
	if c.store.Standalone() || s.checked[sh].Load() == epoch {
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

// removeRows does not wait: what is appended later in the epoch follows it in the log, or is lost with it. It is false
// when the shard accepts no writes in the epoch, which may be for a moment only.
func (c *Catalog) removeRows(sh key.Shard, epoch uint64, dropped []uint32) (taken bool) {
	if len(dropped) == 0 {
		return true
	}
	w := c.store.NewBatchIn(sh, epoch)
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

// IsWholeAt reports whether an index has all its entries in the shards of a snapshot of a cluster's store, which
// has a replica of each of them. Afterwards Several is true of the snapshot as well.
func (c *Catalog) IsWholeAt(at *persistence.Snapshot, ix *Index) (bool, error) {
	for _, sh := range at.Shards() {
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

func freeIn(w *persistence.Batch, sh key.Shard, number uint32) {
	entries := key.IndexPrefix(nil, sh, number)
	w.DeleteRange(entries, key.PrefixEnd(entries))
	w.Delete(appendMark(nil, sh, number))
	w.Delete(key.IndexState(nil, sh, number))
}

// floorKey stands where an index has how far it is, and no index has the number.
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

// Indexes returns the present generation of indexes.
func (c *Catalog) Indexes() *Indexes { return c.indexes.Load() }

func (c *Catalog) indexOf(row storedIndex) *Index {
	if ix := c.Indexes().Find(row.Workflow, row.Path); ix != nil && ix.number == row.Number {
		return ix
	}
	return nil
}

// Standalone is what a standalone store has in the place of a row of Meta of a cluster's: there each index is built again.
func Standalone(row key.Parts, value []byte) ([]byte, error) {
	if row.Table != "setting" || row.Name != indexesSetting {
		return value, nil
	}
	rows := storedIndexes{}
	if err := json.Unmarshal(value, &rows); err != nil {
		return nil, fmt.Errorf("read indexes: %w: %w", persistence.ErrCorrupt, err)
	}
	for i := range rows.Indexes {
		if row := &rows.Indexes[i]; row.State == whole {
			row.State = building
		}
	}
	return json.Marshal(rows)
}

func (c *Catalog) reloadIndexesLocked() error {
	rows := storedIndexes{}
	text, err := c.store.Load(key.Setting(nil, indexesSetting))
	switch {
	case errors.Is(err, persistence.ErrNotFound):
	case err != nil:
		return fmt.Errorf("read indexes: %w", err)
	default:
		if err := json.Unmarshal(text, &rows); err != nil {
			return fmt.Errorf("read indexes: %w: %w", persistence.ErrCorrupt, err)
		}
	}
	if present := c.publishing.indexes; rows.Last == present.Last && slices.Equal(rows.Indexes, present.Indexes) {
		return nil
	}
	now, err := c.indexSetLocked(rows)
	if err != nil {
		return err
	}
	c.installIndexesLocked(rows, now)
	return nil
}

// Indexes that there are already are the same ones in it, and are not changed.
func (c *Catalog) indexSetLocked(rows storedIndexes) (Indexes, error) {
	old, now := *c.indexes.Load(), Indexes{}
	for _, row := range rows.Indexes {
		if row.State == dropping {
			continue
		}
		ix := old.Find(row.Workflow, row.Path)
		if ix == nil || ix.number != row.Number {
			path, err := data.ParsePath(row.Path)
			var field *filter.Field
			if err == nil {
				field, err = filter.ParseField(path) // prepareOneLocked did so before it was stored
			}
			if err != nil {
				return nil, fmt.Errorf("index %s of %s: %w", row.Path, row.Workflow, err)
			}
			ix = &Index{number: row.Number, field: field}
			if err := ix.loadMarks(c.store); err != nil {
				return nil, fmt.Errorf("index %s of %s: %w", row.Path, row.Workflow, err)
			}
		}
		now[row.Workflow] = append(now[row.Workflow], ix)
	}
	return now, nil
}

// When it returns, what every commit wrote that looked at the set before is visible.
func (c *Catalog) installIndexesLocked(rows storedIndexes, now Indexes) {
	for _, row := range rows.Indexes {
		if row.State != dropping && c.store.Standalone() {
			now.Find(row.Workflow, row.Path).whole.Store(row.State == whole)
		}
	}
	c.replaceIndexes(now, rows.Last)
	c.commits.Wait()
	c.publishing.indexes = rows
	c.pokeIndexes()
}

func (c *Catalog) pokeIndexes() {
	select {
	case c.indexesChanged <- struct{}{}:
	default:
	}
}

// declaredIndexes returns the rows that the definitions in next ask for, and
// whether they differ from the present ones. Workflows whose definition was
// not needed yet, or cannot be read, keep what they have; those that are not in next are gone.
func declaredIndexes(present storedIndexes, next currentVersions) (storedIndexes, bool) {
	rows := storedIndexes{Last: present.Last, Indexes: slices.Clone(present.Indexes)}
	changed := false
	wanted := func(workflow, path string) bool {
		o := next[workflow]
		return o != nil && (o.Definition == nil || slices.ContainsFunc(o.Indexes, func(p data.Path) bool { return p.String() == path }))
	}
	for i := range rows.Indexes {
		if row := &rows.Indexes[i]; row.State != dropping && !wanted(row.Workflow, row.Path) {
			row.State, changed = dropping, true
		}
	}
	for _, workflow := range slices.Sorted(maps.Keys(next)) {
		if next[workflow].Definition == nil {
			continue
		}
		for _, p := range next[workflow].Indexes {
			path := p.String()
			if slices.ContainsFunc(rows.Indexes, func(row storedIndex) bool {
				return row.Workflow == workflow && row.Path == path && row.State != dropping
			}) {
				continue
			}
			rows.Last++
			rows.Indexes = append(rows.Indexes, storedIndex{rows.Last, workflow, path, building})
			changed = true
		}
	}
	return rows, changed
}

// setIndexState stores that an index is whole or, when to is empty, that nothing
// of it is left. errDropped: it was dropped in the meantime.
func (c *Catalog) setIndexState(number uint32, from, to indexState) error {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	rows := storedIndexes{Last: c.publishing.indexes.Last, Indexes: slices.Clone(c.publishing.indexes.Indexes)}
	i := slices.IndexFunc(rows.Indexes, func(row storedIndex) bool { return row.Number == number && row.State == from })
	if i < 0 {
		return errDropped
	}
	if to == "" {
		rows.Indexes = slices.Delete(rows.Indexes, i, i+1)
	} else {
		rows.Indexes[i].State = to
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("write indexes: %w", err)
	}
	now, err := c.indexSetLocked(rows)
	if err != nil {
		return err
	}
	w := c.store.NewBatch(key.Meta)
	w.Set(key.Setting(nil, indexesSetting), text)
	if err := c.store.Commit(w); err != nil {
		return fmt.Errorf("write indexes: %w", err)
	}
	c.installIndexesLocked(rows, now)
	return nil
}

func (c *Catalog) unfinished() []storedIndex {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	return slices.DeleteFunc(slices.Clone(c.publishing.indexes.Indexes), func(row storedIndex) bool { return row.State == whole })
}

// BeginCommit is called before a commit looks at the Indexes, and at whatever else
// AwaitCommits waits for; the reader leaves when what the commit wrote is visible, or was
// refused. Commits of different shards do not contend, and nobody keeps them waiting.
func (c *Catalog) BeginCommit(sh key.Shard) wait.Reader { return c.commits.Enter(uint16(sh)) }

// EndCommit is the end of BeginCommit.
func (c *Catalog) EndCommit(commit wait.Reader) { c.commits.Leave(commit) }

// AwaitCommits returns when what every commit wrote that began before is visible.
func (c *Catalog) AwaitCommits() { c.commits.Wait() }

// Maintains says whether commits maintain an index. Within a commit: those that
// drop it wait for the commit before they free anything.
func (c *Catalog) Maintains(workflow string, ix *Index) bool {
	return slices.Contains((*c.indexes.Load())[workflow], ix)
}
