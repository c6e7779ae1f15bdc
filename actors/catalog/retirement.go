package catalog

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence/key"
)

const shardsAtOnce = 16

// MayHave is the refusal of a commit that gives an instance a version which is being retired, or is gone. It is asked
// after BeginCommit and IndexesIn, before the commit is appended.
func (c *Catalog) MayHave(workflow string, version uint64) error {
	r := c.retirements.Load()
	if now := r.Now; now != nil && now.Workflow == workflow && slices.Contains(now.Versions, version) {
		return failure.Refuse(failure.ErrUnavailable, "version %d of workflow %s is being retired: try again", version, workflow)
	}
	if key := (versionKey{workflow, version}); r.isGone(key) {
		return errRetired(key)
	}
	return nil
}

func (c *Catalog) retireEverywhere(ctx context.Context, workflow string, number uint64, by *identity.Principal) (*publication, error) {
	c.retiring.Lock()
	defer c.retiring.Unlock()
	now, err := c.beginRetirement(workflow, number, by)
	if err != nil {
		return nil, err
	}
	defer c.leaveRetirement(now)
	if err := c.vacateAll(ctx, now); err != nil {
		return nil, err
	}
	c.publishing.Lock()
	defer c.publishing.Unlock()
	return c.publishLocked(nil, func([]Source) (*publication, error) {
		if !c.isUnderWay(now) {
			return c.newPublication(), failure.Refuse(failure.ErrUnavailable, "another node leads the cluster now: nothing was retired")
		}
		p, err := c.prepareRetirementLocked(workflow, number, by)
		if err != nil {
			return p, err
		}
		if !slices.EqualFunc(p.removed, now.Versions, func(key versionKey, version uint64) bool { return key.version == version }) {
			return p, failure.Refuse(failure.ErrConflict, "a version of workflow %s was published meanwhile: nothing was retired", workflow)
		}
		next := &retirements{Last: c.retirements.Load().Last, Gone: maps.Clone(c.retirements.Load().Gone)}
		if next.Gone == nil {
			next.Gone = map[string][]uint64{}
		}
		next.Gone[workflow] = slices.Sorted(slices.Values(slices.Concat(next.Gone[workflow], now.Versions)))
		p.retirements = next
		return p, nil
	})
}

// beginRetirement decides about a retirement and notes it in Meta, so that no node that knows of it gives an instance
// one of the versions.
func (c *Catalog) beginRetirement(workflow string, number uint64, by *identity.Principal) (*retirement, error) {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	epoch, err := c.beginEpochLocked()
	if err != nil {
		return nil, failure.In("retire", workflow, err)
	}
	p, err := c.prepareRetirementLocked(workflow, number, by)
	if err != nil {
		return nil, err
	}
	before := c.retirements.Load()
	now := &retirement{Number: before.Last + 1, Workflow: workflow}
	for _, key := range p.removed {
		now.Versions = append(now.Versions, key.version)
	}
	c.publishing.retirement = now.Number
	if err := c.putRetirementsLocked(epoch, &retirements{Last: now.Number, Now: now, Gone: before.Gone}); err != nil {
		c.publishing.retirement = 0
		return nil, failure.In("retire", workflow, err)
	}
	return now, nil
}

func (c *Catalog) putRetirementsLocked(epoch uint64, next *retirements) error {
	w := c.store.NewWritesIn(key.Meta, epoch)
	if err := c.putSetting(w, retirementsSetting, next, false); err != nil {
		w.Discard()
		return failure.OfStore(err)
	}
	done := make(confirmation, 1)
	c.store.Append(w, done)
	if err := <-done; err != nil {
		return failure.OfStore(err)
	}
	c.retirements.Store(next)
	return nil
}

func (c *Catalog) isUnderWay(now *retirement) bool {
	r := c.retirements.Load().Now
	return r != nil && r.Number == now.Number
}

