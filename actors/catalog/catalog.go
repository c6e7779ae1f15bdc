package catalog

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"
	"github.com/rs/zerolog"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/grace"
	"troupe/persistence"
	"troupe/statemachine"
)

// Catalog knows every definition that was ever published. What is published is
// kept in the store by id and version, because instances stay on the version
// that they were created with (statemachine/DEFINITION.md, "Versions").
//
// Readers are lock-free. Publish changes what new instances get.
type Catalog struct {
	store  *persistence.Store
	parser *statemachine.Parser
	log    zerolog.Logger

	// current has what new instances get, and for workflows whose file is gone what
	// rules their instances. Replaced, never changed.
	current atomic.Pointer[currentVersions]
	// builtin are the definitions of our own, which no file can take away. They
	// are not listed among the choices. Written before the router starts.
	builtin currentVersions
	// versions has the definitions that instances asked for, and those that cannot
	// be read with the reason.
	versions *xsync.Map[versionKey, version]
	// publishing is held while a set is being published, also over the commit
	// (DESIGN.md, "Definitions").
	publishing struct {
		sync.Mutex
		pins    map[versionKey]*atomic.Int64 // see currentVersion.pins
		indexes storedIndexes                // as the store has them
	}

	// indexes are what commits maintain (DESIGN.md, "Generations of indexes").
	// Replaced, never changed.
	indexes atomic.Pointer[Indexes]
	// commits are those that may work with what was replaced.
	commits grace.Period
	// indexesChanged has an entry when there may be something to build or drop.
	indexesChanged chan struct{}
}

// currentVersions maps workflow ids to their current version.
type currentVersions map[string]*currentVersion

// currentVersion is the newest version of one workflow.
type currentVersion struct {
	// Definition is nil when what is stored cannot be read; Catalog.Version knows why.
	*statemachine.Definition
	version uint64
	listed  bool // its file is in the current set: new instances can be made
	// pins counts the creates that are on their way with this content of this
	// version, and is shared by all that have it. It becomes retired, for good, when
	// other content takes the version.
	pins *atomic.Int64
}

// retired is a value of pins below any that creates can bring it to.
const retired = -1 << 40

type versionKey struct {
	workflow string
	version  uint64
}

// version is one stored definition: what it means, or why it cannot be read.
type version struct {
	*statemachine.Definition
	err error
}

// listedSetting is the name under which the versions of the current set are
// kept, so that a restart with faulty files can go on with it.
const listedSetting = "listed-workflows"

// Open reads what was published before. Stored definitions are read again
// by a parser like this one that takes every role, because roles come and go, and
// that minds only what keeps a definition from running.
func Open(store *persistence.Store, parser *statemachine.Parser, log zerolog.Logger) (*Catalog, error) {
	c := &Catalog{
		store: store, log: log, versions: xsync.NewMap[versionKey, version](),
		parser: parser.With(statemachine.ParserOptions{Stored: true}), indexesChanged: make(chan struct{}, 1),
	}
	c.builtin = currentVersions{}
	c.publishing.pins = map[versionKey]*atomic.Int64{}
	c.indexes.Store(&Indexes{})
	if err := c.loadIndexes(); err != nil {
		return nil, err
	}
	listed, err := c.loadListed()
	if err != nil {
		return nil, err
	}
	published, err := c.published(persistence.DefinitionsPrefix(nil))
	if err != nil {
		return nil, fmt.Errorf("read published definitions: %w", err)
	}
	now := currentVersions{}
	for workflow, versions := range published {
		number, isListed := listed[workflow]
		if !isListed {
			number = slices.Max(versions)
		}
		// NB: one that cannot be read stays here: its instances are not gone.
		d, err := c.Version(workflow, number)
		if err != nil && !errors.Is(err, failure.ErrExecution) {
			return nil, fmt.Errorf("read published definitions: %w", err)
		}
		now[workflow] = &currentVersion{
			Definition: d, version: number, listed: isListed, pins: c.pinsLocked(versionKey{workflow, number}),
		}
	}
	c.current.Store(&now)
	return c, c.readInUse(published)
}

