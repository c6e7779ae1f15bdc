package disk

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/file"
)

// IDName is the file that tells a store from every other. It is written when the
// store is created, and when a store that has lost it is opened with
// Options.IDFile. That file holds the same text:
//
//	troupe store id
//	id 5f0c…
//	crc 1c291ca3
const IDName = "ID"

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

// ID is the id of the store in the folder; "" when it has none.
func (f Folder) ID() (string, error) {
	id, err := readID(f.FS, f.FS.PathJoin(f.Dir, IDName))
	if e := (*idFault)(nil); errors.As(err, &e) {
		return "", integrity.Damaged(IDName, e.Error())
	}
	return id, err
}

// SetNewID gives the store an id that no other has.
func (f Folder) SetNewID() (string, error) {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	id := hex.EncodeToString(b)
	return id, file.Replace(f.FS, f.Dir, IDName, encodeID(id))
}

// WantedID is the id that a file outside the folder demands; "" when there is none.
func (f Folder) WantedID(path string) (string, error) {
	id, err := readID(f.FS, path)
	if e := (*idFault)(nil); errors.As(err, &e) {
		return "", fmt.Errorf("%s: %w: it says which store belongs here; restore it, or remove it, and the store in %s "+
			"is taken for the right one", path, err, f.Dir)
	}
	return id, err
}

// SetWantedID makes the file outside the folder demand a store.
func (f Folder) SetWantedID(path, id string) error {
	return file.Replace(f.FS, f.FS.PathDir(path), f.FS.PathBase(path), encodeID(id))
}

// RemoveWantedID removes the file outside the folder, so that another store may be made.
func (f Folder) RemoveWantedID(path string) error {
	if err := f.FS.Remove(path); err != nil {
		return err
	}
	return file.SyncDir(f.FS, f.FS.PathDir(path))
}

// idFault is why a file is none of an id.
type idFault struct{ error }

func readID(fsys vfs.FS, path string) (string, error) {
	data, err := file.Read(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	id, err := parseID(data)
	if err != nil {
		return "", &idFault{err}
	}
	return id, nil
}
