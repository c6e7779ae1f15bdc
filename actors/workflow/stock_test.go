package workflow

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"troupe/actors/identity"
	"troupe/actors/internal/history"
	"troupe/actors/internal/instanceid"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/filter"
)

// stock is a workflow with indexes: guests do not see what is secret, who is no
// member sees nothing.
func stock(id string, version int, indexes ...string) string {
	return fmt.Sprintf(`
id: %s
version: %d
indexes: [%s]
allow:
  read: {roles: [member], deny: {roles: [guest], when: 'has(svcPublic.secret) && svcPublic.secret == true'}}
context: {svcPrivate: {p: 0}}
events:
  skip: {unmatched: ignore, private: true}
  set: {private: true}
  close: {private: true}
  open: {private: true}
  side: {private: true}
stateMachines:
  main: {initial: open, states: {open: {on: {set: {}, close: closed}}, closed: {on: {set: {}, open: open, skip: {guard: 'false'}}}}}
  side: {initial: open, states: {open: {on: {side: closed}}, closed: {on: {side: open}}}}
`, id, version, strings.Join(indexes, ", "))
}

// stockIndexes are the usual indexes of stock.
var stockIndexes = []string{"svcPublic.a", "svcPublic.b.c", "svcPublic.t", "svcPublic.n", "svcPrivate.p"}

var (
	member = principal("mem", []string{"member"})
	guest  = principal("gus", []string{"member", "guest"})
	boss   = principal("boss", []string{"member"}, string(identity.Workflows))
)

// fill makes instances of a workflow, many at a time, and returns their ids in
// the order of publics.
func (h *house) fill(workflow string, publics []string) []string {
	h.t.Helper()
	ids := make([]string, len(publics))
	var wg sync.WaitGroup
	const writers = 64
	for first := range min(writers, len(publics)) {
		wg.Go(func() {
			for n := first; n < len(publics); n += writers {
				r, err := h.Create(h.t.Context(), &CreateRequest{Caller: boss, WorkflowID: workflow, Public: value(publics[n])})
				if err != nil {
					h.t.Error(err)
					return
				}
				ids[n] = r.InstanceID
			}
		})
	}
	wg.Wait()
	return ids
}

// storedInstance is an instance as the store has it.
type storedInstance struct {
	id     persistence.ID
	name   string
	record statemachine.Record
	// document is what a filter sees of it.
	document filter.Document
}

// instances reads all instances of a workflow from the store, by id: the slow
// and obvious query.
func (h *house) instances(workflow string) []storedInstance {
	h.t.Helper()
	return h.instancesIn(h.store, workflow)
}

// moment is a store as it is, or a snapshot of it.
type moment interface {
	Scan(prefix []byte, visit func(key, value []byte) error) error
}

