package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"troupe/actors/internal/grace"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine/data"
	"troupe/statemachine/filter"
)

// Indexes returns the present generation of indexes.
func (c *Catalog) Indexes() *Indexes { return c.indexes.Load() }

func (c *Catalog) indexOf(row storedIndex) *Index {
	if ix := c.Indexes().Find(row.Workflow, row.Path); ix != nil && ix.number == row.Number {
		return ix
	}
	return nil
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
		if row.State != dropping && c.store.Alone() {
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
	w := c.store.NewWrites(key.Meta)
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
func (c *Catalog) BeginCommit(sh key.Shard) grace.Reader { return c.commits.Enter(uint16(sh)) }

// EndCommit is the end of BeginCommit.
func (c *Catalog) EndCommit(commit grace.Reader) { c.commits.Leave(commit) }

// AwaitCommits returns when what every commit wrote that began before is visible.
func (c *Catalog) AwaitCommits() { c.commits.Wait() }

// Maintains says whether commits maintain an index. Within a commit: those that
// drop it wait for the commit before they free anything.
func (c *Catalog) Maintains(workflow string, ix *Index) bool {
	return slices.Contains((*c.indexes.Load())[workflow], ix)
}
