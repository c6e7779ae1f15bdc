package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"troupe/actors/home"
	"troupe/actors/repository/bucket"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/homedir"
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
		{"backup.to", cli.Checked(cli.Text(&c.Backup.To), CheckBackupTo), "", "folder, named from the home, or s3://BUCKET/PREFIX of the object store, into which the server backs up the home; empty: it does not"},
		{"backup.every", cli.Checked(cli.Duration(&c.Backup.Every), IsSessionTime), "", "pause between the beginnings of two backups, at least 1s"},
		{"backup.keep", cli.Duration(&c.Backup.Keep), "", "how long a backup is kept after the next one; 0: for good"},
	}
}

// BucketScheme begins the name of a bucket with backups: s3://BUCKET/PREFIX.
const BucketScheme = "s3://"

// urlScheme begins what is written like a URL. A folder of such a name is written ./s3:/x.
var urlScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:/+`)

// isFiles says whether a target is a folder or a bucket.
func isFiles(to string) bool {
	name, inBucket := strings.CutPrefix(to, BucketScheme)
	return !urlScheme.MatchString(to) || inBucket && name != "" && name[0] != '/'
}

// CheckBackupTo refuses a URL that is not of a bucket: it would be the name of a folder.
func CheckBackupTo(to string) error {
	if isFiles(to) {
		return nil
	}
	return fmt.Errorf("%s is not known; it is a folder, or s3://BUCKET/PREFIX", urlScheme.FindString(to))
}

// ownFolders are those of a home that it needs for itself.
var ownFolders = []string{homedir.DataFolder, home.WorkflowsFolder, home.FormsFolder, home.ChecklistsFolder, home.SchemasFolder, home.TestsFolder}

// checkFolder refuses a folder whose files a backup would miss, or take for others: the home, one around it, or one that it needs.
func (c *Config) checkFolder(to string) error {
	dir, err := filepath.Abs(c.Home)
	if err != nil {
		return err
	}
	target, err := filepath.Abs(c.inHome(to))
	if err != nil {
		return err
	}
	for _, pair := range [][2]string{{dir, target}, {followed(dir), followed(target)}} {
		if out, err := filepath.Rel(pair[1], pair[0]); err == nil && filepath.IsLocal(out) {
			return fmt.Errorf("%s has the home in it: use a folder that has nothing else", to)
		}
		in, err := filepath.Rel(pair[0], pair[1])
		first, _, _ := strings.Cut(in, string(filepath.Separator))
		if err == nil && slices.Contains(ownFolders, first) {
			return fmt.Errorf("%s is in %s, which the home needs for itself: use a folder that has nothing else", to, first)
		}
	}
	return nil
}

// followed is where a path leads, also if its end is not there yet.
func followed(path string) string {
	if end, err := filepath.EvalSymlinks(path); err == nil || path == filepath.Dir(path) {
		return end
	}
	return filepath.Join(followed(filepath.Dir(path)), filepath.Base(path))
}

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
