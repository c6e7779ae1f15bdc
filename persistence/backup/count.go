package backup

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"troupe/persistence"
	"troupe/persistence/key"
)

// Counts are how many instances and history entries a store has, by workflow.
type Counts struct {
	Instances map[string]int64 `json:"instances"`
	History   map[string]int64 `json:"history"` // nil: they were not counted
}

// Sum adds up the counts of all workflows.
func Sum(counts map[string]int64) (sum int64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// Differ lists where two counts are not the same; history is compared where both have counted it.
func (c Counts) Differ(other Counts) (differences []string) {
	differences = differ("instances", c.Instances, other.Instances)
	if c.History != nil && other.History != nil {
		differences = append(differences, differ("history entries", c.History, other.History)...)
	}
	return differences
}

func differ(what string, a, b map[string]int64) (differences []string) {
	all := map[string]int64{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	for _, workflow := range slices.Sorted(maps.Keys(all)) {
		if a[workflow] != b[workflow] {
			differences = append(differences, fmt.Sprintf("%s: %d %s, expected %d", workflow, b[workflow], what, a[workflow]))
		}
	}
	return differences
}

// breakAfter is how many keys are read between two looks at the context.
const breakAfter = 4096

// Count reads all keys of records and history entries. When ctx ends before, Instances are right all the same: the store
// has counters for them.
func Count(ctx context.Context, store *persistence.Store) (Counts, error) {
	c := Counts{Instances: map[string]int64{}, History: map[string]int64{}}
	for _, sh := range store.Numbered() {
		if err := countInstances(store, sh, c.Instances); err != nil {
			return c, err
		}
	}
	for _, sh := range store.Numbered() {
		if err := countHistory(ctx, store, sh, c.History); err != nil {
			return c, err
		}
	}
	return c, nil
}

func countInstances(store *persistence.Store, sh key.Shard, counts map[string]int64) error {
	return store.Scan(key.CountsPrefix(nil, sh), func(k, value []byte) error {
		parts, ok := key.Parse(k)
		n, err := persistence.ParseCount(value)
		if !ok {
			err = persistence.ErrCorrupt
		}
		if n != 0 {
			counts[parts.Workflow] += n
		}
		return err
	})
}

func countHistory(ctx context.Context, store *persistence.Store, sh key.Shard, counts map[string]int64) error {
	workflows := map[key.ID]string{}
	visited := 0
	each := func(visit func(key.Parts)) func(k, _ []byte) error {
		return func(k, _ []byte) error {
			parts, ok := key.Parse(k)
			if !ok {
				return persistence.ErrCorrupt
			}
			visit(parts)
			if visited++; visited%breakAfter == 0 {
				return ctx.Err()
			}
			return nil
		}
	}
	name := "" // one string for the records of a workflow, which follow each other
	err := store.Scan(key.RecordsPrefix(nil, sh), each(func(p key.Parts) {
		if p.Workflow != name {
			name = p.Workflow
		}
		workflows[p.ID] = name
	}))
	if err != nil {
		return err
	}
	return store.Scan(key.EntriesPrefix(nil, sh), each(func(p key.Parts) { counts[workflows[p.ID]]++ }))
}
