package persistence

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// holdFolder locks a folder itself. Pebble's lock is on the file LOCK, and ends
// where that file is removed: the next process makes a new one and locks that.
// A folder is there as long as what is in it, and has one lock under all of its
// names. File systems that lock no folders are worked with all the same; what a
// second process does there is noticed by the integrity recorder.
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
