package integrity

import (
	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/internal/file"
)

// Adopt makes a store that [Check] accepts of the files in dir, which Pebble has copied from an open database. The
// newest log was written to while it was copied, and a later block may have been read in a newer state than the one
// before it: Adopt cuts the log behind its last whole record. What was durable when the copy began stands before that.
func Adopt(fsys vfs.FS, dir string) error {
	logs, err := listLogs(fsys, dir)
	if err != nil {
		return err
	}
	if n := len(logs); n > 0 {
		name := logName(logs[n-1])
		data, err := file.Read(fsys, fsys.PathJoin(dir, name))
		if err != nil {
			return err
		}
		if err := file.Replace(fsys, dir, name, data[:scanLog(data, logs[n-1]).end]); err != nil {
			return err
		}
	}
	return Record(RecordOptions{FS: fsys, Dir: dir}).Close()
}
