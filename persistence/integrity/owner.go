package integrity

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/internal/file"
)

// owner knows by what the running store recognises its own files. A second process that came past the locks rewrites
// the checkpoint when it opens, with a random text of its own, and replaces the log. The first must end then: what it
// appends goes to a file that the other has removed.
type owner struct {
	nonce string // random, in every checkpoint that this process writes
	// written is the checkpoint as it was written last, nil before the first; tried is
	// the last try. A try that failed may have replaced the file all the same.
	written, tried []byte
	log            string // name of the newest log; "" while that is not known
	logID          fileID
	checked        time.Time // when everything was still its own
}

// fileID tells a file from another that took its name. It is zero on a file system that has no such numbers.
type fileID struct{ device, inode uint64 }

func idOf(info vfs.FileInfo) fileID {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}
	}
	return fileID{device: uint64(st.Dev), inode: st.Ino}
}

// check returns why the files are not this process's any more. What cannot be
// read for another reason is err, and tells nothing.
func (o *owner) check(fsys vfs.FS, dir string) (foreign string, err error) {
	now := time.Now()
	if o.written != nil {
		data, err := file.Read(fsys, fsys.PathJoin(dir, CheckpointName))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return CheckpointName + " was removed", nil
		case err != nil:
			return "", err
		case bytes.Equal(data, o.tried):
			o.written = o.tried // NB: the next try must not take it for a foreign one
		case !bytes.Equal(data, o.written):
			return CheckpointName + " was written by another process", nil
		}
	}
	if o.log != "" {
		info, err := fsys.Stat(fsys.PathJoin(dir, o.log))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return o.log + " was removed", nil
		case err != nil:
			return "", err
		case idOf(info) != o.logID:
			return o.log + " was replaced", nil
		}
	}
	o.checked = now
	return "", nil
}

// reason is what the log says when the files belong to somebody else.
func (o *owner) reason(dir, foreign string) string {
	return fmt.Sprintf("%s is not this process's any more: %s. Another process has opened the store, or somebody changed its files; "+
		"what was acknowledged since %s may be missing there", dir, foreign, o.checked.Format(time.RFC3339Nano))
}
