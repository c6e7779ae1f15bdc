package persistence

import (
	"errors"
	"strings"
	"syscall"
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
	s.fs = orderedFS{FS: s.fs, dir: s.dir, freeBytesMin: s.options.FreeBytesMin, kept: &s.kept, stop: s.stop}
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
//
// It also decides what gets room in advance: a log, which Pebble asks for, and
// the MANIFEST. What has its room cannot fail when others fill the disk, and a
// failed write to either ends the process. A log gets none when the disk would
// count as full with it. And it keeps tables that a generation before may read.
type orderedFS struct {
	vfs.FS
	dir          string
	freeBytesMin int64
	kept         *keptTables
	stop         <-chan struct{} // closed with the store
}

// manifestReserve is the room that a MANIFEST gets in advance: some thousand
// changes.
const manifestReserve = 512 << 10

// Unwrap returns the file system inside.
func (o orderedFS) Unwrap() vfs.FS { return o.FS }

// Create creates the file, and its entry durably if it is a MANIFEST.
func (o orderedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := o.FS.Create(name, category)
	if err == nil && strings.HasSuffix(name, ".log") {
		return &logFile{File: f, fs: o}, nil
	}
	if err != nil || !strings.HasPrefix(o.PathBase(name), "MANIFEST-") {
		return f, err
	}
	_, _ = o.reserve(f, 0, manifestReserve) // without it works as well, while there is room
	if err := syncDir(o.FS, o.PathDir(name)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Remove removes the file, unless it is a table that somebody may still read.
func (o orderedFS) Remove(name string) error {
	if o.kept.keep(name, o.PathBase(name)) {
		return nil
	}
	return o.FS.Remove(name)
}

// ReuseForWrite gives an old log its next name.
func (o orderedFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := o.FS.ReuseForWrite(oldname, newname, category)
	if err != nil {
		return nil, err
	}
	return &logFile{File: f, fs: o}, nil
}

// reserve gives a file room in advance, unless the disk would count as full
// with it. It says whether it did.
func (o orderedFS) reserve(f vfs.File, offset, length int64) (bool, error) {
	if free := freeBytes(o.FS, o.dir); o.freeBytesMin >= 0 && free >= 0 && free-length < o.freeBytesMin {
		return false, nil
	}
	err := f.Preallocate(offset, length)
	return err == nil, err
}

// logAhead is how much room a log has at least, behind what is written. Whoever
// is on the way in when the disk becomes full fits into it.
const logAhead = 4 << 20

// logFile is a log, written by one goroutine.
type logFile struct {
	vfs.File
	fs       orderedFS
	whole    bool // it has all the room that it will need
	written  int64
	reserved int64 // the end of the room that it has
}

// Preallocate gives the log all the room that it will need, when there is enough.
func (f *logFile) Preallocate(offset, length int64) error {
	ok, err := f.fs.reserve(f.File, offset, length)
	f.whole = ok
	return err
}

// Write writes the next bytes. A log that did not get all of its room gets some
// every few megabytes. When there is none, the store is shut, see
// [Store.diskFull], while the log still has what it got before.
//
// A write that finds no room waits for some. Nothing is acknowledged meanwhile,
// and the watchdog tells those who wait that the outcome is unknown. That is no
// repetition of a failed sync: what write(2) refuses is not in the file.
func (f *logFile) Write(p []byte) (int, error) {
	if end := f.written + int64(len(p)) + logAhead; !f.whole && end > f.reserved {
		_ = f.File.Preallocate(f.reserved, end+logAhead-f.reserved) // what it lacks shows when it is written
		f.reserved = end + logAhead
	}
	n, err := f.File.Write(p)
	for errors.Is(err, syscall.ENOSPC) && f.fs.pause() {
		var more int
		more, err = f.File.Write(p[n:])
		n += more
	}
	f.written += int64(n)
	return n, err
}

// roomInterval is how often a write that found no room is tried again.
const roomInterval = 50 * time.Millisecond

// pause waits for roomInterval. It is false when the store is closed.
func (o orderedFS) pause() bool {
	timer := time.NewTimer(roomInterval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-o.stop:
		return false
	}
}
