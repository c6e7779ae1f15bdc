package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// Listed is a workflow with all its versions.
type Listed struct {
	ID        string
	Name      string // empty when the current version cannot be read
	Current   uint64 // the version whose rules hold, which new instances get while the workflow is Creatable
	Creatable bool
	Versions  []uint64 // ascending
	// Owners may publish the next version; nil: nobody is known. Publisher first published the workflow through the
	// interface; "": nobody did, or it is not known who.
	Owners    *statemachine.Owners
	Publisher string
}

// List returns all workflows that were ever published, by id. In a cluster only the node that leads the shard Meta
// knows that it has the newest; the error of any other is failure.ErrNotLeader.
func (c *Catalog) List() ([]Listed, error) {
	if err := c.awaitNewest(); err != nil {
		return nil, err
	}
	published, err := c.published(key.DefinitionsPrefix(nil))
	if err != nil {
		return nil, failure.OfStore(err)
	}
	owners, err := c.loadOwners()
	if err != nil {
		return nil, failure.OfStore(err)
	}
	all := make([]Listed, 0, len(published))
	for id, versions := range published {
		o := (*c.current.Load())[id]
		if o == nil {
			continue // it is being published
		}
		w := Listed{ID: id, Current: o.version, Creatable: o.listed, Versions: versions}
		if d, err := c.rules(id, o); err == nil {
			w.Name = d.Name
		}
		of, _ := c.ownersOf(owners, id, o)
		w.Owners, w.Publisher = of.effective(), of.By
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b Listed) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// KnowsEvent returns failure.ErrInvalid, with a suggestion, when no version of a workflow has an event.
func (c *Catalog) KnowsEvent(workflow string, event statemachine.EventName) error {
	newest, err := c.Newest(workflow)
	if err != nil || newest.Declares(event) {
		return err
	}
	published, err := c.published(key.DefinitionPrefix(nil, workflow))
	if err != nil {
		return failure.OfStore(err)
	}
	for _, number := range published[workflow] {
		if d, err := c.Version(workflow, number); err != nil || d.Declares(event) {
			return nil //nolint:nilerr // one that cannot be read may have it
		}
	}
	names := []string{}
	for _, name := range newest.EventNames() {
		names = append(names, string(name))
	}
	reason := fmt.Sprintf("no version of %s has the event %s", workflow, data.Quote(string(event)))
	if meant := document.DidYouMean(string(event), names); meant != "" {
		reason += "; " + meant
	}
	return failure.Refuse(failure.ErrInvalid, "%s", reason)
}

// Text is a version of a definition as it was published.
type Text struct {
	Version uint64
	Current bool
	// File is the path that it had in its home; one that was published singly has none, and File is the name that it
	// was read under.
	File, Text string
	Refs       map[string]string // the files that it refers to, by name
	// Owners may publish the next version while this is the newest; nil: nobody is known. Publisher has published this
	// one through the interface; "": nobody did, or it is not known who.
	Owners    *statemachine.Owners
	Publisher string
}

// Content returns the text of a stored version and of the files that it refers to, whether or not its workflow is in use. persistence.ErrNotFound
// when there is none, as of a builtin one.
func (c *Catalog) Content(workflow string, number uint64) (text string, refs map[string]string, err error) {
	s, err := c.loadStored(versionKey{workflow, number})
	return s.Text, s.Refs, err
}

// Text returns a version; 0 is the current one. failure.ErrNotFound when there is none, otherwise the errors of List.
func (c *Catalog) Text(workflow string, number uint64) (Text, error) {
	if err := c.awaitNewest(); err != nil {
		return Text{}, err
	}
	o := (*c.current.Load())[workflow]
	if o == nil {
		return Text{}, failure.ErrNotFound
	}
	number = cmp.Or(number, o.version)
	s, err := c.loadStored(versionKey{workflow, number})
	if errors.Is(err, persistence.ErrNotFound) {
		return Text{}, failure.ErrNotFound
	}
	if err != nil {
		return Text{}, failure.OfStore(err)
	}
	owners, err := c.loadOwners()
	if err != nil {
		return Text{}, failure.OfStore(err)
	}
	of, _ := c.ownersOf(owners, workflow, &currentVersion{version: number})
	return Text{
		Version: number, Current: number == o.version, File: s.File, Text: s.Text, Refs: s.Refs, Owners: of.effective(), Publisher: s.By,
	}, nil
}

func (c *Catalog) awaitNewest() error {
	if c.store.Standalone() {
		return nil
	}
	c.publishing.Lock()
	defer c.publishing.Unlock()
	_, err := c.beginEpochLocked()
	return err
}

// beginEpochLocked returns the epoch of Meta to write in, when all that was published before is here and in use.
func (c *Catalog) beginEpochLocked() (epoch uint64, err error) {
	epoch = c.store.Epoch(key.Meta)
	switch {
	case c.store.Standalone():
		return epoch, nil
	case epoch == 0:
		return 0, failure.Elsewhere(uint16(key.Meta))
	}
	if err := c.store.AwaitLed(context.Background(), key.Meta, epoch); err != nil {
		return 0, failure.OfStore(err)
	}
	return epoch, c.reloadLocked()
}

// Known implements fanout.Rules: how far in the log of Meta the definitions in use go at least, and who owns them.
func (c *Catalog) Known() uint64 { return c.known.Load() }

// CatchUp implements fanout.Rules.
func (c *Catalog) CatchUp(known uint64) error {
	if c.known.Load() >= known {
		return nil
	}
	if g := c.store.Replica(key.Meta); g == nil || g.Applied() < known || !c.publishing.TryLock() { // NB: who holds it may wait for others
		return failure.Errorf(failure.ErrUnavailable, "definitions that another node goes by are not in use here yet")
	}
	defer c.publishing.Unlock()
	return failure.OfStore(c.reloadLocked())
}

// readCurrentLocked compiles none of them.
func (c *Catalog) readCurrentLocked() error {
	known := uint64(0)
	if g := c.store.Replica(key.Meta); g != nil {
		known = g.Applied()
	}
	retired, err := c.loadRetirements()
	if err != nil {
		return err
	}
	c.retirements.Store(retired)
	// NB: read before what lists them: in a cluster both may change in between, and what is listed then is in the
	// store, whether it was among these or not.
	published, err := c.published(key.DefinitionsPrefix(nil))
	if err != nil {
		return fmt.Errorf("read published definitions: %w", err)
	}
	listed, err := loadVersions[uint64](c, listedSetting)
	if err != nil {
		return err
	}
	older, err := loadVersions[[]uint64](c, olderSetting)
	if err != nil {
		return err
	}
	single, err := loadVersions[uint64](c, publishedSetting)
	if err != nil {
		return err
	}
	owners, err := c.loadOwners()
	if err != nil {
		return err
	}
	c.owners.Store(&owners)
	c.origins.Clear()
	c.timeless.Clear()
	now := currentVersions{}
	for workflow, versions := range published {
		number, isPublished := single[workflow]
		isListed := isPublished
		if !isPublished {
			number, isListed = listed[workflow]
		}
		if !isListed {
			number = slices.Max(versions)
		}
		known, _ := c.versions.Load(versionKey{workflow, number})
		now[workflow] = &currentVersion{
			Definition: known.definition, version: number, listed: isListed, published: isPublished, older: older[workflow], pins: c.pinsLocked(versionKey{workflow, number}),
		}
	}
	c.current.Store(&now)
	c.known.Store(known)
	return nil
}

// Reload makes what the store has by now what is in use: in a cluster another node may have published it.
func (c *Catalog) Reload() error {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	return c.reloadLocked()
}

func (c *Catalog) reloadLocked() error {
	c.versions.Range(func(key versionKey, v version) bool {
		if errors.Is(v.err, persistence.ErrNotFound) { // it may have come
			c.versions.Delete(key)
		}
		return true
	})
	err := errors.Join(c.readCurrentLocked(), c.reloadIndexesLocked())
	for workflow, versions := range c.retirements.Load().Gone {
		for _, version := range versions {
			c.versions.Delete(versionKey{workflow, version})
		}
	}
	return err
}

// Concerns reports whether a row of Meta is of the catalog: when it changes in a cluster, Reload is due.
func Concerns(row key.Parts) bool {
	return row.Table == "definition" || row.Table == "setting" && slices.Contains([]string{listedSetting, olderSetting, publishedSetting, indexesSetting, ownersSetting, retirementsSetting}, row.Name)
}
