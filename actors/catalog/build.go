package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
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
	// buildRetry is how long the builder waits after a failure, and busyRetry after an instance that accepts no calls.
	buildRetry    = 5 * time.Second
	busyRetry     = time.Second
	buildLogEvery = 5 * time.Second // how often progress is logged
)

// BuildIndexes fills declared indexes, and frees those that no definition declares any more, until ctx ends. It is the
// body of one goroutine, and is called once. In a cluster it does so in the shards that this node leads.
func (c *Catalog) BuildIndexes(ctx context.Context, instances Instances) {
	if !c.store.Standalone() {
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

type ledShards struct {
	changed chan struct{} // has an entry when the builder has something to look at

	mu     sync.Mutex
	epochs map[key.Shard]uint64
}

func (l *ledShards) Led(sh key.Shard, epoch uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs[sh] = epoch
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

func (l *ledShards) Ended(sh key.Shard, epoch uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epochs[sh] == epoch {
		delete(l.epochs, sh)
	}
}

func (l *ledShards) now() map[key.Shard]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.epochs)
}

// buildLed writes in a shard in an epoch that this node leads, so a build that another node has taken over
// cannot call an index whole.
func (c *Catalog) buildLed(ctx context.Context, instances Instances) {
	led := &ledShards{changed: c.indexesChanged, epochs: map[key.Shard]uint64{}}
	c.store.FollowLeads(led)
	for {
		var again <-chan time.Time
		present := led.now()
		if _, leads := present[key.Meta]; leads {
			if err := c.endRetirement(); err != nil {
				c.log.Warn().Err(err).Msg("a retirement that another node has begun cannot be given up yet, trying again")
				again = time.After(buildRetry)
			}
			delete(present, key.Meta)
		}
		for _, sh := range slices.Sorted(maps.Keys(present)) {
			t := &tending{catalog: c, instances: instances, shard: sh, epoch: present[sh]}
			err := t.run(ctx)
			if ctx.Err() != nil {
				return
			}
			if err != nil && led.now()[sh] == t.epoch {
				c.log.Warn().Err(err).Uint16("shard", uint16(sh)).Msg("indexes of a shard are not finished, trying again")
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

type tending struct {
	catalog   *Catalog
	instances Instances
	shard     key.Shard
	epoch     uint64
}

func (t *tending) run(ctx context.Context) error {
	c := t.catalog
	if err := c.checkEpoch(t.shard, t.epoch); err != nil {
		return err
	}
	rows := c.settledIndexes()
	if err := t.free(ctx, rows); err != nil {
		return err
	}
	states, err := loadStates(c.store, t.shard)
	if err != nil {
		return err
	}
	for _, row := range rows.Indexes {
		if row.State == dropping || states[row.Number] == whole {
			continue
		}
		if failed := t.build(ctx, row, states[row.Number]); failed != nil && !errors.Is(failed, errDropped) {
			err = errors.Join(err, fmt.Errorf("index %s of %s: %w", row.Path, row.Workflow, failed))
		}
	}
	return err
}

// Commits of this node that looked at earlier ones have ended.
func (c *Catalog) settledIndexes() storedIndexes {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	return c.publishing.indexes
}

// free leaves numbers above the last that is known here alone: another node has it from a later row of Meta.
func (t *tending) free(ctx context.Context, rows storedIndexes) error {
	numbers, err := t.catalog.numbersIn(t.shard)
	if err != nil {
		return err
	}
	for _, row := range rows.Indexes {
		if row.State != dropping {
			delete(numbers, row.Number)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(numbers)) {
		if number > rows.Last {
			break
		}
		w := t.writes()
		freeIn(w, t.shard, number)
		done := make(confirmation, 1)
		t.catalog.store.Append(w, done)
		if err := done.await(ctx); err != nil {
			return err
		}
		t.catalog.log.Info().Uint16("shard", uint16(t.shard)).Uint32("number", number).Msg("index is gone from a shard")
	}
	return nil
}

// build fills an index whose row in the shard is kept, or not there.
func (t *tending) build(ctx context.Context, row storedIndex, state indexState) error {
	c := t.catalog
	ix := c.indexOf(row)
	if ix == nil {
		return errDropped
	}
	if state != kept {
		// NB: entries may be there from a leader that had the index, or a store that stood alone,
		// and since then others have written that did not maintain them.
		w := t.writes()
		freeIn(w, t.shard, row.Number)
		if err := t.put(ctx, w, row.Number, kept); err != nil {
			return err
		}
	}
	b := &build{catalog: c, instances: t.instances, row: row, index: ix, shard: t.shard, begun: time.Now()}
	if err := b.run(ctx); err != nil {
		return err
	}
	err := t.put(ctx, t.writes(), row.Number, whole)
	if err == nil {
		c.log.Info().Str("workflow", row.Workflow).Str("index", row.Path).Uint16("shard", uint16(t.shard)).
			Int64("instances", b.seen).Dur("tookMs", time.Since(b.begun)).Msg("index is whole in a shard")
	}
	return err
}

// put returns when a majority has the row. errDropped: the index was dropped, and nothing is written.
func (t *tending) put(ctx context.Context, w *persistence.Batch, number uint32, state indexState) error {
	c := t.catalog
	w.Set(key.IndexState(nil, t.shard, number), []byte(state))
	done := make(confirmation, 1)
	c.inShards.mu.Lock()
	switch {
	case !c.indexes.Load().numbers()[number]:
		done <- errDropped
		w.Discard()
	case c.inShards.checked[t.shard].Load() != t.epoch:
		done <- persistence.NotLed(t.shard)
		w.Discard()
	default:
		c.store.Append(w, done)
	}
	c.inShards.mu.Unlock()
	return done.await(ctx)
}

func (t *tending) writes() *persistence.Batch { return t.catalog.store.NewBatchIn(t.shard, t.epoch) }