// instancesIn is instances as they were at some moment.
func (h *house) instancesIn(at moment, workflow string) []storedInstance {
	h.t.Helper()
	var all []storedInstance
	for sh := range persistence.Shard(h.store.ShardCount()) {
		err := at.Scan(persistence.RecordPrefix(nil, sh, workflow), func(key, text []byte) error {
			parsed, ok := persistence.ParseKey(key)
			if !ok {
				return fmt.Errorf("key %x", key)
			}
			record, err := statemachine.ParseRecord(bytes.Clone(text))
			if err != nil {
				return err
			}
			s := storedInstance{id: parsed.ID, name: instanceid.Text(parsed.ID), record: record}
			s.document = filter.Document{
				ID: s.name, WorkflowID: workflow, States: record.States, Public: record.Public, Private: record.Private,
				History: func() data.Value { return h.storedHistory(at, s.id) },
			}
			all = append(all, s)
			return nil
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
	slices.SortFunc(all, func(a, b storedInstance) int { return bytes.Compare(a.id[:], b.id[:]) })
	return all
}

func (h *house) storedHistory(at moment, id persistence.ID) data.Value {
	var entries [][]byte
	err := at.Scan(persistence.EntryPrefix(nil, h.store.ShardOf(id), id), func(_, value []byte) error {
		entries = append(entries, bytes.Clone(value[history.HeadBytes:]))
		return nil
	})
	if err != nil {
		h.t.Error(err)
	}
	return slices.Concat([]byte("["), bytes.Join(entries, []byte(",")), []byte("]"))
}

// checkIndexes is the invariant: the rows of each whole index are the keys of
// the stored records, no more and no less; one that is being built has no others;
// one that is gone has none; and the index of nodes has the records' positions.
func (h *house) checkIndexes() {
	h.t.Helper()
	rows := h.storedIndexes()
	got, want, optional := map[string]bool{}, map[string]bool{}, map[string]bool{}
	marked := map[uint32]bool{} // indexes in which some instance has several values
	for sh := range persistence.Shard(h.store.ShardCount()) {
		err := h.store.Scan(persistence.ShardPrefix(nil, sh), func(key, _ []byte) error {
			parsed, ok := persistence.ParseKey(key)
			switch {
			case !ok:
				h.t.Errorf("key %x", key)
			case parsed.Table == "index" && parsed.Number == 0:
				number := binary.BigEndian.Uint32([]byte(parsed.Value))
				if i := slices.IndexFunc(rows, func(row storedIndex) bool { return row.Number == number }); i < 0 {
					h.t.Errorf("a mark of index %d, which is gone", number)
				} else {
					marked[number] = true
				}
			case parsed.Table == "index", parsed.Table == "node":
				got[string(key)] = true
			}
			return nil
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
	for _, workflow := range h.workflows() {
		for _, s := range h.instances(workflow) {
			sh := h.store.ShardOf(s.id)
			for _, p := range s.record.States.Elements() {
				machine, _ := p.Lookup("stateMachineId")
				node, _ := p.Lookup("nodeId")
				want[string(persistence.NodeKey(nil, sh, workflow, node.Text(), machine.Text(), s.id))] = true
			}
			for _, row := range rows {
				if row.Workflow != workflow || row.State == dropping {
					continue
				}
				keys := fieldOf(h.t, row.Path).Keys(s.document)
				if row.State == whole && len(keys) > 1 && !marked[row.Number] {
					h.t.Errorf("index %d has no mark, but instance %x has the values %x", row.Number, s.id, keys)
				}
				for _, key := range keys {
					text := string(persistence.IndexKey(nil, sh, row.Number, key, s.id))
					if optional[text] = true; row.State == whole {
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
		h.t.Errorf("%d index rows are missing: %.3q, %d are too many: %.3q; indexes %+v", len(missing), first3(missing), len(extra), first3(extra), rows)
	}
}

func describe(key string) string {
	parsed, _ := persistence.ParseKey([]byte(key))
	return fmt.Sprintf("%s, value %q", parsed, parsed.Value)
}

func first3(all []string) []string { slices.Sort(all); return all[:min(3, len(all))] }

func fieldOf(t testing.TB, path string) *filter.Field {
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

// indexRows counts the rows of an index in the store.
func (h *house) indexRows(number uint32) int {
	h.t.Helper()
	count := 0
	for sh := range persistence.Shard(h.store.ShardCount()) {
		err := h.store.Scan(persistence.IndexPrefix(nil, sh, number), func(_, _ []byte) error { count++; return nil })
		if err != nil {
			h.t.Fatal(err)
		}
	}
	return count
}

// indexRow returns what is known of an index that is not being dropped.
func (h *house) indexRow(workflow, path string) (row storedIndex, ok bool) {
	for _, row := range h.storedIndexes() {
		if row.Workflow == workflow && row.Path == path && row.State != dropping {
			return row, true
		}
	}
	return storedIndex{}, false
}

// awaitIndexes returns when nothing is left to build or to drop.
func (h *house) awaitIndexes() {
	h.t.Helper()
	await(h.t, "indexes", func() bool {
		return !slices.ContainsFunc(h.storedIndexes(), func(row storedIndex) bool {
			ix := h.catalog.Indexes().Find(row.Workflow, row.Path)
			return row.State != whole || ix == nil || !ix.Whole()
		})
	})
}

// list asks and returns the ids, in the order in which they come.
func (h *house) list(req query.Request) (ids []string, end *query.End, err error) {
	end, err = h.Query(h.t.Context(), &req, func(item []byte) error {
		var entry struct {
			ID string `json:"_id"`
		}
		err := json.Unmarshal(item, &entry)
		ids = append(ids, entry.ID)
		return err
	})
	return ids, end, err
}

// pages asks page after page and returns all of it.
func (h *house) pages(req query.Request) (ids []string, err error) {
	for n := 0; ; n++ {
		page, end, err := h.list(req)
		if err != nil {
			return ids, err
		}
		if ids = append(ids, page...); end.Next == "" {
			return ids, nil
		}
		if len(page) > req.Limit || n > 20_000 {
			return ids, fmt.Errorf("page %d has %d entries, limit %d", n, len(page), req.Limit)
		}
		req.Cursor = end.Next
	}
}

// someOf draws one of values.
func someOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// randomPublic draws data that has something at the paths that are asked about.
func randomPublic(r *rand.Rand, n int) string {
	scalar := func() string {
		return someOf(r, "null", "0", "1", "2", "3", "-1", "1.5", "1e2", `""`, `"a"`, `"ab"`, `"abc"`, `"b"`, `"\u0000"`, `"é"`, "true", "false")
	}
	array := func() string {
		var elements []string
		for range r.IntN(4) {
			elements = append(elements, someOf(r, scalar(), scalar(), "[1,2]", `{"c":1}`, "[]"))
		}
		return "[" + strings.Join(elements, ",") + "]"
	}
	members := []string{fmt.Sprintf(`"n":%d`, n)}
	if r.IntN(5) > 0 {
		members = append(members, `"a":`+someOf(r, scalar(), scalar(), scalar(), array(), array(), `{"x":1}`, fmt.Sprint(r.IntN(1000))))
	}
	if r.IntN(5) > 0 {
		members = append(members, `"b":`+someOf(r, `{"c":`+scalar()+`}`, `{"c":`+array()+`}`, `[{"c":`+scalar()+`},{"c":`+scalar()+`}]`, scalar(), `[{"c":1},{}]`, `{}`))
	}
	if r.IntN(5) > 0 {
		long := `"` + strings.Repeat("x", 300) + fmt.Sprint(r.IntN(3)) + `"`
		members = append(members, `"t":`+someOf(r, fmt.Sprintf(`"t%02d"`, r.IntN(60)), fmt.Sprintf(`["t%02d","t%02d"]`, r.IntN(60), r.IntN(60)), long))
	}
	if r.IntN(4) == 0 {
		members = append(members, `"secret":true`)
	}
	if r.IntN(2) == 0 {
		members = append(members, `"u":`+scalar())
	}
	return "{" + strings.Join(members, ",") + "}"
}

// storedIndex is a row of the catalog's indexes in the store.
type storedIndex struct {
	Number                uint32
	Workflow, Path, State string
}

const (
	building = "building"
	whole    = "whole"
	dropping = "dropping"
)

// storedIndexes reads the indexes that there are.
func (h *house) storedIndexes() []storedIndex {
	h.t.Helper()
	var stored struct{ Indexes []storedIndex }
	text, err := h.store.Load(persistence.SettingKey(nil, "indexes"))
	if err == nil {
		err = json.Unmarshal(text, &stored)
	}
	if err != nil && !errors.Is(err, persistence.ErrNotFound) {
		h.t.Fatal(err)
	}
	return stored.Indexes
}

// workflows are those that were ever published, by id.
func (h *house) workflows() []string {
	h.t.Helper()
	var ids []string
	err := h.store.Scan(persistence.DefinitionsPrefix(nil), func(key, _ []byte) error {
		parsed, _ := persistence.ParseKey(key)
		ids = append(ids, parsed.Workflow)
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
