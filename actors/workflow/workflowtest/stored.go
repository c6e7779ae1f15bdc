package workflowtest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"troupe/actors/internal/history"
	"troupe/actors/internal/instanceid"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/filter"
)

// Stored is an instance as the store has it.
type Stored struct {
	ID     key.ID
	Name   string
	Record statemachine.Record
	// Document is what a filter sees of it.
	Document filter.Document
}

// Instances reads all instances of a workflow from the store, by id: the slow and
// obvious query.
func (r *Router) Instances(workflow string) []Stored {
	r.t.Helper()
	return r.InstancesIn(r.Store, workflow)
}

// Moment is a store as it is, or a snapshot of it.
type Moment interface {
	Scan(prefix []byte, visit func(key, value []byte) error) error
	Load(key []byte) ([]byte, error)
}

// InstancesIn is Instances at a moment.
func (r *Router) InstancesIn(at Moment, workflow string) []Stored {
	r.t.Helper()
	var all []Stored
	for sh := range key.Shard(r.Store.Shards()) {
		err := at.Scan(key.RecordPrefix(nil, sh, workflow), func(k, text []byte) error {
			parsed, ok := key.Parse(k)
			if !ok {
				return fmt.Errorf("key %x", k)
			}
			record, err := statemachine.ParseRecord(bytes.Clone(text))
			if err != nil {
				return err
			}
			s := Stored{ID: parsed.ID, Name: instanceid.Text(parsed.ID), Record: record}
			s.Document = filter.Document{
				ID: s.Name, WorkflowID: workflow, Key: record.Key, States: record.States, Public: record.Public, Private: record.Private,
				History: func() data.Value { return r.StoredHistory(at, s.ID) },
			}
			all = append(all, s)
			return nil
		})
		r.Must(err)
	}
	slices.SortFunc(all, func(a, b Stored) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return all
}

// StoredHistory is the history of an instance as JSON.
func (r *Router) StoredHistory(at Moment, id key.ID) data.Value {
	var entries [][]byte
	reader := history.NewReader(at, r.Store.ShardOf(id), id)
	err := at.Scan(key.EntryPrefix(nil, r.Store.ShardOf(id), id), func(_, value []byte) error {
		entry, err := reader.Entry(uint64(len(entries)+1), value)
		entries = append(entries, bytes.Clone(entry))
		return err
	})
	if err != nil {
		r.t.Error(err)
	}
	return slices.Concat([]byte("["), bytes.Join(entries, []byte(",")), []byte("]"))
}

// CheckIndexes is the invariant: the rows of each whole index are the keys of the
// stored records, no more and no less; one that is being built has no others; one that
// is gone has none; and the index of nodes has the records' positions.
func (r *Router) CheckIndexes() {
	r.t.Helper()
	rows := r.Indexes()
	got, want, optional := map[string]bool{}, map[string]bool{}, map[string]bool{}
	marked := map[uint32]bool{} // indexes in which some instance has several values
	r.EachRow(func(key key.Parts, text, _ []byte) {
		switch {
		case key.Table == "index" && key.Number == 0:
			number := binary.BigEndian.Uint32([]byte(key.Value))
			if marked[number] = true; !slices.ContainsFunc(rows, func(row Index) bool { return row.Number == number }) {
				r.t.Errorf("a mark of index %d, which is gone", number)
			}
		case key.Table == "index", key.Table == "node":
			got[string(text)] = true
		}
	})
	for _, workflow := range r.workflows() {
		for _, s := range r.Instances(workflow) {
			sh := r.Store.ShardOf(s.ID)
			for _, p := range s.Record.States.Elements() {
				machine, _ := p.Lookup("stateMachineId")
				node, _ := p.Lookup("nodeId")
				want[string(key.Node(nil, sh, workflow, node.Text(), machine.Text(), s.ID))] = true
			}
			for _, row := range rows {
				if row.Workflow != workflow || row.State == Dropping {
					continue
				}
				keys := FieldOf(r.t, row.Path).Keys(s.Document)
				if row.State == Whole && len(keys) > 1 && !marked[row.Number] {
					r.t.Errorf("index %d has no mark, but instance %x has the values %x", row.Number, s.ID, keys)
				}
				for _, k := range keys {
					text := string(key.Index(nil, sh, row.Number, k, s.ID))
					if optional[text] = true; row.State == Whole {
						want[text] = true
					}
				}
			}
		}
	}
	var missing, extra []string
	for key := range want {
		if !got[key] {
			missing = append(missing, describe(key))
		}
	}
	for key := range got {
		if !want[key] && !optional[key] {
			extra = append(extra, describe(key))
		}
	}
	if len(missing)+len(extra) > 0 {
		r.t.Errorf("%d index rows are missing: %q, %d are too many: %q; indexes %+v", len(missing), missing[:min(3, len(missing))], len(extra), extra[:min(3, len(extra))], rows)
	}
}

func describe(k string) string {
	parsed, _ := key.Parse([]byte(k))
	return fmt.Sprintf("%s, value %q", parsed, parsed.Value)
}

// EachRow calls visit with all rows of all instances.
func (r *Router) EachRow(visit func(key key.Parts, text, value []byte)) {
	r.t.Helper()
	for sh := range key.Shard(r.Store.Shards()) {
		r.Must(r.Store.Scan(key.ShardPrefix(nil, sh), func(text, value []byte) error {
			key, ok := key.Parse(text)
			if !ok {
				r.t.Errorf("key %x", text)
			}
			visit(key, text, value)
			return nil
		}))
	}
}

// FieldOf is what an index on a path looks at.
func FieldOf(t testing.TB, path string) *filter.Field {
	t.Helper()
	p, err := data.ParsePath(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := filter.ParseField(p)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// IndexRows counts the rows of an index in the store.
func (r *Router) IndexRows(number uint32) (count int) {
	r.t.Helper()
	r.EachRow(func(key key.Parts, _, _ []byte) {
		if key.Table == "index" && key.Number == uint64(number) {
			count++
		}
	})
	return count
}

// IndexRow returns what is known of an index that is not being dropped.
func (r *Router) IndexRow(workflow, path string) (row Index, ok bool) {
	for _, row := range r.Indexes() {
		if row.Workflow == workflow && row.Path == path && row.State != Dropping {
			return row, true
		}
	}
	return Index{}, false
}

// AwaitIndexes returns when nothing is left to build or to drop.
func (r *Router) AwaitIndexes() {
	r.t.Helper()
	Await(r.t, "indexes", func() bool {
		return !slices.ContainsFunc(r.Indexes(), func(row Index) bool {
			ix := r.Catalog.Indexes().Find(row.Workflow, row.Path)
			return row.State != Whole || ix == nil || !ix.Whole()
		})
	})
}

// Index is a row of the catalog's indexes in the store.
type Index struct {
	Number                uint32
	Workflow, Path, State string
}

// The states of an Index.
const (
	Building = "building"
	Whole    = "whole"
	Dropping = "dropping"
)

// Indexes reads the indexes that there are.
func (r *Router) Indexes() []Index {
	r.t.Helper()
	var stored struct{ Indexes []Index }
	text, err := r.Store.Load(key.Setting(nil, "indexes"))
	if err == nil {
		err = json.Unmarshal(text, &stored)
	}
	if err != nil && !errors.Is(err, persistence.ErrNotFound) {
		r.t.Fatal(err)
	}
	return stored.Indexes
}

// workflows are those that were ever published, by id.
func (r *Router) workflows() []string {
	r.t.Helper()
	var ids []string
	err := r.Store.Scan(key.DefinitionsPrefix(nil), func(k, _ []byte) error {
		parsed, _ := key.Parse(k)
		ids = append(ids, parsed.Workflow)
		return nil
	})
	r.Must(err)
	slices.Sort(ids)
	return slices.Compact(ids)
}
