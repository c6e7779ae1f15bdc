package disk

import (
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"
)

// Bytes adds up the files of a folder and those below it. What Pebble counts leaves out how far its logs are laid out
// ahead, which is most of a small store. Files that go meanwhile count as nothing.
func Bytes(fs vfs.FS, dir string) (size uint64) {
	names, err := fs.List(dir)
	if err != nil {
		return 0
	}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		switch {
		case err != nil:
		case info.IsDir():
			size += Bytes(fs, path)
		default:
			size += uint64(max(info.Size(), 0))
		}
	}
	return size
}

// FreeBytes asks the file system, and returns -1 when it does not say.
func FreeBytes(fs vfs.FS, dir string) int64 {
	usage, err := fs.GetDiskUsage(dir)
	if err != nil {
		return -1
	}
	return int64(min(usage.AvailBytes, 1<<62))
}

// RemoveLogs removes the logs before minLog, as Pebble does once it is open for writing: all of their records are in
// tables.
func (f Folder) RemoveLogs(minLog uint64) error {
	names, err := f.FS.List(f.Dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if n, _, ok := wal.ParseLogFilename(name); ok && uint64(n) < minLog {
			if err := f.FS.Remove(f.FS.PathJoin(f.Dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}