// published returns the versions in the store of every workflow whose definitions
// have the prefix.
func (c *Catalog) published(prefix []byte) (map[string][]uint64, error) {
	all := map[string][]uint64{}
	err := c.store.Scan(prefix, func(key, _ []byte) error {
		parsed, ok := persistence.ParseKey(key)
		if !ok {
			return fmt.Errorf("%w: definition key", persistence.ErrCorrupt)
		}
		all[parsed.Workflow] = append(all[parsed.Workflow], parsed.Number)
		return nil
	})
	return all, err
}

// readInUse reads the definitions of all instances, so that those that cannot be
// read are known from the start.
func (c *Catalog) readInUse(published map[string][]uint64) error {
	for workflow, versions := range published {
		for _, number := range versions {
			used, err := c.hasInstances(versionKey{workflow, number})
			if err == nil && used {
				_, err = c.Version(workflow, number)
			}
			if err != nil && !errors.Is(err, failure.ErrExecution) {
				return fmt.Errorf("read published definitions: %w", err)
			}
		}
	}
	return nil
}

// hasInstances reports whether the store counts an instance of the version.
func (c *Catalog) hasInstances(key versionKey) (bool, error) {
	n, err := c.store.CountAll(persistence.CountKey(nil, persistence.EveryShard, key.workflow, key.version))
	return n > 0, err
}

func (c *Catalog) loadListed() (map[string]uint64, error) {
	text, err := c.store.Load(persistence.SettingKey(nil, listedSetting))
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read listed workflows: %w", err)
	}
	var listed map[string]uint64
	if err := json.Unmarshal(text, &listed); err != nil {
		return nil, fmt.Errorf("read listed workflows: %w: %w", persistence.ErrCorrupt, err)
	}
	return listed, nil
}

// AddBuiltin makes a definition of our own available under an id that no file can
// have, because it is no identifier. What was once used must stay as it is: a new
// version would need the old one as well. It must be called before the catalog is
// used.
func (c *Catalog) AddBuiltin(id string, d *statemachine.Definition) {
	c.builtin[id] = &currentVersion{Definition: d, version: d.Version, listed: true, pins: new(atomic.Int64)}
	c.keep(versionKey{id, d.Version}, d)
}

// currentOf returns the newest version of a workflow; nil when it was never published.
func (c *Catalog) currentOf(workflow string) *currentVersion {
	if o := (*c.current.Load())[workflow]; o != nil {
		return o
	}
	return c.builtin[workflow]
}

// CallerOf is what the state machine sees of a principal.
func CallerOf(p *identity.Principal) *statemachine.Caller {
	return &statemachine.Caller{ID: string(p.ID), Roles: p.Roles, Privileges: p.Privileges}
}

// Len returns how many workflows have a file in the current set.
func (c *Catalog) Len() int {
	n := 0
	for _, o := range *c.current.Load() {
		if o.listed {
			n++
		}
	}
	return n
}

// Newest returns the definition whose rules hold for the workflow. failure.ErrNotFound when
// it was never published, failure.ErrExecution when it cannot be read.
func (c *Catalog) Newest(workflow string) (*statemachine.Definition, error) {
	return c.rules(workflow, c.currentOf(workflow))
}

// Creatable returns the definition for new instances. failure.ErrNotFound when there is none,
// failure.ErrExecution when it cannot be read.
func (c *Catalog) Creatable(workflow string) (*statemachine.Definition, error) {
	o := c.currentOf(workflow)
	if o != nil && !o.listed {
		o = nil
	}
	return c.rules(workflow, o)
}

func (c *Catalog) rules(workflow string, o *currentVersion) (*statemachine.Definition, error) {
	switch {
	case o == nil:
		return nil, failure.ErrNotFound
	case o.Definition == nil:
		return c.Version(workflow, o.version)
	}
	return o.Definition, nil
}

