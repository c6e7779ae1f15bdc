package persistence

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/file"
)

// idName is the file that tells a store from every other. It is written when the
// store is created, and when a store that has lost it is opened with
// Options.IDFile. That file holds the same text:
//
//	troupe store id
//	id 5f0c…
//	crc 1c291ca3
const idName = "ID"

const idTitle = "troupe store id\nid "

func encodeID(id string) []byte { return file.Seal([]byte(idTitle + id + "\n")) }

func parseID(data []byte) (string, error) {
	if len(data) == 0 {
		return "", errors.New("it is empty")
	}
	text, ok := file.Unseal(data)
	if !ok {
		return "", errors.New("its checksum does not fit")
	}
	id, ok := strings.CutPrefix(strings.TrimSuffix(string(text), "\n"), idTitle)
	if !ok || id == "" || strings.ContainsAny(id, " \n") {
		return "", errors.New("it does not hold the id of a store")
	}
	return id, nil
}

// ids are the id of the store and the one that Options.IDFile demands. Each is
// empty when there is none.
type ids struct{ own, wanted string }

// wantedID reads Options.IDFile.
func (s *Store) wantedID() (string, error) {
	path := s.options.IDFile
	if path == "" {
		return "", nil
	}
	data, err := file.Read(s.fs, path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	id, err := parseID(data)
	if err != nil {
		return "", fmt.Errorf("%s: %w: it says which store belongs here; restore it, or remove it, and the store in %s "+
			"is taken for the right one", path, err, s.dir)
	}
	return id, nil
}

// checkID compares the store with what belongs here. It changes nothing.
func (s *Store) checkID() error {
	data, err := file.Read(s.fs, s.fs.PathJoin(s.dir, idName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if s.ids.own, err = parseID(data); err != nil {
			return integrity.Damaged(idName, err.Error())
		}
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
		err = file.Replace(s.fs, s.fs.PathDir(path), s.fs.PathBase(path), encodeID(s.ids.own))
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
	id := newID()
	if err := file.Replace(s.fs, s.dir, idName, encodeID(id)); err != nil {
		return err
	}
	s.ids.own = id
	return nil
}

// newID returns 128 random bits in hexadecimal digits.
func newID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// removeIDFile removes Options.IDFile, so that another store may be made.
func (s *Store) removeIDFile() error {
	if s.ids.wanted == "" {
		return nil
	}
	if err := s.fs.Remove(s.options.IDFile); err != nil {
		return err
	}
	s.ids.wanted = ""
	return file.SyncDir(s.fs, s.fs.PathDir(s.options.IDFile))
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
