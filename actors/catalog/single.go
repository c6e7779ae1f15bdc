package catalog

import (
	"cmp"
	"errors"
	"fmt"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence"
	"troupe/statemachine/document"
)

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
		if err := mayPublish(key.workflow, of, by); err != nil {
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
		has = "was retired, and in a cluster its number cannot be used again"
	}
	return failure.Refuse(failure.ErrExists, "workflow %s version %d %s: raise version to %d", key.workflow, key.version, has, free)
}

func (s *Source) secondSource() document.Fault {
	return document.Fault{
		File: s.File, Line: s.Line("id"),
		Reason:     fmt.Sprintf("workflow %s is published by PUT definitions/%[1]s already, and has one source only", s.Parsed.ID),
		Suggestion: "remove the file, or give its workflow another id",
	}
}
