package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/filter"
)

// Source is one definition file as it was read and checked.
type Source struct {
	File   string
	Text   []byte
	Refs   map[string][]byte // the files beside it that it refers to, by name
	Parsed *statemachine.Definition
}

type stored struct {
	File string            `json:"file"`
	Text string            `json:"text"`
	Refs map[string]string `json:"refs,omitempty"`
	// By is the user who published the version through the interface; "" when it came from a home, or when that is not
	// known.
	By string `json:"by,omitempty"`
}

// hasContentOf reports whether two mean the same: where they come from does not count.
func (s stored) hasContentOf(other stored) bool {
	return s.Text == other.Text && maps.Equal(s.Refs, other.Refs)
}

func (s *Source) stored(by identity.UserID) stored {
	kept := stored{File: s.File, Text: string(s.Text), By: string(by)}
	for name, ref := range s.Refs {
		if kept.Refs == nil {
			kept.Refs = map[string]string{}
		}
		kept.Refs[name] = string(ref)
	}
	return kept
}

// Line returns where the first of the keys stands at the top of the file; 1 when none does.
func (s *Source) Line(keys ...string) int {
	root, err := document.Parse(s.File, s.Text)
	if err != nil {
		return 1
	}
	for _, key := range keys {
		for _, f := range root.Fields {
			if f.Key.Text == key {
				return f.Key.Line
			}
		}
	}
	return 1
}

func (s *Source) key() versionKey { return versionKey{string(s.Parsed.ID), s.Parsed.Version} }

// Names of the settings that say which version new instances of a workflow get.
const (
	// listedSetting has those of the current set of files, so that a restart with faulty files can go on with it.
	listedSetting = "listed-workflows"
	// olderSetting has the lower versions that the files name beside them, where there are some.
	olderSetting     = "listed-older-versions"
	publishedSetting = "published-workflows" // publishedSetting has those that came by PublishDefinition
)

// Files are the files of a store's current set of definitions: their texts by their paths in a home.
func Files(s *persistence.Store) (map[string][]byte, error) {
	c := &Catalog{store: s}
	listed, err := loadVersions[uint64](c, listedSetting)
	older, err2 := loadVersions[[]uint64](c, olderSetting)
	files := map[string][]byte{}
	err = errors.Join(err, err2)
	for id, version := range listed {
		for _, number := range append(older[id], version) {
			of, err2 := c.loadStored(versionKey{id, number})
			files[of.File], err = []byte(of.Text), errors.Join(err, err2)
			for ref, text := range of.Refs {
				files[path.Join(path.Dir(of.File), ref)] = []byte(text)
			}
		}
	}
	return files, err
}

func (c *Catalog) published(prefix []byte) (map[string][]uint64, error) {
	all := map[string][]uint64{}
	err := c.store.Scan(prefix, func(k, _ []byte) error {
		parsed, ok := key.Parse(k)
		if !ok {
			return fmt.Errorf("%w: definition key", persistence.ErrCorrupt)
		}
		all[parsed.Workflow] = append(all[parsed.Workflow], parsed.Number)
		return nil
	})
	return all, err
}

func (c *Catalog) hasInstances(k versionKey) (bool, error) {
	n, err := c.store.CountAll(key.Count(nil, key.EveryShard, k.workflow, k.version))
	return n > 0, err
}

func loadVersions[T uint64 | []uint64](c *Catalog, setting string) (versions map[string]T, err error) {
	err = c.loadSetting(setting, &versions)
	return versions, err
}

// loadSetting reads a setting into what value points to, which stays as it is when there is none.
func (c *Catalog) loadSetting(setting string, value any) error {
	text, err := c.store.Load(key.Setting(nil, setting))
	if errors.Is(err, persistence.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", setting, err)
	}
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("read %s: %w: %w", setting, persistence.ErrCorrupt, err)
	}
	return nil
}

func (c *Catalog) loadStored(k versionKey) (s stored, err error) {
	text, err := c.store.Load(key.Definition(nil, k.workflow, k.version))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("%w: %w", persistence.ErrCorrupt, err)
	}
	return s, nil
}

// Version returns one published version. failure.ErrExecution when it cannot be read, and failure.ErrUnavailable when
// it was retired a moment ago.
func (c *Catalog) Version(workflow string, number uint64) (*statemachine.Definition, error) {
	key := versionKey{workflow, number}
	if v, ok := c.versions.Load(key); ok {
		return v.definition, v.err
	}
	text, err := c.loadVersion(key)
	if errors.Is(err, persistence.ErrNotFound) {
		if stored, err := c.loadRetirements(); err == nil && stored.isGone(key) {
			return nil, errRetired(key) // NB: what is in use here lists it until the next Reload
		}
	}
	if errors.Is(err, persistence.ErrNotFound) || errors.Is(err, persistence.ErrCorrupt) {
		return c.spoilt(key, err)
	}
	if err != nil {
		return nil, failure.OfStore(err)
	}
	// NB: one at a time, so that many who want the same version, or many versions, do not take all processors and
	// memory.
	c.compiling.Lock()
	defer c.compiling.Unlock()
	if v, ok := c.versions.Load(key); ok {
		return v.definition, v.err
	}
	d, err := c.parse(text)
	if err != nil {
		return c.spoilt(key, err)
	}
	v, _ := c.versions.LoadOrStore(key, version{definition: d})
	return v.definition, v.err
}

