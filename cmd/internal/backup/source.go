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

	"troupe/actors/home"
	"troupe/cmd/internal/build"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/homedir"
	"troupe/gateway/admin"
	"troupe/persistence"
	"troupe/persistence/backup"
)

// errCluster is the error of who wants to back up a node of a cluster that does not run.
var errCluster = errors.New("the home is a node of a cluster, of which its server asks the other nodes for their shards: start it, or back up a node that runs")

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
	run := &backup.Run{
		Home: c.Home, Needs: home.IdentityFile, Repository: repository, Without: c.ExportFolders(), Program: build.This().Version,
		Checkpoint: func(ctx context.Context) (string, func(), error) { return checkpointOf(ctx, c) },
	}
	if c.IsNode() {
		run.Text = publishedText
	}
	return run, nil
}

// publishedText returns the text files that a cluster has published, in the place of those that a node may have.
func publishedText(dir string, own []string) (text map[string][]byte, err error) {
	store, err := persistence.Open(dir, persistence.Options{ReadOnly: true, CacheBytes: 1 << 20, VerifyBytesMax: -1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	text, err = home.PublishedFiles(store)
	for _, path := range own {
		if _, published := text[path]; !published && home.IsPublishable(path) {
			text[path] = nil
		}
	}
	return text, err
}

// startMax is how long a server may take from when it opens the store until it answers.
const startMax = 30 * time.Second

// checkpointOf asks the server that runs on the home, also one that is starting, or opens the store where none does.
func checkpointOf(ctx context.Context, c *config.Config) (dir string, done func(), err error) {
	err = homedir.AwaitStore(ctx, startMax, func(error) {}, func() (err error) {
		dir, done, err = checkpointNow(ctx, c)
		return err
	})
	return dir, done, err
}

func checkpointNow(ctx context.Context, c *config.Config) (dir string, done func(), err error) {
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
	dir, err = store.Checkpoint()
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
	if !homedir.Exists(homedir.Data(c.Home)) {
		return fmt.Errorf("%s has no store yet: there is nothing to back up but its text files", c.Home)
	}
	return nil
}
