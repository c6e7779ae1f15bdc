package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine/document"
)

// Companion is something else that is published together with definitions, in the same commit.
type Companion interface {
	// Setting is what is stored of it, as JSON under a name. empty: the value is the same as none.
	Setting() (name string, value any, empty bool)
	// It is called when the journal has the commit.
	Install()
}

// Publish makes a checked set of files what new instances get, and the companions what is in use, all in one commit. It
// is taken as a whole or refused as a whole: then the error is document.Faults and the set before stays in use. It
// returns when the set is durable.
//
// After persistence.ErrOutcomeUnknown the set is in use all the same, because the journal has it: nothing that is built
// on it becomes durable before it does, and nothing is acknowledged before it is durable. Any other error means that
// nothing was changed.
//
// In a cluster the set is published by the node that leads the shard Meta; on any other the error is
// failure.ErrNotLeader, before anything is done. After failure.ErrOutcomeUnknown it is not in use here until Reload
// finds it in the store.
func (c *Catalog) Publish(set []Source, companions ...Companion) error {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	p, err := c.publishLocked(set, c.prepareLocked, companions...)
	if err == nil {
		c.logRights(p, "")
	}
	return err
}

func (c *Catalog) publishLocked(set []Source, prepare func([]Source) (*publication, error), companions ...Companion) (*publication, error) {
	epoch, err := c.beginEpochLocked()
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	p, err := prepare(set)
	if err != nil {
		p.undo()
		return nil, err
	}
	taken, err := c.writePublication(p, epoch, companions)
	if err != nil && !c.store.Standalone() {
		return nil, fmt.Errorf("publish: %w", failure.OfStore(err))
	}
	if !taken {
		p.undo()
		return nil, fmt.Errorf("publish: %w", err)
	}
	c.installLocked(p, set, companions)
	if !c.store.Standalone() { // NB: how far it goes is known of what was read; what the store does not give now, Reload finds
		_ = c.readCurrentLocked()
	}
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	return p, nil
}

// Check returns the faults for which Publish would refuse the set now. Nothing is changed.
func (c *Catalog) Check(set []Source) error {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	p, err := c.prepareLocked(set)
	p.undo()
	return err
}

// installLocked cannot fail: what can is done before the commit.
func (c *Catalog) installLocked(p *publication, set []Source, companions []Companion) {
	for key := range p.replaced {
		c.publishing.pins[key] = new(atomic.Int64)
	}
	for _, s := range set {
		c.keep(s.key(), s.Parsed)
		c.origins.Delete(s.key())
	}
	if p.owners != nil {
		c.owners.Store(&p.owners)
	}
	if p.retirements != nil {
		c.retirements.Store(p.retirements)
	}
	for _, key := range p.removed {
		c.versions.Delete(key)
	}
	for id, o := range p.next {
		o.pins = c.pinsLocked(versionKey{id, o.version})
	}
	c.current.Store(&p.next)
	for _, companion := range companions {
		companion.Install()
	}
	if p.newIndexes {
		c.installIndexesLocked(p.indexes, p.indexSet)
	}
}

// The error is document.Faults with all that is wrong; undo is for the caller even then.
func (c *Catalog) prepareLocked(set []Source) (*publication, error) {
	p := c.newPublication()
	for _, o := range p.next {
		o.listed, o.older = o.published, nil // its files may be gone
	}
	seen := map[versionKey]string{}
	for i := range set {
		s := &set[i]
		key := s.key()
		if other, twice := seen[key]; twice {
			p.faults = append(p.faults, document.Fault{
				File: s.File, Line: 1,
				Reason: fmt.Sprintf("workflow %s version %d is also in %s", key.workflow, key.version, other),
			})
			continue
		}
		seen[key] = s.File
		if o := p.next[key.workflow]; o != nil && o.published {
			p.faults = append(p.faults, s.secondSource())
			continue
		}
		if err := c.prepareOneLocked(p, s, key); err != nil {
			return p, fmt.Errorf("publish %s: %w", s.File, err)
		}
		if now := (*c.current.Load())[key.workflow]; now != nil && (now.version != key.version || p.writes[key] != nil) {
			if err := c.noteRights(p, s, now); err != nil {
				return p, fmt.Errorf("publish %s: %w", s.File, err)
			}
		}
		switch before := p.next[key.workflow]; {
		case before == nil || !before.listed:
			p.next[key.workflow] = &currentVersion{Definition: s.Parsed, version: key.version, listed: true}
		case before.version < key.version:
			p.next[key.workflow] = &currentVersion{Definition: s.Parsed, version: key.version, listed: true, older: append(before.older, before.version)}
		default:
			before.older = append(before.older, key.version)
		}
	}
	if len(p.faults) > 0 {
		return p, p.faults
	}
	owners, err := c.loadOwners()
	if err != nil {
		return p, err
	}
	for id, o := range p.next {
		if o.listed && !o.published {
			p.remember(owners, id, o.Definition, "")
			if p.owners != nil {
				owners = p.owners
			}
		}
	}
	return p, c.prepareIndexesLocked(p)
}

