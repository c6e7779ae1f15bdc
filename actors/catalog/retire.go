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

var defaultBounds = bounds{workflows: 100, versions: 500}

// bounded refuses one more workflow, or version, than a user may publish. now is the workflow's newest version; nil:
// there is none.
func (c *Catalog) bounded(owners map[string]ownership, k versionKey, now *currentVersion, by *identity.Principal) error {
	if by.Has(identity.Admin) {
		return nil
	}
	if now == nil && owners[k.workflow].By == "" {
		count := 0
		for _, of := range owners {
			if of.By == string(by.ID) {
				count++
			}
		}
		if count >= c.bounds.workflows {
			return failure.Refuse(failure.ErrConflict, "%s has published %d workflows, including retired ones, which is the limit: ask a holder of %s", by.ID, count, identity.Admin)
		}
	}
	published, err := c.published(key.DefinitionPrefix(nil, k.workflow))
	if err != nil {
		return err
	}
	all, gone := published[k.workflow], c.retirements.Load().Gone[k.workflow]
	if count := len(all) + len(gone); count >= c.bounds.versions && !slices.Contains(all, k.version) {
		if len(gone) > 0 {
			return failure.Refuse(failure.ErrConflict, "workflow %s has had %d versions, which is the limit: ask a holder of %s", k.workflow, count, identity.Admin)
		}
		return failure.Refuse(failure.ErrConflict, "workflow %s has %d versions, which is the limit: retire unused ones", k.workflow, count)
	}
	return nil
}

// Retire removes a version of a workflow, or all of them when number is 0, and returns which. It is for anyone who may
// publish a version; a nil by may everything. The owners of a workflow are remembered, so that nobody else publishes
// its id again. When the newest version goes, the rules of the one before hold.
//
// The errors are failure.ErrInUse while an instance has one of them, ended ones included, or is being created;
// failure.ErrConflict for a version that a file of the home names; failure.ErrUnavailable when some shard of a cluster
// does not answer; failure.ErrNotFound, failure.ErrForbidden and those of Publish. Then nothing is changed.
func (c *Catalog) Retire(ctx context.Context, workflow string, number uint64, by *identity.Principal) (retired []uint64, err error) {
	retire := c.retireAlone
	if !c.store.Standalone() {
		retire = c.retireEverywhere
	}
	p, err := retire(ctx, workflow, number, by)
	if err != nil {
		return nil, err
	}
	for _, key := range p.removed {
		retired = append(retired, key.version)
	}
	who := "offline"
	if by != nil {
		who = string(by.ID)
	}
	c.log.Info().Str("workflow", workflow).Uints64("versions", retired).Str("user", who).Msg("versions of a workflow were retired")
	return retired, nil
}

func (c *Catalog) retireAlone(_ context.Context, workflow string, number uint64, by *identity.Principal) (*publication, error) {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	return c.publishLocked(nil, func([]Source) (*publication, error) { return c.prepareRetirementLocked(workflow, number, by) })
}

// prepareRetirementLocked decides about a retirement. undo is for the caller even after an error.
func (c *Catalog) prepareRetirementLocked(workflow string, number uint64, by *identity.Principal) (*publication, error) {
	p := c.newPublication()
	now := p.next[workflow]
	if now == nil {
		return p, failure.ErrNotFound
	}
	published, err := c.published(key.DefinitionPrefix(nil, workflow))
	if err != nil {
		return p, failure.In("retire", workflow, err)
	}
	all := slices.Sorted(slices.Values(published[workflow]))
	gone := all
	if number > 0 {
		gone = []uint64{number}
	}
	if number > 0 && !slices.Contains(all, number) {
		return p, failure.ErrNotFound
	}
	owners, err := c.loadOwners()
	if err != nil {
		return p, failure.In("retire", workflow, err)
	}
	if of, _ := c.ownersOf(owners, workflow, now); by != nil {
		if err := mayAsOwner(workflow, "retire a version of it", of, by); err != nil {
			return p, err
		}
	}
	for _, version := range gone {
		if now.listed && !now.published && (version == now.version || slices.Contains(now.older, version)) {
			return p, failure.Refuse(failure.ErrConflict, "version %d of workflow %s comes from a file of the home: remove the file first", version, workflow)
		}
	}
	for _, version := range gone {
		key := versionKey{workflow, version}
		free := true
		if c.store.Standalone() { // NB: else all shards are asked
			free, err = c.closeLocked(p, key)
		}
		if err != nil {
			return p, failure.In("retire", workflow, err)
		}
		if !free {
			return p, errInUse(workflow, version)
		}
		p.removed = append(p.removed, key)
	}
	left, newest := slices.DeleteFunc(all, func(version uint64) bool { return slices.Contains(gone, version) }), now.Definition
	switch {
	case len(left) == 0:
		delete(p.next, workflow)
	case slices.Contains(gone, now.version):
		next := &currentVersion{version: left[len(left)-1], listed: now.listed, published: now.published}
		if next.Definition, err = c.Version(workflow, next.version); err != nil && !errors.Is(err, failure.ErrExecution) {
			return p, failure.In("retire", workflow, err)
		}
		p.next[workflow], newest = next, next.Definition
	}
	p.remember(owners, workflow, newest, owners[workflow].By)
	return p, c.prepareIndexesLocked(p)
}

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
			return p, failure.Refuse(failure.ErrConflict, "a version of workflow %s was published in the meantime: nothing was retired", workflow)
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
	w := c.store.NewBatchIn(key.Meta, epoch)
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
	if errors.Is(err, failure.ErrNotLeader) {
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
				end(failure.Refuse(failure.ErrUnavailable, "cannot tell whether instances of shard %d use workflow %s, so nothing was retired: %w", sh, v.Workflow, err))
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
// the shard has one of them, and none gets one while the retirement is under way or after it has removed them, anyone who
// leads the shard. The error is failure.ErrNotLeader where the shard is led by another node, and failure.ErrUnavailable
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
	w := c.store.NewBatchIn(sh, epoch)
	w.Set(floorKey(sh), strconv.AppendUint(nil, number, 10))
	done := make(confirmation, 1)
	c.store.Append(w, done)
	c.inShards.floors.Unlock()
	if err := done.await(ctx); err != nil {
		return failure.OfStore(err)
	}
	return nil
}