// Pin keeps the content of a workflow's current version.
type Pin struct{ version *currentVersion }

// Pin pins the definition for a create that is about to happen: until it is
// released, its content cannot be replaced under the same version. After the create,
// the stored count of instances holds it. The errors are those of Creatable.
func (c *Catalog) Pin(workflow string) (Pin, error) {
	for {
		o := c.currentOf(workflow)
		if o == nil || !o.listed {
			return Pin{}, failure.ErrNotFound
		}
		if _, err := c.rules(workflow, o); err != nil {
			return Pin{}, err
		}
		if o.Definition != nil { // or it was published again since
			if o.pins.Add(1) > 0 {
				return Pin{o}, nil
			}
			o.pins.Add(-1)
		}
		// Publish is replacing it: wait until it has decided, then look again.
		c.publishing.Lock()
		c.publishing.Unlock() //nolint:staticcheck // only to wait
	}
}

// Definition is what is pinned.
func (p Pin) Definition() *statemachine.Definition { return p.version.Definition }

// Release ends the pin. It is called once.
func (p Pin) Release() { p.version.pins.Add(-1) }

// Choice is a workflow that a caller may create.
type Choice struct{ ID, Name string }

// Choices lists what the caller may create, by id.
func (c *Catalog) Choices(caller *statemachine.Caller, now time.Time) []Choice {
	out := []Choice{}
	for id, o := range *c.current.Load() {
		if choice, ok := o.choice(id, caller, now); ok {
			out = append(out, choice)
		}
	}
	slices.SortFunc(out, func(a, b Choice) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Choice returns one of the Choices; false when the caller may not create it.
func (c *Catalog) Choice(id string, caller *statemachine.Caller, now time.Time) (Choice, bool) {
	return (*c.current.Load())[id].choice(id, caller, now)
}

// choice is the workflow as one that the caller may create; false when it is none.
// nil is none, and so is one whose definition cannot be read.
func (o *currentVersion) choice(id string, caller *statemachine.Caller, now time.Time) (Choice, bool) {
	if o == nil || !o.listed || o.Definition == nil || o.CreateRight(caller, now) == statemachine.Denied {
		return Choice{}, false
	}
	return Choice{ID: id, Name: o.Name}, true
}

// Version returns one published version. failure.ErrExecution when it cannot be read.
func (c *Catalog) Version(workflow string, number uint64) (*statemachine.Definition, error) {
	key := versionKey{workflow, number}
	if v, ok := c.versions.Load(key); ok {
		return v.Definition, v.err
	}
	text, err := c.store.Load(persistence.DefinitionKey(nil, workflow, number))
	if errors.Is(err, persistence.ErrNotFound) || errors.Is(err, persistence.ErrCorrupt) {
		return c.spoilt(key, err)
	}
	if err != nil {
		return nil, failure.OfStore(err)
	}
	d, err := c.parse(text)
	if err != nil {
		return c.spoilt(key, err)
	}
	v, _ := c.versions.LoadOrStore(key, version{Definition: d})
	return v.Definition, v.err
}

// keep makes d what a version means.
func (c *Catalog) keep(key versionKey, d *statemachine.Definition) {
	c.versions.Store(key, version{Definition: d})
}

// spoilt notes that a version cannot be read, until it is published again.
func (c *Catalog) spoilt(key versionKey, reason error) (*statemachine.Definition, error) {
	err := failure.Errorf(failure.ErrExecution, "definition %s version %d: %w", key.workflow, key.version, reason)
	v, known := c.versions.LoadOrStore(key, version{err: err})
	if !known {
		c.log.Error().Err(reason).Str("workflow", key.workflow).Uint64("version", key.version).
			Msg("stored definition cannot be read; requests for its instances fail")
	}
	return v.Definition, v.err
}

// Readable returns nil, or which stored definitions cannot be read and why. The
// instances that run under one of them cannot be read either.
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
