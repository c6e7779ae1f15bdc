package catalog

import (
	"context"
	"errors"
	"time"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
)

// Instances is what building an index asks of the instances.
type Instances interface {
	// EnterIndex has an instance write its entries of an index, in its turn among its events, so that nothing moves
	// between the look at its data and the entry. wait returns when they are durable, or why they are not.
	EnterIndex(workflow string, id key.ID, ix *Index) (wait func() error, err error)
}

const (
	// buildPending is how many instances are asked at a time. It is what building takes from the events.
	buildPending = 64
	// buildRetry is how long the builder waits after a failure, and busyRetry after an instance that takes no calls.
	buildRetry    = 5 * time.Second
	busyRetry     = time.Second
	buildLogEvery = 5 * time.Second // how often progress is logged
)

// BuildIndexes fills declared indexes, and frees those that no definition declares any more, until ctx ends. It is the
// body of one goroutine, and is called once. In a cluster it does so in the shards that this node leads.
func (c *Catalog) BuildIndexes(ctx context.Context, instances Instances) {
	if !c.store.Alone() {
		c.buildLed(ctx, instances)
		return
	}
	for {
		var again <-chan time.Time
		for _, row := range c.unfinished() {
			if err := c.finishIndex(ctx, instances, row); ctx.Err() != nil {
				return
			} else if err != nil {
				c.log.Warn().Err(err).Str("workflow", row.Workflow).Str("index", row.Path).Msg("index is not finished, trying again")
				again = time.After(buildRetry)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-c.indexesChanged:
		}
	}
}

func (c *Catalog) finishIndex(ctx context.Context, instances Instances, row storedIndex) error {
	if row.State == dropping {
		return c.dropIndex(row)
	}
	ix := c.indexOf(row)
	if ix == nil {
		return nil
	}
	b := &build{catalog: c, instances: instances, row: row, index: ix, shard: key.EveryShard, begun: time.Now()}
	err := b.run(ctx)
	if err == nil {
		err = c.store.AwaitDurable()
	}
	if err == nil {
		err = c.setIndexState(row.Number, building, whole)
	}
	if errors.Is(err, errDropped) {
		return nil
	}
	if err != nil {
		return err
	}
	c.log.Info().Str("workflow", row.Workflow).Str("index", row.Path).Int64("instances", b.seen).
		Dur("tookMs", time.Since(b.begun)).Msg("index is whole")
	return nil
}

func (c *Catalog) dropIndex(row storedIndex) error {
	entries := key.IndexPrefix(nil, key.EveryShard, row.Number)
	if err := c.store.DeletePrefixes(entries, appendMark(nil, key.EveryShard, row.Number)); err != nil {
		return err
	}
	if err := c.setIndexState(row.Number, dropping, ""); err != nil {
		return err
	}
	c.log.Info().Str("workflow", row.Workflow).Str("index", row.Path).Msg("index is gone")
	return nil
}

// build is one filling of an index. It belongs to the builder's goroutine.
type build struct {
	catalog     *Catalog
	instances   Instances
	row         storedIndex
	index       *Index
	shard       key.Shard
	begun       time.Time
	logged      time.Time
	total, seen int64
	pending     []func() error // wait for instances that were asked, oldest first
}

// run returns when all instances that there were have their entries, or are not going to write any more.
func (b *build) run(ctx context.Context) (err error) {
	if b.total, err = b.catalog.store.CountAll(key.CountPrefix(nil, b.shard, b.row.Workflow)); err != nil {
		return err
	}
	err = b.scan(ctx)
	if collected := b.collect(0); err == nil {
		err = collected
	}
	return err
}

func (b *build) scan(ctx context.Context) error {
	b.logged = b.begun
	snapshot := b.catalog.store.Snapshot()
	defer func() { _ = snapshot.Close() }() // read-only: nothing to lose
	return snapshot.Scan(key.RecordPrefix(nil, b.shard, b.row.Workflow), func(k, _ []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !b.catalog.Maintains(b.row.Workflow, b.index) {
			return errDropped
		}
		id, ok := key.RecordID(k)
		if !ok {
			return persistence.ErrCorrupt
		}
		if err := b.instance(ctx, id); err != nil {
			return err
		}
		b.seen++
		if b.seen%1024 == 0 && time.Since(b.logged) >= buildLogEvery {
			b.logged = time.Now()
			b.catalog.log.Info().Str("workflow", b.row.Workflow).Str("index", b.row.Path).
				Int64("done", b.seen).Int64("of", b.total).Msg("building index")
		}
		return nil
	})
}

func (b *build) instance(ctx context.Context, id key.ID) error {
	for {
		wait, err := b.instances.EnterIndex(b.row.Workflow, id, b.index)
		switch {
		case err == nil:
			b.pending = append(b.pending, wait)
			return b.collect(buildPending)
		case !errors.Is(err, failure.ErrInstanceBusy):
			return err
		}
		if err := b.collect(0); err != nil {
			return err
		}
		select {
		case <-time.After(busyRetry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (b *build) collect(keep int) error {
	var failed error
	for len(b.pending) > keep {
		wait := b.pending[0]
		b.pending = b.pending[1:]
		if err := wait(); err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}
