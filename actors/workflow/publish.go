package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"

	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/filter"
)

// Source is one definition file as it was read and checked.
type Source struct {
	File string
	Text []byte
	// Refs are the files beside it that it refers to, by name.
	Refs   map[string][]byte
	Parsed *statemachine.Definition
}

// stored is the form in which a definition is kept.
type stored struct {
	File string            `json:"file"`
	Text string            `json:"text"`
	Refs map[string]string `json:"refs,omitempty"`
}

func (s *Source) stored() stored {
	kept := stored{File: s.File, Text: string(s.Text)}
	for name, ref := range s.Refs {
		if kept.Refs == nil {
			kept.Refs = map[string]string{}
		}
		kept.Refs[name] = string(ref)
	}
	return kept
}

func (s *Source) key() versionKey { return versionKey{string(s.Parsed.ID), s.Parsed.Version} }

// publication is one Publish on its way.
type publication struct {
	next   offers
	writes map[versionKey][]byte
	// replaced are the counters of content that goes; they are retired.
	replaced map[versionKey]*atomic.Int64
	faults   document.Faults
	// indexes are what the definitions declare, when that is new.
	indexes    storedIndexes
	newIndexes bool
}

// Publish makes a checked set of files what new instances get. It is taken as a
// whole or refused as a whole: then the error is document.Faults and the set
// before stays in use. It returns when the set is durable.
func (c *Catalog) Publish(set []Source) error {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	p := &publication{next: offers{}, writes: map[versionKey][]byte{}, replaced: map[versionKey]*atomic.Int64{}}
	err := c.prepareLocked(p, set)
	if err == nil && len(p.faults) > 0 {
		err = p.faults
	}
	if err == nil {
		p.indexes, p.newIndexes = declaredIndexes(c.publishing.indexes, p.next)
		err = c.writePublication(p)
	}
	if err != nil {
		for _, counter := range p.replaced {
			counter.Add(-retired)
		}
		return err
	}
	for key := range p.replaced {
		c.publishing.creating[key] = new(atomic.Int64)
	}
	for _, s := range set {
		c.versions.Store(s.key(), s.Parsed)
	}
	for id, o := range p.next {
		o.creating = c.counterLocked(versionKey{id, o.Version})
	}
	c.current.Store(&p.next)
	if p.newIndexes {
		return c.installIndexesLocked(p.indexes)
	}
	return nil
}

// counterLocked returns the counter that all offers of the version's present
// content share.
func (c *Catalog) counterLocked(key versionKey) *atomic.Int64 {
	if c.publishing.creating[key] == nil {
		c.publishing.creating[key] = new(atomic.Int64)
	}
	return c.publishing.creating[key]
}

// prepareLocked decides about every source and collects what is wrong.
func (c *Catalog) prepareLocked(p *publication, set []Source) error {
	for id, o := range *c.current.Load() {
		p.next[id] = &offer{Definition: o.Definition} // its file may be gone
	}
	seen := map[versionKey]string{}
	for i := range set {
		s := &set[i]
		key := s.key()
		if other, twice := seen[key]; twice {
			p.faults = append(p.faults, document.Fault{
				File: s.File, Line: 1,
				Reason: fmt.Sprintf("workflow %s version %d stands in %s as well", key.workflow, key.version, other),
			})
			continue
		}
		seen[key] = s.File
		if err := c.prepareOneLocked(p, s, key); err != nil {
			return fmt.Errorf("publish %s: %w", s.File, err)
		}
		if before := p.next[key.workflow]; before == nil || !before.listed || before.Version < key.version {
			p.next[key.workflow] = &offer{Definition: s.Parsed, listed: true}
		}
	}
	return nil
}

func (c *Catalog) prepareOneLocked(p *publication, s *Source, key versionKey) error {
	for _, path := range s.Parsed.Indexes() {
		if _, err := filter.ParseField(path); err != nil {
			p.faults = append(p.faults, document.Fault{
				File: s.File, Line: 1, Reason: fmt.Sprintf("index %s: %s", data.Quote(path.String()), err),
			})
		}
	}
	kept := s.stored()
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	old, err := c.store.Load(persistence.DefinitionKey(nil, key.workflow, key.version))
	if errors.Is(err, persistence.ErrNotFound) {
		p.writes[key] = text
		return nil
	}
	if err != nil {
		return err
	}
	if string(old) == string(text) {
		return nil
	}
	var before stored
	if err := json.Unmarshal(old, &before); err != nil {
		return fmt.Errorf("%w: %w", persistence.ErrCorrupt, err)
	}
	p.writes[key] = text
	if before.Text == kept.Text && maps.Equal(before.Refs, kept.Refs) {
		return nil // the file was only renamed
	}
	free, err := c.retireLocked(p, key)
	if err == nil && !free {
		p.faults = append(p.faults, document.Fault{
			File: s.File, Line: 1,
			Reason:     fmt.Sprintf("workflow %s version %d has instances and other content", key.workflow, key.version),
			Suggestion: fmt.Sprintf("raise version to %d", key.version+1),
		})
	}
	return err
}

// retireLocked makes sure that no instance has, and none will get, the present
// content of a version. It is false when one has it already.
func (c *Catalog) retireLocked(p *publication, key versionKey) (free bool, err error) {
	counter := c.counterLocked(key)
	if !counter.CompareAndSwap(0, retired) {
		return false, nil
	}
	p.replaced[key] = counter
	for sh := range persistence.Shard(c.store.ShardCount()) {
		n, err := c.store.Count(persistence.CountKey(nil, sh, key.workflow, key.version))
		if err != nil || n > 0 {
			return false, err
		}
	}
	return true, nil
}

// writePublication stores new definitions and what the set lists, in one batch.
func (c *Catalog) writePublication(p *publication) error {
	listed := map[string]uint64{}
	for id, o := range p.next {
		if o.listed {
			listed[id] = o.Version
		}
	}
	text, err := json.Marshal(listed)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if len(p.writes) == 0 && !p.newIndexes {
		before, err := c.store.Load(persistence.SettingKey(nil, listedSetting))
		if err == nil && string(before) == string(text) {
			return nil // a restart writes nothing, so that it works on a full disk
		}
	}
	w := c.store.NewWrites(persistence.Meta)
	for key, value := range p.writes {
		w.Set(persistence.DefinitionKey(nil, key.workflow, key.version), value)
	}
	w.Set(persistence.SettingKey(nil, listedSetting), text)
	if p.newIndexes {
		rows, err := json.Marshal(p.indexes)
		if err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		w.Set(persistence.SettingKey(nil, indexesSetting), rows)
	}
	if err := c.store.Commit(w); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}
