package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/rs/zerolog"

	"troupe/cmd/internal/homedir"
	"troupe/persistence"
)

// StoreOptions are those of every opening of the home's store.
func (c *Config) StoreOptions(log zerolog.Logger) persistence.Options {
	o := c.Store
	o.Log, o.IDFile = log, filepath.Join(c.Home, homedir.StoreIDFile)
	return o
}

// OpenStore opens the home's store. It is created only in a home that never had one.
func (c *Config) OpenStore(log zerolog.Logger) (*persistence.Store, error) {
	dir := homedir.Data(c.Home)
	if err := homedir.DemandFile(filepath.Join(c.Home, homedir.StoreIDFile)); err != nil {
		return nil, err
	}
	if c.IsNode() {
		return nil, c.ErrNeedsServer()
	}
	store, err := persistence.Open(dir, c.StoreOptions(log))
	if err != nil {
		return nil, c.WithAdvice(err)
	}
	return store, nil
}

// WithAdvice adds to an error about the home's store what to do.
func (c *Config) WithAdvice(err error) error {
	lost := errors.Is(err, persistence.ErrMissing)
	switch {
	case c.IsNode() && isOneOf(err, persistence.ErrMissing, persistence.ErrDamaged, persistence.ErrReplicaDamaged, persistence.ErrIncomplete, persistence.ErrOtherStore), lost && c.WasNode():
		return c.AdviceForNode(err)
	case errors.Is(err, persistence.ErrDamaged):
		return fmt.Errorf("%w. Restore the whole of %s from a backup", err, homedir.Data(c.Home))
	case lost:
		return fmt.Errorf("%w. Mount %s, or bring it back from a backup; if it is gone for good, `troupe store create --home %s` makes an empty one",
			err, homedir.Data(c.Home), c.Home)
	case errors.Is(err, persistence.ErrReplicated):
		return fmt.Errorf("%w: it is that of a node of a cluster, but %s, which says which one, is gone. Bring it back from a copy; else, if the node is the last one, `troupe cluster recover`",
			err, homedir.NodeFolder(c.Home))
	case errors.Is(err, persistence.ErrStandalone):
		return fmt.Errorf("%w: `troupe cluster init` was cut off here; run it once more on --home %s, and it goes on", err, c.Home)
	case errors.Is(err, persistence.ErrOtherStore):
		return fmt.Errorf("%w. Bring the right one back, or remove %s to take over the one that is there",
			err, filepath.Join(c.Home, homedir.StoreIDFile))
	}
	return err
}

func isOneOf(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}
