// Package backfill has the instances that an earlier program has stored write what this one keeps of them, once in the life of each shard
// that has instances. A shard without any gets no mark and is looked at again at each start: where it is not led, Run asks on until it is led
// there or has a mark, which is a read every five seconds.
//
//	goroutine of the router ── Run ──► a snapshot of each shard that is led here ── Lacks ──► Write: a message to the actor
//
// Each instance writes for itself, between two of its events, so nothing here competes with what it does. Some are asked at a time, beside
// live traffic.
package backfill

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/persistence"
)

// again is how long Run waits before it looks again at shards that others lead, or that it could not finish.
const again = 5 * time.Second

// atOnce is how many instances write at a time.
const atOnce = 32

// Backfill is one kind of what instances write.
type Backfill struct {
	What    string // for the log
	Store   *persistence.Store
	Catalog *catalog.Catalog
	// Mark is the row of a shard that says it is done: its value is a number, at least that of Value.
	Mark  func(persistence.Shard) []byte
	Value byte
	// Ready reports whether instances write it by themselves now.
	Ready func() bool
	// Lacks reports whether an instance with this record has to write it.
	Lacks func(sh persistence.Shard, key persistence.Key, record []byte) (bool, error)
	// Write has an instance write it. wait returns when that is durable.
	Write func(workflow string, id persistence.ID) (wait func() error, err error)
	// Done is told of a shard that is done; nil: nobody is.
	Done func(persistence.Shard)
	Log  zerolog.Logger
}

// Run returns when each shard has its mark, or has nothing and is led here; or ctx ends.
func (b *Backfill) Run(ctx context.Context) {
	for {
		done := true
		for sh := range persistence.Shard(b.Store.Shards()) {
			of, err := b.shard(ctx, sh)
			if err != nil && ctx.Err() == nil && failure.Of(err).Kind != failure.ErrElsewhere && failure.Of(err).Kind != failure.ErrUnavailable {
				b.Log.Warn().Err(err).Uint16("shard", uint16(sh)).Msg(b.What + " of earlier instances could not be written yet")
			}
			if of && b.Done != nil {
				b.Done(sh)
			}
			done = done && of
		}
		if done {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(again):
		}
	}
}

// shard brings a shard to its end, and is true when it is there.
func (b *Backfill) shard(ctx context.Context, sh persistence.Shard) (done bool, err error) {
	switch value, err := b.Store.Load(b.Mark(sh)); {
	case err == nil && len(value) == 1 && value[0] >= b.Value:
		return true, nil
	case err != nil && !errors.Is(err, persistence.ErrNotFound):
		return false, failure.OfStore(err)
	}
	epoch := b.Store.Epoch(sh)
	if epoch == 0 || !b.Ready() || b.Store.Accepting() != nil {
		return false, nil
	}
	b.Catalog.AwaitCommits() // NB: those of before it was ready lack it
	if err := b.Store.AwaitVisibleIn(sh, epoch); err != nil {
		return false, failure.OfStore(err)
	}
	read, err := b.each(ctx, sh)
	if err != nil || read == 0 { // NB: a new store has nothing written at its first start
		return err == nil, err
	}
	w := b.Store.NewWritesIn(sh, epoch)
	w.Set(b.Mark(sh), []byte{b.Value})
	if err := b.Store.Commit(w); err != nil {
		return false, failure.OfStore(err)
	}
	return true, nil
}

// each asks the instances of a shard, and counts them.
func (b *Backfill) each(ctx context.Context, sh persistence.Shard) (read int, err error) {
	snapshot := b.Store.Snapshot()
	defer func() { _ = snapshot.Close() }() // read-only: nothing to lose
	prefix := persistence.RecordsPrefix(nil, sh)
	c := snapshot.Cursor(prefix, persistence.PrefixEnd(prefix))
	var failed error
	var waits []func() error
	await := func(most int) {
		for len(waits) > most {
			if err := waits[0](); err != nil && !isSkipped(err) {
				failed = errors.Join(failed, err)
			}
			waits = waits[1:]
		}
	}
	for c.Next() && ctx.Err() == nil && failed == nil {
		read++
		k, ok := persistence.ParseKey(c.Key())
		if !ok {
			continue
		}
		lacks, err := b.Lacks(sh, k, c.Value())
		if err == nil && lacks {
			var wait func() error
			if wait, err = b.Write(k.Workflow, k.ID); err == nil {
				waits = append(waits, wait)
			}
		}
		if err != nil && !isSkipped(err) {
			failed = err
		}
		await(atOnce - 1)
	}
	await(0)
	return read, errors.Join(failed, ctx.Err(), failure.OfStore(errors.Join(c.Err(), c.Close())))
}

// isSkipped reports whether an error is about one instance alone.
func isSkipped(err error) bool {
	return errors.Is(err, failure.ErrExecution) || errors.Is(err, failure.ErrNotFound)
}
