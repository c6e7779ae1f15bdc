package catalog

import (
	"fmt"

	"troupe/actors/failure"
	"troupe/statemachine/document"
)

// PublishDefinition makes one definition what new instances get, unless a higher version of its
// workflow was published in this way before. A workflow has one source: when a file of the current
// set names it, the error is failure.ErrConflict. A version that is stored with other content is
// failure.ErrExists, whether it has instances or not; with the same content nothing is changed.
// Sets of files leave the definition alone, and must not name its workflow.
//
// current: new instances get it. When it is in use, and the other errors, are as for Publish.
func (c *Catalog) PublishDefinition(s Source) (current bool, err error) {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	p, err := c.publishLocked([]Source{s}, c.prepareDefinitionLocked)
	if err != nil {
		return false, err
	}
	return p.isCurrent(&s), nil
}

// CheckDefinition returns what PublishDefinition would return now. Nothing is changed.
func (c *Catalog) CheckDefinition(s Source) (current bool, err error) {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	if _, err := c.beginEpochLocked(); err != nil {
		return false, failure.In("check", string(s.Parsed.ID), err)
	}
	p, err := c.prepareDefinitionLocked([]Source{s})
	return err == nil && p.isCurrent(&s), err
}

func (p *publication) isCurrent(s *Source) bool {
	return p.next[string(s.Parsed.ID)].version == s.Parsed.Version
}

// prepareDefinitionLocked is prepareLocked for a single definition, the only one in set. Content
// is never replaced, so there is nothing to undo.
func (c *Catalog) prepareDefinitionLocked(set []Source) (*publication, error) {
	p, s := c.newPublication(), &set[0]
	key := s.key()
	c.checkLevel(p, s)
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
	other, err := c.write(p, s)
	if err == nil && other {
		err = c.errExists(key)
	}
	if err != nil {
		return p, failure.In("publish", key.workflow, err)
	}
	if now == nil || !now.published || key.version > now.version {
		p.next[key.workflow] = &currentVersion{Definition: s.Parsed, version: key.version, listed: true, published: true}
	}
	return p, c.prepareIndexesLocked(p)
}

// errExists is why a version does not get other content.
func (c *Catalog) errExists(key versionKey) error {
	free, err := c.freeVersion(key.workflow)
	if err != nil {
		return err
	}
	return failure.Refuse(failure.ErrExists, "workflow %s version %d has other content: raise version to %d", key.workflow, key.version, free)
}

// secondSource is the fault of a file that names a workflow which was published singly.
func (s *Source) secondSource() document.Fault {
	return document.Fault{
		File: s.File, Line: s.Line("id"),
		Reason:     fmt.Sprintf("workflow %s is published by PUT definitions/%[1]s already, and has one source only", s.Parsed.ID),
		Suggestion: "remove the file, or give its workflow another id",
	}
}
