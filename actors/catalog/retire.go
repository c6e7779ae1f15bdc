package catalog

import (
	"context"
	"errors"
	"slices"

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
			return failure.Refuse(failure.ErrConflict, "%s has published %d workflows, retired ones included, and no more are allowed: ask a holder of %s", by.ID, count, identity.Admin)
		}
	}
	published, err := c.published(key.DefinitionPrefix(nil, k.workflow))
	if err != nil {
		return err
	}
	all, gone := published[k.workflow], c.retirements.Load().Gone[k.workflow]
	if count := len(all) + len(gone); count >= c.bounds.versions && !slices.Contains(all, k.version) {
		if len(gone) > 0 {
			return failure.Refuse(failure.ErrConflict, "workflow %s has had %d versions, and no more are allowed: ask a holder of %s", k.workflow, count, identity.Admin)
		}
		return failure.Refuse(failure.ErrConflict, "workflow %s has %d versions, and no more are allowed: retire some that nobody uses", k.workflow, count)
	}
	return nil
}

// Retire removes a version of a workflow, or all of them when number is 0, and returns which. It is for whoever may
// publish a version; a nil by may everything. The owners of a workflow are remembered, so that nobody else publishes
// its id again. When the newest version goes, the rules of the one before hold.
//
// The errors are failure.ErrInUse while an instance has one of them, ended ones included, or is being created;
// failure.ErrConflict for a version that a file of the home names; failure.ErrUnavailable when some shard of a cluster
// does not answer; failure.ErrNotFound, failure.ErrForbidden and those of Publish. Then nothing is changed.
func (c *Catalog) Retire(ctx context.Context, workflow string, number uint64, by *identity.Principal) (retired []uint64, err error) {
	retire := c.retireAlone
	if !c.store.Alone() {
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
			return p, failure.Refuse(failure.ErrConflict, "version %d of workflow %s comes from a file of the home: remove that first", version, workflow)
		}
	}
	for _, version := range gone {
		key := versionKey{workflow, version}
		free := true
		if c.store.Alone() { // NB: else all shards are asked
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
