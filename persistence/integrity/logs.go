package integrity

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"

	"troupe/persistence/internal/file"
)

func logName(number uint64) string { return fmt.Sprintf("%06d.log", number) }

// listLogs returns the numbers of the logs in dir, oldest first.
func listLogs(fsys vfs.FS, dir string) ([]uint64, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return nil, err
	}
	var logs []uint64
	for _, name := range names {
		if n, _, ok := wal.ParseLogFilename(name); ok {
			logs = append(logs, uint64(n))
		}
	}
	slices.Sort(logs)
	return logs, nil
}

// emptyLogs gives back the space of logs that nobody needs any more. Pebble keeps some of them to write over them
// again, each with all the space that it was given in advance. They stay there, empty, because Pebble counts on their
// names; only the one that comes next keeps some. The newest log is never one of them.
func (r *Recorder) emptyLogs(logs []logSize) error {
	for i, l := range logs {
		if l.number >= r.minLog {
			continue
		}
		info, err := r.fs.Stat(r.fs.PathJoin(r.dir, logName(l.number)))
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 && (i > 0 || l.number == r.spare) {
			continue
		}
		if err == nil {
			err = r.emptyLog(l.number, i == 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// emptyLog puts an empty file in the place of a log, with some space when it is to
// be used next. NB: it does not cut the log: Pebble may give it its next name, and
// begin to write to it, at this moment, and cutting could hit what was written.
func (r *Recorder) emptyLog(number uint64, next bool) error {
	path := r.fs.PathJoin(r.dir, logName(number))
	f, err := r.fs.Create(path+file.TmpSuffix, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if next && f.Preallocate(0, r.options.SpareBytes) == nil { // else it is tried again with the next change
		r.spare = number
	}
	if err := f.Close(); err != nil {
		return err
	}
	return r.fs.Rename(path+file.TmpSuffix, path)
}

// observeLogs lists the logs. The newest gets its full size before anything is written to it: a log that grows as it is
// written can be cut short without a trace, one that has to have its size cannot.
func (r *Recorder) observeLogs(c *checkpoint) error {
	logs, err := listLogs(r.fs, r.dir)
	if err != nil {
		return err
	}
	sized := make(map[uint64]int64, len(r.sized))
	c.logs = nil
	for _, n := range logs {
		c.logs = append(c.logs, logSize{number: n, bytes: r.sized[n]})
		sized[n] = r.sized[n]
	}
	if r.tables != nil && len(c.logs) > 0 {
		newest := &c.logs[len(c.logs)-1]
		if newest.bytes == 0 {
			if err := r.sizeLog(newest.number); err != nil {
				return err
			}
			newest.bytes, sized[newest.number] = r.options.LogBytes, r.options.LogBytes
		}
		if err := r.ownLog(logName(newest.number)); err != nil {
			return err
		}
	}
	r.sized = sized
	return nil
}

// ownLog remembers the newest log.
func (r *Recorder) ownLog(name string) error {
	info, err := r.fs.Stat(r.fs.PathJoin(r.dir, name))
	if err != nil {
		return err
	}
	r.owner.log, r.owner.logID = name, idOf(info)
	return nil
}

// sizeLog makes a log at least logBytes long, without taking space on disk. The database reads zeros behind the last
// record as the end; it is used to them from logs that it uses again.
func (r *Recorder) sizeLog(number uint64) error {
	f, err := r.fs.OpenReadWrite(r.fs.PathJoin(r.dir, logName(number)), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read or synced before; nothing is lost with it
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < r.options.LogBytes {
		if _, err := f.WriteAt([]byte{0}, r.options.LogBytes-1); err != nil {
			return err
		}
	}
	return f.Sync()
}