// VersionHere is Version for those who must not wait: false when the version has not come to this node yet, or cannot
// be read.
func (c *Catalog) VersionHere(workflow string, number uint64) (*statemachine.Definition, bool) {
	if _, ok := c.versions.Load(versionKey{workflow, number}); !ok {
		if _, err := c.store.Load(key.Definition(nil, workflow, number)); err != nil {
			return nil, false
		}
	}
	d, err := c.Version(workflow, number)
	return d, err == nil
}

// Find is Version for a number that somebody has named: failure.ErrNotFound when there is no such version.
func (c *Catalog) Find(workflow string, number uint64) (*statemachine.Definition, error) {
	key := versionKey{workflow, number}
	if _, ok := c.versions.Load(key); !ok {
		if _, err := c.loadVersion(key); errors.Is(err, persistence.ErrNotFound) {
			return nil, failure.ErrNotFound
		} else if err != nil {
			return nil, failure.OfStore(err)
		}
	}
	return c.Version(workflow, number)
}

// In a cluster an instance can have come from a node that knew of the version before this one: then loadVersion waits
// until this one is as new. While that is not known, the error is failure.ErrUnavailable.
func (c *Catalog) loadVersion(k versionKey) ([]byte, error) {
	row := key.Definition(nil, k.workflow, k.version)
	text, err := c.store.Load(row)
	if !errors.Is(err, persistence.ErrNotFound) || c.store.Standalone() {
		return text, err
	}
	if c.awaitCurrent == nil {
		return nil, failure.Errorf(failure.ErrUnavailable, "definition %s version %d is not here yet", k.workflow, k.version)
	}
	ctx, cancel := context.WithTimeout(context.Background(), currentWaitMax)
	defer cancel()
	if err := c.awaitCurrent(ctx); err != nil {
		return nil, failure.Errorf(failure.ErrUnavailable, "definition %s version %d is not here yet: %w", k.workflow, k.version, err)
	}
	return c.store.Load(row)
}

// currentWaitMax is how long a request waits for a definition that another node had first.
const currentWaitMax = 2 * time.Second

func (c *Catalog) keep(key versionKey, d *statemachine.Definition) {
	c.versions.Store(key, version{definition: d})
}

func (c *Catalog) spoilt(key versionKey, reason error) (*statemachine.Definition, error) {
	err := failure.Errorf(failure.ErrExecution, "definition %s version %d: %w", key.workflow, key.version, reason)
	v, known := c.versions.LoadOrStore(key, version{err: err})
	if !known {
		c.log.Error().Err(reason).Str("workflow", key.workflow).Uint64("version", key.version).
			Msg("stored definition cannot be read; requests for its instances fail")
	}
	return v.definition, v.err
}

// Readable returns nil, or which stored definitions cannot be read and why. The instances that run under one of them
// cannot be read either.
func (c *Catalog) Readable() error {
	var faults []string
	c.versions.Range(func(key versionKey, v version) bool {
		if v.err != nil {
			faults = append(faults, v.err.Error())
		}
		return true
	})
	if len(faults) == 0 {
		return nil
	}
	slices.Sort(faults)
	return fmt.Errorf("%d cannot be read: %s", len(faults), strings.Join(faults, "; "))
}

func (c *Catalog) parse(text []byte) (*statemachine.Definition, error) {
	var s stored
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	parsed, err := c.parser.Parse(statemachine.Source{File: s.File, Text: []byte(s.Text), Read: func(name string) ([]byte, error) {
		ref, ok := s.Refs[name]
		if !ok {
			return nil, fmt.Errorf("file %q was not kept", name)
		}
		return []byte(ref), nil
	}})
	if err != nil {
		return nil, err
	}
	return parsed.Definition, nil
}

// putSetting writes a setting as JSON unless the store has the same. empty: the value is the same as none.
func (c *Catalog) putSetting(w *persistence.Batch, name string, value any, empty bool) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	key := key.Setting(nil, name)
	before, err := c.store.Load(key)
	if err == nil && string(before) == string(text) || empty && errors.Is(err, persistence.ErrNotFound) {
		return nil
	}
	w.Set(key, text)
	return nil
}

// retirements is what a cluster knows of versions that are retired (DESIGN.md, "Retiring in a cluster").
type retirements struct {
	Last uint64      `json:"last"`          // the number of the last one that began
	Now  *retirement `json:"now,omitempty"` // the one that is under way: no instance gets these versions
	// No content takes their numbers again: a node may still have the one that went.
	Gone map[string][]uint64 `json:"gone,omitempty"`
}

type retirement struct {
	Number   uint64   `json:"number"`
	Workflow string   `json:"workflow"`
	Versions []uint64 `json:"versions"`
}

const retirementsSetting = "retired-workflows"

func (r *retirements) isGone(key versionKey) bool {
	_, is := slices.BinarySearch(r.Gone[key.workflow], key.version)
	return is
}

func (c *Catalog) loadRetirements() (*retirements, error) {
	r := &retirements{}
	return r, c.loadSetting(retirementsSetting, r)
}

func errRetired(key versionKey) error {
	return failure.Refuse(failure.ErrUnavailable, "version %d of workflow %s was retired in the meantime: try again", key.version, key.workflow)
}

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
	if !c.store.Standalone() {
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
