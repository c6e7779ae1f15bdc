package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"troupe/actors/repository/bucket"
	"troupe/cmd/internal/cli"
)

// BackupOptions are where a server backs up its home, and how often.
type BackupOptions struct {
	To          string // empty: nowhere
	Every, Keep time.Duration
}

// EnsureDefaults fills in what is zero.
func (o *BackupOptions) EnsureDefaults() {
	o.Every = cmp.Or(o.Every, time.Hour)
	o.Keep = cmp.Or(o.Keep, 30*24*time.Hour)
}

func (c *Config) backupTable() []setting {
	return []setting{
		{"backup.to", cli.Text(&c.Backup.To), "", "folder, named from the home, or s3://BUCKET/PREFIX of the object store, into which the server backs up the home; empty: it does not"},
		{"backup.every", cli.Checked(cli.Duration(&c.Backup.Every), IsSessionTime), "", "pause between the beginnings of two backups, at least 1s"},
		{"backup.keep", cli.Duration(&c.Backup.Keep), "", "how long a backup is kept after the next one; 0: for good"},
	}
}

// BucketScheme begins the name of a bucket with backups: s3://BUCKET/PREFIX.
const BucketScheme = "s3://"

// BackupTo is the setting backup.to; a folder is named from the home.
func (c *Config) BackupTo() string {
	to := c.Backup.To
	if to == "" || filepath.IsAbs(to) || strings.HasPrefix(to, BucketScheme) {
		return to
	}
	return filepath.Join(c.Home, to)
}

// BackupBucket makes the client of a bucket with backups, in the object store of the repository.
func (c *Config) BackupBucket(to string) (*bucket.Objects, error) {
	o := c.bucket
	o.Bucket, o.Prefix, _ = strings.Cut(strings.TrimPrefix(to, BucketScheme), "/")
	b, err := bucket.OpenObjects(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", to, err)
	}
	return b, nil
}

// HasBucket says whether the files of the repository are in a bucket.
func (c *Config) HasBucket() bool { return c.bucket.Bucket != "" }
