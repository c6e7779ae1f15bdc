package integrity

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
)

var (
	// ErrDamaged is returned by Check and by OpenPebble when the files are not those of a store that was closed or that
	// crashed: something acknowledged is missing or altered. The text names the file and the offset. Nothing was
	// changed on disk. The caller stops; a person restores from a backup.
	ErrDamaged = errors.New("store is damaged")

	// ErrCorrupt is returned by Close of a Recorder when the MANIFEST is not what was
	// written any more, and by the reads of package persistence.
	ErrCorrupt = errors.New("stored bytes are damaged")
)

// advice ends every message about damage. What is to be done depends on whose store it is.
const advice = "nothing was changed"

// Damaged is ErrDamaged about one file.
func Damaged(name, reason string) error {
	return fmt.Errorf("%w: %s: %s (%s)", ErrDamaged, name, reason, advice)
}

func damagedAt(name string, off int, reason string) error {
	return fmt.Errorf("%w: %s at byte %d: %s (%s)", ErrDamaged, name, off, reason, advice)
}

func damagedStore(reason string) error {
	return fmt.Errorf("%w: %s (%s)", ErrDamaged, reason, advice)
}

// openFault turns an error of Pebble about the files into ErrDamaged. What the
// operating system refuses is not damage and stays as it is.
func openFault(err error) error {
	for _, outside := range []error{
		fs.ErrPermission, syscall.EIO, syscall.ENOSPC, syscall.EROFS, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
	} {
		if errors.Is(err, outside) {
			return err
		}
	}
	reason, _, _ := strings.Cut(err.Error(), "\n") // Pebble lists every missing table
	return damagedStore(reason)
}

// OpenPebble opens a database. An error about the files, or a panic of Pebble over
// files that it does not understand, is ErrDamaged.
func OpenPebble(dir string, o *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			db, err = nil, damagedStore(fmt.Sprint(r))
		}
	}()
	db, err = pebble.Open(dir, o)
	if err != nil {
		return nil, openFault(err)
	}
	return db, nil
}