func (c *Catalog) prepareOneLocked(p *publication, s *Source, key versionKey) error {
	p.checkIndexes(s)
	isGone := c.retirements.Load().isGone(key)
	if other, err := c.write(p, s, ""); err != nil || !other && !isGone {
		return err
	}
	reason := "has different content, and in a cluster a version never changes"
	if isGone {
		reason = "was retired, and in a cluster its number cannot be reused"
	} else if c.store.Standalone() { // NB: else other nodes have instances and creates as well
		free, err := c.closeLocked(p, key)
		if err != nil || free {
			return err
		}
		reason = "is in use and its content changed"
	}
	free, err := c.freeVersion(key.workflow)
	if err != nil {
		return err
	}
	p.faults = append(p.faults, document.Fault{
		File: s.File, Line: s.Line("version", "id"),
		Reason:     fmt.Sprintf("workflow %s version %d %s", key.workflow, key.version, reason),
		Suggestion: fmt.Sprintf("raise version to %d", free),
	})
	return nil
}

// closeLocked is false when one has it already.
func (c *Catalog) closeLocked(p *publication, key versionKey) (free bool, err error) {
	pins := c.pinsLocked(key)
	if !pins.CompareAndSwap(0, closed) {
		return false, nil
	}
	p.replaced[key] = pins
	used, err := c.hasInstances(key)
	return !used, err
}

// writePublication stores what is new of the definitions, of what the set lists and of the companions, in one commit.
// taken: the journal has it; with an error then it is not known whether it is durable.
func (c *Catalog) writePublication(p *publication, epoch uint64, companions []Companion) (taken bool, err error) {
	w := c.store.NewBatchIn(key.Meta, epoch)
	for k, value := range p.writes {
		w.Set(key.Definition(nil, k.workflow, k.version), value)
	}
	for _, k := range p.removed {
		w.Delete(key.Definition(nil, k.workflow, k.version))
	}
	listed, published, older := map[string]uint64{}, map[string]uint64{}, map[string][]uint64{}
	for id, o := range p.next {
		switch {
		case o.published:
			published[id] = o.version
		case o.listed:
			listed[id] = o.version
			if len(o.older) > 0 {
				older[id] = o.older
			}
		}
	}
	err = errors.Join(
		c.putSetting(w, listedSetting, listed, len(listed) == 0),
		c.putSetting(w, olderSetting, older, len(older) == 0),
		c.putSetting(w, publishedSetting, published, len(published) == 0),
	)
	if p.newIndexes {
		err = errors.Join(err, c.putSetting(w, indexesSetting, p.indexes, false))
	}
	if p.owners != nil {
		err = errors.Join(err, c.putSetting(w, ownersSetting, p.owners, false))
	}
	if p.retirements != nil {
		err = errors.Join(err, c.putSetting(w, retirementsSetting, p.retirements, false))
	}
	for _, companion := range companions {
		name, value, empty := companion.Setting()
		err = errors.Join(err, c.putSetting(w, name, value, empty))
	}
	if err != nil {
		w.Discard()
		return false, err
	}
	// NB: without a change nothing is written, so that a restart works on a full disk, but the change before may not be
	// durable yet: an empty commit waits.
	done := make(confirmation, 1)
	taken = c.store.Append(w, done)
	return taken, <-done
}

