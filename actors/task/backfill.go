package task

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/internal/instanceid"
	"troupe/persistence"
	"troupe/statemachine"
)

// backfillAgain is how long Backfill waits before it looks again at shards that others lead, or that it could not finish.
const backfillAgain = 5 * time.Second

// Backfill has the instances that an earlier program has stored write their tasks, once in the life of each shard.
type Backfill struct {
	Store   *persistence.Store
	Catalog *catalog.Catalog
	Layouts *Layouts
	// Write has an instance write its tasks, and returns when that is durable.
	Write func(workflow string, id persistence.ID) error
	Log   zerolog.Logger
}

// Run returns when all shards are done, or ctx ends.
func (b *Backfill) Run(ctx context.Context) {
	for {
		done := true
		for sh := range persistence.Shard(b.Store.Shards()) {
			of, err := b.shard(ctx, sh)
			if err != nil && ctx.Err() == nil && failure.Of(err).Kind != failure.ErrElsewhere && failure.Of(err).Kind != failure.ErrUnavailable {
				b.Log.Warn().Err(err).Uint16("shard", uint16(sh)).Msg("the tasks of earlier instances could not be written yet")
			}
			done = done && of
		}
		if done {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(backfillAgain):
		}
	}
}

// markGrouped is the value of the mark of a shard that is Grouped. Before that it was 1.
const markGrouped = 2

// shard has the tasks of a shard written, and is true when they are there.
func (b *Backfill) shard(ctx context.Context, sh persistence.Shard) (done bool, err error) {
	defer func() {
		if done {
			b.Layouts.grouped[sh].Store(true)
		}
	}()
	mark := persistence.TaskKey(nil, sh, persistence.ID{}, 0, 0)
	switch value, err := b.Store.Load(mark); {
	case err == nil && len(value) == 1 && value[0] >= markGrouped:
		return true, nil
	case err != nil && !errors.Is(err, persistence.ErrNotFound):
		return false, failure.OfStore(err)
	}
	epoch := b.Store.Epoch(sh)
	if epoch == 0 || !b.Layouts.ready() || b.Store.Accepting() != nil {
		return false, nil
	}
	b.Catalog.AwaitCommits() // NB: those of before it was ready may have other rows
	if err := b.Store.AwaitVisibleIn(sh, epoch); err != nil {
		return false, failure.OfStore(err)
	}
	read, err := b.each(ctx, sh)
	if err != nil || read == 0 { // NB: a new store has nothing written at its first start
		return err == nil, err
	}
	w := b.Store.NewWritesIn(sh, epoch)
	w.Set(mark, []byte{markGrouped})
	if err := b.Store.Commit(w); err != nil {
		return false, failure.OfStore(err)
	}
	return true, nil
}

// each asks the instances of a shard one after the other, beside live traffic, and counts them.
func (b *Backfill) each(ctx context.Context, sh persistence.Shard) (read int, err error) {
	snapshot := b.Store.Snapshot()
	defer func() { _ = snapshot.Close() }() // read-only: nothing to lose
	prefix := persistence.RecordsPrefix(nil, sh)
	c := snapshot.Cursor(prefix, persistence.PrefixEnd(prefix))
	var failed error
	for c.Next() && ctx.Err() == nil {
		read++
		k, ok := persistence.ParseKey(c.Key())
		if !ok {
			continue
		}
		lacks, err := b.lacks(sh, k.Workflow, k.ID, c.Value())
		if err == nil && lacks {
			err = b.Write(k.Workflow, k.ID)
		}
		if err != nil && !isSkipped(err) {
			failed = err
			break
		}
	}
	return read, errors.Join(failed, ctx.Err(), failure.OfStore(errors.Join(c.Err(), c.Close())))
}

// lacks reports whether an instance has tasks that its record does not have, or that have no rows of their own. What cannot be read has none.
func (b *Backfill) lacks(sh persistence.Shard, workflow string, id persistence.ID, stored []byte) (bool, error) {
	record, err := statemachine.ParseRecord(stored)
	if err != nil {
		return false, nil
	}
	d, err := b.Catalog.Version(workflow, record.Version)
	if err != nil || !d.HasTasks() {
		return false, nil
	}
	in, err := d.Restore(instanceid.Text(id), record)
	if err != nil || in.HasUnstoredTasks() {
		return err == nil, nil
	}
	of := Origin{Shard: sh, Workflow: workflow, Instance: id, Of: d}
	grouped, err := of.areTasksGrouped(b.Store, in.Tasks())
	return !grouped, err
}
