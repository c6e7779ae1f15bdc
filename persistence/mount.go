package persistence

import (
	"errors"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// slowDiskMin is the shortest disk operation that is reported as slow.
const slowDiskMin = 3 * time.Second

// mount puts the watches around the file system.
func (s *Store) mount() {
	s.fs = s.options.FS
	if s.fs == nil {
		checked, closer := vfs.WithDiskHealthChecks(vfs.Default, slowDiskMin, nil, s.diskSlow)
		s.fs = checked
		s.undo = append(s.undo, closer.Close)
	}
	s.fs = vfs.OnDiskFull(s.fs, func() { s.diskFull("a write found no space") })
	s.fs = orderedFS{s.fs}
}

func (s *Store) diskSlow(info vfs.DiskSlowInfo) {
	s.metrics.slowDisk.Add(1)
	s.log.Warn().Str("path", info.Path).Dur("took", info.Duration).Msg("slow disk operation")
}

// orderedFS makes a new MANIFEST's directory entry durable before anything can
// refer to it. Pebble writes and syncs the file, then makes the marker that puts
// it in force, then syncs the directory: on a file system that may keep the
// second entry and lose the first, a crash in between leaves a store that does
// not open. It costs one sync for each MANIFEST, so a few a day.
type orderedFS struct{ vfs.FS }

// Unwrap returns the file system inside.
func (o orderedFS) Unwrap() vfs.FS { return o.FS }

// Create creates the file, and its entry durably if it is a MANIFEST.
func (o orderedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := o.FS.Create(name, category)
	if err != nil || !strings.HasPrefix(o.PathBase(name), "MANIFEST-") {
		return f, err
	}
	if err := syncDir(o.FS, o.PathDir(name)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
