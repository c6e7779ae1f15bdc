package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ids are the id of the store and the one that Options.IDFile demands. Each is
// empty when there is none.
type ids struct{ own, wanted string }

// wantedID is the id that Options.IDFile demands.
func (s *Store) wantedID() (string, error) {
	if s.options.IDFile == "" {
		return "", nil
	}
	return s.folder().WantedID(s.options.IDFile)
}

// checkID compares the store with what belongs here. It changes nothing.
func (s *Store) checkID() error {
	var err error
	if s.ids.own, err = s.folder().ID(); err != nil {
		return err
	}
	if s.ids.wanted == "" || s.ids.wanted == s.ids.own {
		return nil
	}
	is := "has no id"
	if s.ids.own != "" {
		is = "is " + s.ids.own
	}
	return fmt.Errorf("%w: %s %s, and %s says that %s belongs here", ErrOtherStore, s.dir, is, s.options.IDFile, s.ids.wanted)
}

// missing is the error about a store that belongs here and is not there.
func (s *Store) missing() error {
	return fmt.Errorf("%w: %s holds none, and %s says that %s belongs here; nothing was changed",
		ErrMissing, s.dir, s.options.IDFile, s.ids.wanted)
}

// recordID writes the id of this store into Options.IDFile, when there is no such
// file yet. A store without an id gets one first. After a crash between the two the
// store has an id and the file is missing: the next Open writes it. A failure is
// logged, and the store works without the file.
func (s *Store) recordID() {
	path := s.options.IDFile
	if path == "" || s.ids.wanted != "" {
		return
	}
	err := s.assignID()
	if err == nil {
		err = s.folder().SetWantedID(path, s.ids.own)
	}
	if err != nil {
		s.log.Warn().Str("file", path).Err(err).Msg("the id of the store cannot be kept there: that the store is missing will not be noticed")
		return
	}
	s.log.Info().Str("file", path).Str("id", s.ids.own).Msg("the home now demands this store")
}

// assignID gives an id to a store that has none.
func (s *Store) assignID() error {
	if s.ids.own != "" {
		return nil
	}
	id, err := s.folder().SetNewID()
	if err != nil {
		return err
	}
	s.ids.own = id
	return nil
}

// removeIDFile removes Options.IDFile, so that another store may be made.
func (s *Store) removeIDFile() error {
	if s.ids.wanted == "" {
		return nil
	}
	s.ids.wanted = ""
	return s.folder().RemoveWantedID(s.options.IDFile)
}

// CheckStoreID says whether the store in dir is the one that a file demands, as Open does
// with Options.IDFile. It opens no store, and locks and changes nothing, so it may be
// called while another process has the store open. It returns nil when they fit, or
// the file demands nothing; ErrMissing or ErrOtherStore when they do not.
func CheckStoreID(dir, idFile string) error {
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
