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
	// Ready reports whether tasks may be written: all nodes of a cluster can read them.
	Ready func() bool
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

// shard has the tasks of a shard written, and is true when they are there.
func (b *Backfill) shard(ctx context.Context, sh persistence.Shard) (done bool, err error) {
	mark := persistence.TaskKey(nil, sh, persistence.ID{}, 0, 0)
	if _, err := b.Store.Load(mark); err == nil || !errors.Is(err, persistence.ErrNotFound) {
		return err == nil, failure.OfStore(err)
	}
	epoch := b.Store.Epoch(sh)
	if epoch == 0 || !b.Ready() || b.Store.Accepting() != nil {
		return false, nil
	}
	if err := b.Store.AwaitVisibleIn(sh, epoch); err != nil {
		return false, failure.OfStore(err)
	}
	read, err := b.each(ctx, sh)
	if err != nil || read == 0 { // NB: a new store has nothing written at its first start
		return err == nil, err
	}
	w := b.Store.NewWritesIn(sh, epoch)
	w.Set(mark, []byte{rowFormat})
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
		if !ok || !b.lacks(k.Workflow, k.ID, c.Value()) {
			continue
		}
		if err := b.Write(k.Workflow, k.ID); err != nil && !isSkipped(err) {
			failed = err
			break
		}
	}
	return read, errors.Join(failed, ctx.Err(), failure.OfStore(errors.Join(c.Err(), c.Close())))
}

// lacks reports whether an instance has tasks that its record does not have. What cannot be read has none.
func (b *Backfill) lacks(workflow string, id persistence.ID, stored []byte) bool {
	record, err := statemachine.ParseRecord(stored)
	if err != nil {
		return false
	}
	of, err := b.Catalog.Version(workflow, record.Version)
	if err != nil || !of.HasTasks() {
		return false
	}
	in, err := of.Restore(instanceid.Text(id), record)
	return err == nil && in.HasUnstoredTasks()
}
