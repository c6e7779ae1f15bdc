package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
)

// beginEpochLocked returns the epoch of Meta to write in, when all that was published before is here and in use.
func (c *Catalog) beginEpochLocked() (epoch uint64, err error) {
	epoch = c.store.Epoch(key.Meta)
	switch {
	case c.store.Alone():
		return epoch, nil
	case epoch == 0:
		return 0, failure.Elsewhere(uint16(key.Meta))
	}
	if err := c.store.AwaitLed(context.Background(), key.Meta, epoch); err != nil {
		return 0, failure.OfStore(err)
	}
	return epoch, c.reloadLocked()
}

// None is compiled for it.
func (c *Catalog) readCurrentLocked() error {
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
			Definition: known.Definition, version: number, listed: isListed, published: isPublished, older: older[workflow], pins: c.pinsLocked(versionKey{workflow, number}),
		}
	}
	c.current.Store(&now)
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
