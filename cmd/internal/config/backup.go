package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"troupe/actors/repository/bucket"
)

// BackupOptions are where a server backs up its home, and how often.
type BackupOptions struct {
	To          string // empty: nowhere
	Every, Keep time.Duration
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
