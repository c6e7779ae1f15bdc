package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"troupe/persistence"
	"troupe/persistence/key"
)

type ledShards struct {
	changed chan struct{} // has an entry when the builder has something to look at

	mu     sync.Mutex
	epochs map[key.Shard]uint64
}

// Led implements persistence.LeadershipObserver.
func (l *ledShards) Led(sh key.Shard, epoch uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs[sh] = epoch
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Ended implements persistence.LeadershipObserver.
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

// What it writes in a shard is written in an epoch that this node leads, so a build that another node has taken over
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

// A number above the last that is known here is no such index: another node has it from a later row of Meta.
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
func (t *tending) put(ctx context.Context, w *persistence.Writes, number uint32, state indexState) error {
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

func (t *tending) writes() *persistence.Writes {
	return t.catalog.store.NewWritesIn(t.shard, t.epoch)
}