// PublishDefinition makes one definition what new instances get, unless a higher version of its workflow was published
// in this way before. A workflow has one source: when a file of the current set names it, the error is
// failure.ErrConflict. A version that is stored with other content is failure.ErrExists, whether it has instances or
// not; with the same content nothing is changed. Sets of files leave the definition alone, and must not name its
// workflow.
//
// When it is in use, and the other errors, are as for Publish.
func (c *Catalog) PublishDefinition(s Source, by *identity.Principal) (current bool, err error) {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	p, err := c.publishLocked([]Source{s}, func([]Source) (*publication, error) { return c.prepareDefinitionLocked(&s, by) })
	if err != nil {
		return false, err
	}
	c.logRights(p, by.ID)
	return p.isCurrent(&s), nil
}

// CheckDefinition returns what PublishDefinition would return now. Nothing is changed.
func (c *Catalog) CheckDefinition(s Source, by *identity.Principal) (current bool, err error) {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	if _, err := c.beginEpochLocked(); err != nil {
		return false, failure.In("check", string(s.Parsed.ID), err)
	}
	p, err := c.prepareDefinitionLocked(&s, by)
	return err == nil && p.isCurrent(&s), err
}

func (p *publication) isCurrent(s *Source) bool {
	return p.next[string(s.Parsed.ID)].version == s.Parsed.Version
}

// Content is never replaced, so there is nothing to undo.
func (c *Catalog) prepareDefinitionLocked(s *Source, by *identity.Principal) (*publication, error) {
	p, key := c.newPublication(), s.key()
	if p.checkIndexes(s); len(p.faults) > 0 {
		return p, p.faults
	}
	now := p.next[key.workflow]
	if now != nil && now.listed && !now.published {
		kept, err := c.loadStored(versionKey{key.workflow, now.version})
		if err != nil {
			return p, failure.In("publish", key.workflow, err)
		}
		return p, failure.Refuse(failure.ErrConflict, "workflow %s comes from %s of the home: change that file", key.workflow, kept.File)
	}
	owners, err := c.loadOwners()
	if err != nil {
		return p, failure.In("publish", key.workflow, err)
	}
	if again, err := c.isRepeated(s, now, by); again || err != nil {
		return p, failure.In("publish", key.workflow, err)
	}
	if of, known := c.ownersOf(owners, key.workflow, now); known {
		if err := mayAsOwner(key.workflow, "publish a version of it", of, by); err != nil {
			return p, err
		}
	}
	if err := c.bounded(owners, key, now, by); err != nil {
		return p, failure.In("publish", key.workflow, err)
	}
	if err := c.checkInvocations(s, by); err != nil {
		return p, err
	}
	other, err := c.write(p, s, by.ID)
	if gone := c.retirements.Load().isGone(key); err == nil && (other || gone) {
		err = c.errExists(key, gone)
	}
	if err == nil {
		err = c.noteRights(p, s, now)
	}
	if err != nil {
		return p, failure.In("publish", key.workflow, err)
	}
	if now == nil || !now.published || key.version > now.version {
		p.next[key.workflow] = &currentVersion{Definition: s.Parsed, version: key.version, listed: true, published: true}
	}
	p.remember(owners, key.workflow, p.next[key.workflow].Definition, cmp.Or(owners[key.workflow].By, string(by.ID)))
	return p, c.prepareIndexesLocked(p)
}

// isRepeated reports whether the user has published the very same before: a caller who did not hear of the success may
// ask again.
func (c *Catalog) isRepeated(s *Source, now *currentVersion, by *identity.Principal) (bool, error) {
	if now == nil || !now.published {
		return false, nil
	}
	before, err := c.loadStored(s.key())
	if errors.Is(err, persistence.ErrNotFound) {
		return false, nil
	}
	kept := s.stored(by.ID)
	return err == nil && before.By == kept.By && before.File == kept.File && before.hasContentOf(kept), err
}

func (c *Catalog) errExists(key versionKey, gone bool) error {
	free, err := c.freeVersion(key.workflow)
	if err != nil {
		return err
	}
	has := "has other content"
	if gone {
		has = "was retired, and in a cluster its number cannot be reused"
	}
	return failure.Refuse(failure.ErrExists, "workflow %s version %d %s: raise version to %d", key.workflow, key.version, has, free)
}

func (s *Source) secondSource() document.Fault {
	return document.Fault{
		File: s.File, Line: s.Line("id"),
		Reason:     fmt.Sprintf("workflow %s is already published by PUT definitions/%[1]s, and has only one source", s.Parsed.ID),
		Suggestion: "remove the file, or give its workflow another id",
	}
}
