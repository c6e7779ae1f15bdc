package task

import (
	"github.com/rs/zerolog"

	"troupe/actors/catalog"
	"troupe/actors/internal/backfill"
	"troupe/actors/internal/instanceid"
	"troupe/persistence"
	"troupe/statemachine"
)

// markGrouped is the value of the mark of a shard that is Grouped. Before that it was 1.
const markGrouped = 2

// NewBackfill returns what has the instances that an earlier program has stored write their tasks.
func NewBackfill(s *persistence.Store, c *catalog.Catalog, layouts *Layouts, write func(workflow string, id persistence.ID) (wait func() error, err error), log zerolog.Logger) *backfill.Backfill {
	return &backfill.Backfill{
		What: "the tasks", Store: s, Catalog: c, Ready: layouts.ready, Write: write, Log: log,
		Mark:  func(sh persistence.Shard) []byte { return persistence.TaskKey(nil, sh, persistence.ID{}, 0, 0) },
		Value: markGrouped,
		Done:  func(sh persistence.Shard) { layouts.grouped[sh].Store(true) },
		Lacks: func(sh persistence.Shard, key persistence.Key, record []byte) (bool, error) {
			return lacks(s, c, sh, &key, record)
		},
	}
}

// lacks reports whether an instance has tasks that its record does not have, or that have no rows of their own. What cannot be read has none.
func lacks(s *persistence.Store, c *catalog.Catalog, sh persistence.Shard, key *persistence.Key, stored []byte) (bool, error) {
	record, err := statemachine.ParseRecord(stored)
	if err != nil {
		return false, nil
	}
	d, err := c.Version(key.Workflow, record.Version)
	if err != nil || !d.HasTasks() {
		return false, nil
	}
	in, err := d.Restore(instanceid.Text(key.ID), record)
	if err != nil || in.HasUnstoredTasks() {
		return err == nil, nil
	}
	of := Origin{Shard: sh, Workflow: key.Workflow, Instance: key.ID, Of: d}
	grouped, err := of.areTasksGrouped(s, in.Tasks())
	return !grouped, err
}
