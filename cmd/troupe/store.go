package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"troupe/gateway/admin"
	"troupe/persistence"
)

// askMax is how long another server may take to accept a connection.
const askMax = 5 * time.Second

// aloneAt refuses a home on which another server runs: it would answer at the
// socket. A socket that nobody listens at is what a killed server left. What
// cannot be asked is left to the locks of the store.
func aloneAt(ctx context.Context, home string) error {
	ctx, cancel := context.WithTimeout(ctx, askMax)
	defer cancel()
	socket := filepath.Join(home, adminSocket)
	if _, err := admin.Dial(ctx, socket); err != nil {
		return nil
	}
	return fmt.Errorf("%w: a server answers at %s; stop it first, or give this one a --home of its own", persistence.ErrLocked, socket)
}

// storeOptions are those of every opening of the home's store.
func storeOptions(c *config, log zerolog.Logger) persistence.Options {
	o := c.store
	o.Log, o.IDFile = log, filepath.Join(c.home, storeIDFile)
	return o
}

// openStore opens the home's store. It is created only in a home that never had
// one.
func openStore(c *config, log zerolog.Logger) (*persistence.Store, error) {
	dir := filepath.Join(c.home, dataFolder)
	if err := wantFile(filepath.Join(c.home, storeIDFile)); err != nil {
		return nil, err
	}
	if c.isNode() {
		return nil, c.errNeedsServer()
	}
	store, err := persistence.Open(dir, storeOptions(c, log))
	if err != nil {
		return nil, withAdvice(c, err)
	}
	return store, nil
}

// withAdvice adds to an error about the home's store what to do.
func withAdvice(c *config, err error) error {
	lost := errors.Is(err, persistence.ErrMissing)
	switch {
	case c.isNode() && isOneOf(err, persistence.ErrMissing, persistence.ErrDamaged, persistence.ErrReplicaDamaged, persistence.ErrIncomplete, persistence.ErrOtherStore), lost && c.wasNode():
		return c.adviceForNode(err)
	case errors.Is(err, persistence.ErrDamaged):
		return fmt.Errorf("%w. Restore the whole of %s from a backup", err, filepath.Join(c.home, dataFolder))
	case lost:
		return fmt.Errorf("%w. Mount %s, or bring it back from a backup; if it is gone for good, `troupe store create --home %s` makes an empty one",
			err, filepath.Join(c.home, dataFolder), c.home)
	case errors.Is(err, persistence.ErrReplicated):
		return fmt.Errorf("%w: it is that of a node of a cluster, but %s, which says which one, is gone. Bring it back from a copy; else, if the node is the last one, `troupe cluster recover`",
			err, nodeFolder(c.home))
	case errors.Is(err, persistence.ErrAlone):
		return fmt.Errorf("%w: `troupe cluster init` was cut off here; run it once more on --home %s, and it goes on", err, c.home)
	case errors.Is(err, persistence.ErrOtherStore):
		return fmt.Errorf("%w. Bring the right one back, or remove %s to take over the one that is there",
			err, filepath.Join(c.home, storeIDFile))
	}
	return err
}

func isOneOf(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// ignored are the lines of a .gitignore that serve makes: what is state, and no
// text file of a home.
var ignored = []string{"/" + dataFolder + "/", "/" + adminSocket, "/" + storeIDFile}

// ignoreStoreID keeps the store's id out of git, so that a clone of the text
// files is a home that never had a store. A .gitignore that is there gets one
// line more, when it lacks it.
func ignoreStoreID(home string) error {
	path := filepath.Join(home, gitIgnoreFile)
	if err := wantFile(path); err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	add := strings.Join(ignored, "\n") + "\n"
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		for line := range strings.Lines(string(text)) {
			if strings.TrimPrefix(strings.TrimSpace(line), "/") == storeIDFile {
				return nil
			}
		}
		add = "/" + storeIDFile + "\n"
		if len(text) > 0 && text[len(text)-1] != '\n' {
			add = "\n" + add
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(add)
	return errors.Join(err, f.Close())
}

func newStore() *cobra.Command {
	return group("store", "Look after the store of a home", "  troupe store create --home ./troupe-home", newStoreCreate())
}

func newStoreCreate() *cobra.Command {
	c := newConfig()
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make an empty store in a home whose store is gone for good",
		Long: "Make an empty store in a home. The first start does that by itself. Every later start\n" +
			"demands the same store, so that a disk that is not mounted is not mistaken for a new\n" +
			"home. Use this command only for a store that is gone for good. It never touches a\n" +
			"store that is there.",
		Example: "  troupe store create --home ./troupe-home",
		Args:    arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.load(); err != nil {
				return err
			}
			c.logLevel = "warn" // this is a command, not the server
			if c.isNode() {
				return c.adviceForNode(fmt.Errorf("%s is a node of a cluster; nothing was changed", c.home))
			}
			if err := wantHome(c.home); err != nil {
				return err
			}
			if err := aloneAt(cmd.Context(), c.home); err != nil {
				return err
			}
			if err := wantFile(filepath.Join(c.home, storeIDFile)); err != nil {
				return err
			}
			dir := filepath.Join(c.home, dataFolder)
			if err := persistence.Create(dir, storeOptions(c, c.logger())); err != nil {
				return err
			}
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s holds an empty store now\n", dir)
			return nil
		},
	}
	cmd.Flags().AddFlag(c.flags.Lookup("home"))
	cmd.Flags().AddFlag(c.flags.Lookup("shards"))
	return cmd
}
