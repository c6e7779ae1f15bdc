package disk

import (
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/internal/file"
)

// Files is the file system that a store works on. It makes a new MANIFEST's directory entry durable before anything can
// refer to it. Pebble writes and syncs the file, then makes the marker that puts it in force, then syncs the directory:
// on a file system that may keep the second entry and lose the first, a crash in between leaves a store that does not
// open. It costs one sync for each MANIFEST, so a few a day.
//
// It also reserves disk space for logs, when Pebble asks for it, and for the MANIFEST. A failed write to either ends
// the process; a write into reserved space does not fail when others fill the disk. A log gets no reservation that
// would make the disk count as full. And it keeps the tables that readers of the previous generation need.
type Files struct {
	vfs.FS
	Dir          string
	FreeBytesMin int64
	Kept         *Kept
	// Fresh: no log is written over an old one, so that nothing of the old one stays behind the new end.
	Fresh *atomic.Bool
	Stop  <-chan struct{} // closed with the store
}

// manifestReserve is the space that is reserved for a MANIFEST: some thousand changes.
const manifestReserve = 512 << 10

// Unwrap returns the file system inside.
func (o Files) Unwrap() vfs.FS { return o.FS }

// Create creates the file, and its entry durably if it is a MANIFEST.
func (o Files) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := o.FS.Create(name, category)
	if err == nil && strings.HasSuffix(name, ".log") {
		return &logFile{File: f, fs: o}, nil
	}
	if err != nil || !strings.HasPrefix(o.PathBase(name), "MANIFEST-") {
		return f, err
	}
	_, _ = o.reserve(f, 0, manifestReserve) // it works without, while there is space
	if err := file.SyncDir(o.FS, o.PathDir(name)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Remove removes the file, unless it is a table that a reader still needs.
func (o Files) Remove(name string) error {
	if o.Kept.keep(name, o.PathBase(name)) {
		return nil
	}
	return o.FS.Remove(name)
}

// ReuseForWrite gives an old log its next name.
func (o Files) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if o.Fresh.Load() {
		f, err := o.Create(newname, category)
		if rerr := o.FS.Remove(oldname); err == nil && rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(rerr, f.Close())
		}
		return f, err
	}
	f, err := o.FS.ReuseForWrite(oldname, newname, category)
	if err != nil {
		return nil, err
	}
	return &logFile{File: f, fs: o}, nil
}

// reserve reserves space for a file, unless the disk would count as full then or have no
// room for the tables that take the content of a log. It reports whether it did.
func (o Files) reserve(f vfs.File, offset, length int64) (bool, error) {
	if free := FreeBytes(o.FS, o.Dir); o.FreeBytesMin >= 0 && free >= 0 && free-2*length < o.FreeBytesMin {
		return false, nil
	}
	err := f.Preallocate(offset, length)
	return err == nil, err
}

// LogAhead is the least space that is reserved behind the end of a log. Commits
// that are running when the disk becomes full fit into it.
const LogAhead = 4 << 20

// logFile is a log, written by one goroutine.
type logFile struct {
	vfs.File
	fs       Files
	whole    bool // space for the whole log is reserved
	written  int64
	reserved int64 // where the reserved space ends
}

// Preallocate reserves space for the whole log, when there is enough.
func (f *logFile) Preallocate(offset, length int64) error {
	ok, err := f.fs.reserve(f.File, offset, length)
	f.whole = ok
	return err
}

// Write writes the next bytes. A log without space for all of it gets some every
// few megabytes. When that fails, the store accepts no more writes while the log still has the space that it got before.
//
// A write that finds no space waits for some. Nothing is acknowledged meanwhile, and the watchdog answers waiters with
// ErrOutcomeUnknown. This does not repeat a failed sync: what write(2) refuses is not in the file
// (persistence/PROMISES.md, "P3").
func (f *logFile) Write(p []byte) (int, error) {
	if end := f.written + int64(len(p)) + LogAhead; !f.whole && end > f.reserved {
		_ = f.File.Preallocate(f.reserved, end+LogAhead-f.reserved) // what it lacks shows when it is written
		f.reserved = end + LogAhead
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

// roomInterval is how often a write that found no space is tried again.
const roomInterval = 50 * time.Millisecond

// pause waits for roomInterval. It is false when the store is closed.
func (o Files) pause() bool {
	timer := time.NewTimer(roomInterval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-o.Stop:
		return false
	}
}
