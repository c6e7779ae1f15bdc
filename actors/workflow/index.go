package workflow

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/filter"
)

// index is one of the indexes that a workflow's newest definition declares. Its
// entries are written in the commits that they describe.
type index struct {
	number uint32 // in keys; never used again
	field  *filter.Field
	// whole says that every instance has its entries. Until then commits keep
	// the index up, and nobody asks it.
	whole atomic.Bool
	// several says that some instance has, or had, several values. It is set
	// before the entries are visible, and stays. Where it is not, both ends of a
	// range can be used.
	several atomic.Bool
}

// marks is the number of an index that nobody declares: its entries have the
// number of an index for a value, and say that in their shard some instance has
// several values in it.
const marks = 0

// appendMark appends the key of the mark of an index.
func appendMark(dst []byte, sh persistence.Shard, number uint32) []byte {
	return persistence.IndexKey(dst, sh, marks, binary.BigEndian.AppendUint32(nil, number), persistence.ID{})
}

// loadMarks looks for the marks of an index.
func (ix *index) loadMarks(store *persistence.Store) error {
	for sh := range persistence.Shard(store.ShardCount()) {
		_, err := store.Load(appendMark(nil, sh, ix.number))
		switch {
		case err == nil:
			ix.several.Store(true)
			return nil
		case !errors.Is(err, persistence.ErrNotFound):
			return err
		}
	}
	return nil
}

// mark notes that an instance has several values, when it does.
func (ix *index) mark(w *persistence.Writes, sh persistence.Shard, values [][]byte) {
	if len(values) > 1 {
		ix.several.Store(true)
		w.Set(appendMark(nil, sh, ix.number), nil)
	}
}

// indexSet has the indexes of each workflow. It is replaced, never changed.
type indexSet map[string][]*index

// find returns the workflow's index on a path; nil when there is none.
func (s indexSet) find(workflow, path string) *index {
	for _, ix := range s[workflow] {
		if ix.field.Path() == path {
			return ix
		}
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

// indexState is how far an index is. Its life:
//
//	building ──► whole ──► dropping ──► (no row)
//	    └───────────────────┘
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

func (c *Catalog) loadIndexes() error {
	text, err := c.store.Load(persistence.SettingKey(nil, indexesSetting))
	switch {
	case errors.Is(err, persistence.ErrNotFound):
	case err != nil:
		return fmt.Errorf("read indexes: %w", err)
	default:
		if err := json.Unmarshal(text, &c.publishing.indexes); err != nil {
			return fmt.Errorf("read indexes: %w: %w", persistence.ErrCorrupt, err)
		}
	}
	now, err := c.indexSetLocked(c.publishing.indexes)
	if err != nil {
		return err
	}
	c.installIndexesLocked(c.publishing.indexes, now)
	return nil
}

// indexSetLocked makes the set that the rows stand for. Indexes that there are
// already are the same ones in it, and are not changed.
func (c *Catalog) indexSetLocked(rows storedIndexes) (indexSet, error) {
	old, now := *c.indexes.Load(), indexSet{}
	for _, row := range rows.Indexes {
		if row.State == dropping {
			continue
		}
		ix := old.find(row.Workflow, row.Path)
		if ix == nil || ix.number != row.Number {
			path, err := data.ParsePath(row.Path)
			var field *filter.Field
			if err == nil {
				field, err = filter.ParseField(path) // prepareOneLocked did so before it was stored
			}
			if err != nil {
				return nil, fmt.Errorf("index %s of %s: %w", row.Path, row.Workflow, err)
			}
			ix = &index{number: row.Number, field: field}
			if err := ix.loadMarks(c.store); err != nil {
				return nil, fmt.Errorf("index %s of %s: %w", row.Path, row.Workflow, err)
			}
		}
		now[row.Workflow] = append(now[row.Workflow], ix)
	}
	return now, nil
}

// installIndexesLocked makes the rows, and the set of them, what commits keep up.
// When it returns, no commit that looked at the set before is still on its way to
// the journal, and no query is about to take its snapshot.
func (c *Catalog) installIndexesLocked(rows storedIndexes, now indexSet) {
	for _, row := range rows.Indexes {
		if row.State != dropping {
			now.find(row.Workflow, row.Path).whole.Store(row.State == whole)
		}
	}
	c.indexing.Lock()
	c.indexes.Store(&now)
	c.indexing.Unlock()
	c.publishing.indexes = rows
	select {
	case c.indexesChanged <- struct{}{}:
	default:
	}
}

// declaredIndexes returns the rows that the definitions in next ask for, and
// whether they differ from the present ones. Workflows that are not in next
// keep what they have, and so do those whose definition cannot be read.
func declaredIndexes(present storedIndexes, next offers) (storedIndexes, bool) {
	rows := storedIndexes{Last: present.Last, Indexes: slices.Clone(present.Indexes)}
	changed := false
	wanted := func(workflow, path string) bool {
		o := next[workflow]
		return o == nil || o.Definition == nil || slices.ContainsFunc(o.Indexes(), func(p data.Path) bool { return p.String() == path })
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
		for _, p := range next[workflow].Indexes() {
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
	w := c.store.NewWrites(persistence.Meta)
	w.Set(persistence.SettingKey(nil, indexesSetting), text)
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

// keepsUp says whether commits keep an index up. While indexing is held, that
// does not change.
func (c *Catalog) keepsUp(workflow string, ix *index) bool {
	return slices.Contains((*c.indexes.Load())[workflow], ix)
}

// enter writes all entries of an instance. It returns key, the room that it used.
func (ix *index) enter(w *persistence.Writes, key []byte, sh persistence.Shard, id persistence.ID, d filter.Document) []byte {
	values := ix.field.Keys(d)
	for _, value := range values {
		key = persistence.IndexKey(key[:0], sh, ix.number, value, id)
		w.Set(key, nil)
	}
	ix.mark(w, sh, values)
	return key
}

// indexed is what index entries are made of.
func indexed(in *statemachine.Instance) filter.Document {
	return filter.Document{Public: in.Public, Private: in.Private}
}

// putIndexes writes what a step changes in the declared indexes. before is nil
// for a new instance.
func (i *instance) putIndexes(w *persistence.Writes, indexes []*index, before, after *statemachine.Instance) {
	for _, ix := range indexes {
		var old [][]byte
		if before != nil {
			if bytes.Equal(before.Public, after.Public) && bytes.Equal(before.Private, after.Private) {
				return
			}
			old = ix.field.Keys(indexed(before))
		}
		now := ix.field.Keys(indexed(after))
		difference(old, now, func(value []byte) {
			i.scratch = persistence.IndexKey(i.scratch[:0], i.shard, ix.number, value, i.id)
			w.Delete(i.scratch)
		})
		difference(now, old, func(value []byte) {
			i.scratch = persistence.IndexKey(i.scratch[:0], i.shard, ix.number, value, i.id)
			w.Set(i.scratch, nil)
		})
		ix.mark(w, i.shard, now)
	}
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
