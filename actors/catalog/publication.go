package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"troupe/actors/identity"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/filter"
)

type rightsChange struct {
	key    versionKey
	before uint64
	blocks []string
}

type publication struct {
	next       currentVersions
	writes     map[versionKey][]byte
	removed    []versionKey                 // versions that are retired
	replaced   map[versionKey]*atomic.Int64 // the pins of content that goes; they are closed
	faults     document.Faults
	indexes    storedIndexes // what the definitions declare, and indexSet the set of them, when that is new
	indexSet   Indexes
	newIndexes bool
	// owners are those of all workflows where some have changed, and changes the versions that change rights.
	owners      map[string]ownership
	changes     []rightsChange
	retirements *retirements // what is known of them afterwards; nil: as before
}

func (p *publication) undo() {
	for _, pins := range p.replaced {
		pins.Add(-closed)
	}
}

func (c *Catalog) newPublication() *publication {
	p := &publication{next: currentVersions{}, writes: map[versionKey][]byte{}, replaced: map[versionKey]*atomic.Int64{}}
	for id, o := range *c.current.Load() {
		p.next[id] = &currentVersion{Definition: o.Definition, version: o.version, listed: o.listed, published: o.published, older: o.older}
	}
	return p
}

func (c *Catalog) prepareIndexesLocked(p *publication) (err error) {
	p.indexes, p.newIndexes = declaredIndexes(c.publishing.indexes, p.next)
	if !c.store.Alone() {
		p.newIndexes = p.indexes.withoutDropped() || p.newIndexes
	}
	if p.newIndexes {
		p.indexSet, err = c.indexSetLocked(p.indexes)
	}
	return err
}

func (p *publication) checkIndexes(s *Source) {
	for _, path := range s.Parsed.Indexes {
		if _, err := filter.ParseField(path); err != nil {
			p.faults = append(p.faults, document.Fault{
				File: s.File, Line: s.Line("indexes"), Reason: fmt.Sprintf("index %s: %s", data.Quote(path.String()), err),
			})
		}
	}
}

// write notes that a version is to be stored, unless the store has it as it is. other: it has other content under this
// version. by publishes it through the interface.
func (c *Catalog) write(p *publication, s *Source, by identity.UserID) (other bool, err error) {
	kept := s.stored(by)
	before, err := c.loadStored(s.key())
	switch {
	case errors.Is(err, persistence.ErrNotFound):
	case err != nil:
		return false, err
	case !before.hasContentOf(kept):
		other = true
	case before.File == kept.File:
		return false, nil
	}
	p.writes[s.key()], err = json.Marshal(kept)
	return other, err
}

func (c *Catalog) freeVersion(workflow string) (uint64, error) {
	published, err := c.published(key.DefinitionPrefix(nil, workflow))
	if err != nil {
		return 0, err
	}
	return slices.Max(slices.Concat(published[workflow], c.retirements.Load().Gone[workflow])) + 1, nil
}