func (c *Catalog) leaveRetirement(now *retirement) {
	c.publishing.Lock()
	c.publishing.retirement = 0
	c.publishing.Unlock()
	if !c.isUnderWay(now) {
		return
	}
	if err := c.endRetirement(); err != nil {
		c.log.Warn().Err(err).Str("workflow", now.Workflow).Msg("a retirement that was given up keeps its versions from new instances: trying again")
		c.pokeIndexes()
	}
}

// endRetirement gives up a retirement that nobody carries out any more: instances get its versions again.
func (c *Catalog) endRetirement() error {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	epoch, err := c.beginEpochLocked()
	if errors.Is(err, failure.ErrElsewhere) {
		return nil // that one does it
	}
	r := c.retirements.Load()
	if err != nil || r.Now == nil || r.Now.Number == c.publishing.retirement {
		return err
	}
	return c.putRetirementsLocked(epoch, &retirements{Last: r.Last, Gone: r.Gone})
}

func (c *Catalog) vacateAll(ctx context.Context, now *retirement) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	var once sync.Once
	var first error
	end := func(err error) {
		once.Do(func() { first = err })
		cancel()
	}
	room := make(chan struct{}, shardsAtOnce)
	for sh := range c.store.Shards() {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			v := Vacancy{Shard: uint16(sh), Number: now.Number, Workflow: now.Workflow, Versions: now.Versions}
			if used, err := c.vacate(ctx, v); err != nil {
				end(failure.Refuse(failure.ErrUnavailable, "it is not known whether instances of shard %d use workflow %s, so nothing was retired: %w", sh, v.Workflow, err))
			} else if used != 0 {
				end(errInUse(v.Workflow, used))
			}
		})
	}
	all.Wait()
	return first
}

func errInUse(workflow string, version uint64) error {
	return failure.Refuse(failure.ErrInUse, "instances use version %d of workflow %s", version, workflow)
}

// Vacate answers for a shard that this node leads. It returns a version that an instance has, or 0: then no instance of
// the shard has one of them, and none gets one while the retirement is under way or after it has removed them, whoever
// leads the shard. The error is failure.ErrElsewhere where the shard is led by another node, and failure.ErrUnavailable
// when this one does not know of the retirement, or it is over.
func (c *Catalog) Vacate(ctx context.Context, v Vacancy) (used uint64, err error) {
	sh := key.Shard(v.Shard)
	epoch := c.store.Epoch(sh)
	if epoch == 0 {
		return 0, failure.Elsewhere(v.Shard)
	}
	if c.retirements.Load().Last < v.Number {
		if c.awaitCurrent != nil {
			if err := c.awaitCurrent(ctx); err != nil {
				return 0, failure.Errorf(failure.ErrUnavailable, "what is published is not here yet: %w", err)
			}
		}
		if err := c.Reload(); err != nil {
			return 0, failure.OfStore(err)
		}
	}
	// NB: commits that began before may not know of it. What they wrote stands in front of the row below.
	c.commits.Wait()
	if err := c.raiseFloor(ctx, sh, epoch, v.Number); err != nil {
		return 0, err
	}
	for _, version := range v.Versions {
		n, err := c.store.Count(key.Count(nil, sh, v.Workflow, version))
		if err != nil {
			return 0, failure.OfStore(err)
		}
		if n > 0 {
			return version, nil
		}
	}
	return 0, nil
}

func (c *Catalog) raiseFloor(ctx context.Context, sh key.Shard, epoch, number uint64) error {
	c.inShards.floors.Lock()
	r := c.retirements.Load()
	if r.Now == nil || r.Now.Number != number { // NB: a later one may have raised it already
		c.inShards.floors.Unlock()
		return failure.Refuse(failure.ErrUnavailable, "the retirement is over")
	}
	w := c.store.NewWritesIn(sh, epoch)
	w.Set(floorKey(sh), strconv.AppendUint(nil, number, 10))
	done := make(confirmation, 1)
	c.store.Append(w, done)
	c.inShards.floors.Unlock()
	if err := done.await(ctx); err != nil {
		return failure.OfStore(err)
	}
	return nil
}
