package persistence

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// newNonce returns 128 random bits in hexadecimal digits.
func newNonce() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// holdFolder locks a folder itself. Pebble's lock is on the file LOCK, and ends
// where that file is removed: the next process makes a new one and locks that.
// A folder is there as long as what is in it, and has one lock under all of its
// names. File systems that lock no folders are worked with all the same; what a
// second process does there is noticed, see [owner].
func (s *Store) holdFolder(dir string) error {
	if s.options.FS != nil {
		return nil // not the operating system's files
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errors.Join(lockedFault(dir), f.Close())
	}
	if err != nil {
		s.log.Warn().Str("dir", dir).Err(err).Msg("this file system locks no folders; nothing but the file LOCK keeps a second process out")
	}
	s.undo = append(s.undo, f.Close)
	return nil
}

func lockedFault(dir string) error {
	return fmt.Errorf("%w: %s is locked; stop the other one, or give this one its own directory", ErrLocked, dir)
}

// owner knows by what the running store recognises its own files. A second
// process that came past the locks rewrites the witness when it opens, with a
// nonce of its own, and replaces the log. The first must end then: what it
// appends goes to a file that the other has removed.
type owner struct {
	nonce string // in every witness that this process writes
	// written is the witness as it was written last, nil before the first; tried is
	// the last try. A try that failed may have replaced the file all the same.
	written, tried []byte
	log            string // name of the newest log; "" while that is not known
	logID          fileID
	checked        time.Time // when everything was still its own
}

// fileID tells a file from another that took its name. It is zero on a file
// system that has no such numbers.
type fileID struct{ device, inode uint64 }

func idOf(info vfs.FileInfo) fileID {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}
	}
	return fileID{device: uint64(st.Dev), inode: st.Ino}
}

// check returns why the files are not this process's any more. What cannot be
// read for another reason is err, and says nothing.
func (o *owner) check(fsys vfs.FS, dir string) (foreign string, err error) {
	now := time.Now()
	if o.written != nil {
		data, err := readFile(fsys, fsys.PathJoin(dir, witnessName))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return witnessName + " was removed", nil
		case err != nil:
			return "", err
		case bytes.Equal(data, o.tried):
			o.written = o.tried // NB: the next try must not make it a stranger
		case !bytes.Equal(data, o.written):
			return witnessName + " was written by another process", nil
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
