package persistence

import (
	"errors"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// CheckID says whether the store in dir is the one that a file demands, as Open does
// with Options.IDFile. It opens no store, and locks and changes nothing, so it may be
// called while another process has the store open. It returns nil when they fit, or
// the file demands nothing; ErrMissing or ErrOtherStore when they do not.
func CheckID(dir, idFile string) error {
	s := &Store{dir: dir, fs: vfs.Default, options: Options{IDFile: idFile}}
	var err error
	if s.ids.wanted, err = s.wantedID(); err != nil || s.ids.wanted == "" {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) == 0 {
		return s.missing()
	}
	return s.checkID()
}
