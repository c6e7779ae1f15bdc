// Package backup has the commands that back up and restore a home, and the part of a server that backs it up in
// intervals. It joins persistence/backup, which has the layout of backups, with a home, its settings, and the server
// that runs on it.
package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"troupe/actors/failure"
	"troupe/cmd/internal/build"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/admin"
	"troupe/persistence"
	"troupe/persistence/backup"
)

// errCluster is the error of who wants to back up a node of a cluster.
var errCluster = failure.Refuse(failure.ErrConflict, "a node of a cluster cannot be backed up yet: its shards are on several nodes, which keep copies of each other's")

// Checkpoint is that of a store that is open.
func Checkpoint(store *persistence.Store) (dir string, err error) {
	dir, err = store.Checkpoint()
	if errors.Is(err, persistence.ErrReplicated) {
		err = errCluster
	}
	return dir, err
}

// openTarget opens what --to, the setting backup.to or a source names: s3://BUCKET/PREFIX, or a folder.
func openTarget(c *config.Config, to string) (backup.Target, func(), error) {
	if isBucket(to) {
		b, err := c.BackupBucket(to)
		if err != nil {
			return nil, nil, err
		}
		return b, func() { _ = b.Close() }, nil // it only had connections
	}
	return backup.Folder(filepath.Clean(to)), func() {}, nil
}

func isBucket(to string) bool { return strings.HasPrefix(to, config.BucketScheme) }

// openSource returns the backup of a moment: the zero time is the newest.
func openSource(ctx context.Context, c *config.Config, from string, at time.Time) (*backup.Backup, error) {
	if !isBucket(from) {
		info, err := os.Stat(from)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			b, err := backup.OpenFile(from)
			if err == nil && !at.IsZero() && at.Before(b.Moment) {
				// NB: rounded up, so that it can be used.
				err = fmt.Errorf("%w: %s has one moment: use --at %s, or none", backup.ErrNoBackup, from, b.Moment.Add(time.Second-1).UTC().Format(time.RFC3339))
			}
			return b, err
		}
	}
	t, done, err := openTarget(c, from)
	if err != nil {
		return nil, err
	}
	defer done() // NB: requests open connections again
	return backup.Find(ctx, t, at)
}

// newRun is a run of the home, through the server that runs on it or on its store.
func newRun(c *config.Config, repository bool) (*backup.Run, error) {
	if repository && c.HasBucket() {
		return nil, fmt.Errorf("the files of the repository are in a bucket (repository.bucket), which is not in the home: leave --with-repository out")
	}
	return &backup.Run{
		Home: c.Home, Repository: repository, Without: c.ExportFolders(), Program: build.This().Version,
		Checkpoint: func(ctx context.Context) (string, func(), error) { return checkpointOf(ctx, c) },
	}, nil
}

func checkpointOf(ctx context.Context, c *config.Config) (dir string, done func(), err error) {
	client, err := homedir.Dial(ctx, c.Home)
	if err == nil {
		folder, _, done, err := client.Checkpoint(ctx)
		if err != nil {
			return "", nil, err
		}
		return filepath.Join(homedir.Data(c.Home), folder), done, nil
	}
	if !errors.Is(err, admin.ErrNoServer) {
		return "", nil, err
	}
	if err := homedir.Demand(c.Home); err != nil {
		return "", nil, err
	}
	if c.IsNode() {
		return "", nil, errCluster
	}
	store, err := c.OpenStore(c.Logger())
	if errors.Is(err, persistence.ErrLocked) {
		err = fmt.Errorf("%w, which does not answer at %s: it is starting or stopping, so try again", err, homedir.AdminSocket)
	}
	if err != nil {
		return "", nil, err
	}
	dir, err = Checkpoint(store)
	if err != nil {
		return "", nil, errors.Join(err, store.Close())
	}
	return dir, func() {
		if err := errors.Join(os.RemoveAll(dir), store.Close()); err != nil {
			log := c.Logger()
			log.Warn().Err(err).Msg("the store was not closed in order")
		}
	}, nil
}

// checkHome refuses a folder that is not a home, before anything is asked or written.
func checkHome(c *config.Config) error {
	if err := homedir.Demand(c.Home); err != nil {
		return err
	}
	if c.IsNode() {
		return errCluster
	}
	if !homedir.Exists(homedir.Data(c.Home)) {
		return fmt.Errorf("%s has no store yet: there is nothing to back up but its text files", c.Home)
	}
	return nil
}
