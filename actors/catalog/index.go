package catalog

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"troupe/actors/internal/grace"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/filter"
)

// Index is one of the indexes that a workflow's newest definition declares. Its
// entries are written in the commits that they describe.
type Index struct {
	number uint32 // in keys; never used again
	field  *filter.Field
	// whole says that every instance has its entries. Until then commits keep
	// the index up, and nobody asks it. With replicas it is not set: the rows of each shard
	// say so.
	whole atomic.Bool
	// several says that some instance has, or had, several values. It is set
	// before the entries are visible, and stays. Where it is not, both ends of a
	// range can be used.
	several atomic.Bool
}

// Field is what is indexed.
func (ix *Index) Field() *filter.Field { return ix.field }

// Path is the declared path.
func (ix *Index) Path() string { return ix.field.Path() }

// Whole says that every instance has its entries: those of any snapshot taken later
// are all there, as long as the index is among the Indexes after that. In a cluster it is
// false, and [Catalog.IsWholeAt] tells.
func (ix *Index) Whole() bool { return ix.whole.Load() }

// Several says that some instance has, or had, several values. In a cluster that is known of a
// snapshot after [Catalog.IsWholeAt].
func (ix *Index) Several() bool { return ix.several.Load() }

// Prefix is what the keys of all shards begin with; a value and an id follow.
func (ix *Index) Prefix() []byte {
	return key.IndexPrefix(nil, key.EveryShard, ix.number)
}

// key appends the key of an instance's entry for a value.
func (ix *Index) key(dst []byte, sh key.Shard, value []byte, id key.ID) []byte {
	return key.Index(dst, sh, ix.number, value, id)
}

// marks is an index number that no declared index gets. An entry in it has the number
// of an index as its value and says: in this shard, some instance has several values
// in that index.
const marks = 0

// appendMark appends the key of the mark of an index.
func appendMark(dst []byte, sh key.Shard, number uint32) []byte {
	return key.Index(dst, sh, marks, binary.BigEndian.AppendUint32(nil, number), key.ID{})
}

// loadMarks looks for the marks of an index.
func (ix *Index) loadMarks(store *persistence.Store) error {
	return store.Scan(appendMark(nil, key.EveryShard, ix.number), func(_, _ []byte) error {
		ix.several.Store(true)
		return nil
	})
}

// mark notes that an instance has several values, when it does.
func (ix *Index) mark(w *persistence.Writes, sh key.Shard, values [][]byte) {
	if len(values) > 1 {
		ix.several.Store(true)
		w.Set(appendMark(nil, sh, ix.number), nil)
	}
}

// Indexes has the indexes of each workflow. It is never changed.
type Indexes map[string][]*Index

// Indexes returns the present generation of indexes.
func (c *Catalog) Indexes() *Indexes { return c.indexes.Load() }

// Find returns the workflow's index on a path; nil when there is none.
func (s Indexes) Find(workflow, path string) *Index {
	for _, ix := range s[workflow] {
		if ix.Path() == path {
			return ix
		}
	}
	return nil
}

// indexOf returns the index of a row, nil when it was dropped in the meantime.
func (c *Catalog) indexOf(row storedIndex) *Index {
	if ix := c.Indexes().Find(row.Workflow, row.Path); ix != nil && ix.number == row.Number {
		return ix
	}
	return nil
}

// storedIndexes is the form in which the indexes are kept. The row changes in
// the commit that publishes the definition which declares them.
type storedIndexes struct {
	Last    uint32        `json:"last"` // the last number that was given
	Indexes []storedIndex `json:"indexes"`
}

type storedIndex struct {
	Number   uint32     `json:"number"`
	Workflow string     `json:"workflow"`
	Path     string     `json:"path"`
	State    indexState `json:"state"`
}

// indexState is how far an index is. Its life in a store that stands alone:
//
//	building ──► whole ──► dropping ──► (no row)
//	    └───────────────────┘
//
// In a cluster a row of Meta says that the index is declared, whatever its state, unless that
// is dropping. How far it is, each shard says; see inShards.
type indexState string

const (
	building indexState = "building"
	whole    indexState = "whole"
	dropping indexState = "dropping"
)

// errDropped ends the building of an index that nobody wants any more.
var errDropped = errors.New("the index was dropped")

// indexesSetting is the name under which storedIndexes are kept.
const indexesSetting = "indexes"

// reloadIndexesLocked makes the rows that the store has what commits keep up.
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

// indexSetLocked makes the set that the rows stand for. Indexes that there are
// already are the same ones in it, and are not changed.
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

// installIndexesLocked makes the rows, and the set of them, what commits keep up.
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

// pokeIndexes has the builder look whether there is something to do.
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

// withoutDropped forgets the indexes that are dropped, and says whether there are any. In a
// cluster that is all that dropping takes: each shard frees what no row declares.
func (rows *storedIndexes) withoutDropped() (some bool) {
	before := len(rows.Indexes)
	rows.Indexes = slices.DeleteFunc(rows.Indexes, func(row storedIndex) bool { return row.State == dropping })
	return len(rows.Indexes) < before
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

// unfinished returns the rows that the builder has something to do for.
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

// Enter writes all entries of an instance. It returns key, the room that it used.
func (ix *Index) Enter(w *persistence.Writes, key []byte, sh key.Shard, id key.ID, d filter.Document) []byte {
	values := ix.field.Keys(d)
	for _, value := range values {
		key = ix.key(key[:0], sh, value, id)
		w.Set(key, nil)
	}
	ix.mark(w, sh, values)
	return key
}

// Update writes what a step changes in the index. before is nil for a new instance.
// It returns key, the room that it used.
func (ix *Index) Update(w *persistence.Writes, key []byte, sh key.Shard, id key.ID, before, after *statemachine.Instance) []byte {
	var old [][]byte
	if before != nil {
		old = ix.field.Keys(filter.Document{Public: before.Public, Private: before.Private})
	}
	now := ix.field.Keys(filter.Document{Public: after.Public, Private: after.Private})
	difference(old, now, func(value []byte) {
		key = ix.key(key[:0], sh, value, id)
		w.Delete(key)
	})
	difference(now, old, func(value []byte) {
		key = ix.key(key[:0], sh, value, id)
		w.Set(key, nil)
	})
	ix.mark(w, sh, now)
	return key
}

// Leave removes all entries of an instance that is deleted. It returns key, the room that it used.
func (ix *Index) Leave(w *persistence.Writes, key []byte, sh key.Shard, id key.ID, of *statemachine.Instance) []byte {
	for _, value := range ix.field.Keys(filter.Document{Public: of.Public, Private: of.Private}) {
		key = ix.key(key[:0], sh, value, id)
		w.Delete(key)
	}
	return key
}

// difference gives each of a that is not in b. Both are sorted.
func difference(a, b [][]byte, give func([]byte)) {
	for _, value := range a {
		for len(b) > 0 && bytes.Compare(b[0], value) < 0 {
			b = b[1:]
		}
		if len(b) == 0 || !bytes.Equal(b[0], value) {
			give(value)
		}
	}
}
