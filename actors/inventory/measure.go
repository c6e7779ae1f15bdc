package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"troupe/persistence"
	"troupe/persistence/key"
)

// Size is what rows of a kind take, or those of a workflow: keys and values as they were written, before tables compress them.
type Size struct {
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"`
}

func (s *Size) add(k, value []byte) {
	s.Rows++
	s.Bytes += int64(len(k) + len(value))
}

// Kind is the rows of one kind.
type Kind struct {
	Kind string `json:"kind"`
	Size
}

// Workflow is the rows that belong to the instances of a workflow.
type Workflow struct {
	Workflow  string `json:"workflowId"`
	Instances int64  `json:"instances"`
	Size
}

// Sizes are what a store has, each list the largest first.
type Sizes struct {
	Shards    int        `json:"shards"`
	Total     Size       `json:"total"`
	DiskBytes uint64     `json:"diskBytes"` // of all files, logs and deleted rows among them
	Kinds     []Kind     `json:"kinds"`
	Workflows []Workflow `json:"workflows"`
}

// plural names of kinds, as people know them.
var kindNames = map[string]string{
	"entry": "history", "node": "index of states", "index": "declared indexes", "reply": "idempotency keys", "delivery": "outbox",
	"attempt": "outbox attempts", "work": "worklists", "list": "lists of users", "replica": "replicas and their logs",
	"job": "jobs", "done": "done instances", "donetime": "times of done instances", "business": "keys of instances", "bulk": "bulk jobs", "audit": "audit log",
	"export": "exports", "indexstate": "states of indexes",
}

// Measure reads all rows that this node has.
func Measure(ctx context.Context, store *persistence.Store, pace func(context.Context, int) error, say func(string)) (*Sizes, error) {
	m := &measure{kinds: map[string]*Size{}, workflows: map[string]*Workflow{}}
	here := Shards(store)
	for i, sh := range here {
		say(fmt.Sprintf("reading shard %d of %d", i+1, len(here)))
		m.of = map[key.ID]*Workflow{}
		at := store.SnapshotOf([]key.Shard{sh})
		err := at.Scan(key.RecordsPrefix(nil, sh), m.record)
		if err == nil {
			err = m.scan(ctx, at, key.ShardPrefix(nil, sh), pace)
		}
		if cerr := at.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return nil, err
		}
	}
	at := store.Snapshot()
	defer func() { _ = at.Close() }() // read-only: nothing to lose
	for _, prefix := range [][]byte{key.ShardPrefix(nil, key.Meta), key.ShardPrefix(nil, key.Copies)} {
		if err := m.scan(ctx, at, prefix, pace); err != nil {
			return nil, err
		}
	}
	sizes := &Sizes{Shards: len(here), Total: m.total, DiskBytes: store.Metrics().DiskBytes, Kinds: []Kind{}, Workflows: []Workflow{}}
	for kind, size := range m.kinds {
		sizes.Kinds = append(sizes.Kinds, Kind{cmp.Or(kindNames[kind], kind), *size})
	}
	for _, w := range m.workflows {
		sizes.Workflows = append(sizes.Workflows, *w)
	}
	slices.SortFunc(sizes.Kinds, func(a, b Kind) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Kind, b.Kind)) })
	slices.SortFunc(sizes.Workflows, func(a, b Workflow) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Workflow, b.Workflow))
	})
	return sizes, nil
}

type measure struct {
	total     Size
	kinds     map[string]*Size
	workflows map[string]*Workflow
	of        map[key.ID]*Workflow // the instances of the shard
}

func (m *measure) workflow(id string) *Workflow {
	w := m.workflows[id]
	if w == nil {
		w = &Workflow{Workflow: id}
		m.workflows[id] = w
	}
	return w
}

func (m *measure) record(k, _ []byte) error {
	if parts, ok := key.Parse(k); ok {
		w := m.workflow(parts.Workflow)
		w.Instances++
		m.of[parts.ID] = w
	}
	return nil
}

func (m *measure) scan(ctx context.Context, at *persistence.Snapshot, prefix []byte, pace func(context.Context, int) error) error {
	return at.Scan(prefix, func(k, value []byte) error {
		parts, _ := key.Parse(k) // an unknown form has the kind ""
		kind := cmp.Or(parts.Table, "unknown")
		size := m.kinds[kind]
		if size == nil {
			size = &Size{}
			m.kinds[kind] = size
		}
		size.add(k, value)
		m.total.add(k, value)
		switch w := m.of[parts.ID]; {
		case w != nil && parts.ID != key.ID{}:
			w.add(k, value)
		case parts.Workflow != "":
			m.workflow(parts.Workflow).add(k, value)
		}
		return pace(ctx, len(k)+len(value))
	})
}
