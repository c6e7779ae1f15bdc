package disk

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/file"
)

// IDName is the file that tells a store from every other. It is written when the store is created, and when a store
// that has lost it is opened with Options.IDFile. That file holds the same text:
//
//	troupe store id
//	id 5f0c…
//	crc 1c291ca3
const IDName = "ID"

var (
	// ErrMissing: a store is required and there is none.
	ErrMissing = errors.New("the store is missing")
	// ErrOtherStore: another store is required than the one that is there.
	ErrOtherStore = errors.New("this is another store")
)

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

// Identity says which store is in a folder, and which one belongs there.
type Identity struct {
	Folder
	// File is outside the folder, and has the id of the store that belongs there. Empty: no file says so.
	File        string
	Own, Wanted string // the ids; "" without one
}

// ReadDemand reads which store belongs in the folder.
func (i *Identity) ReadDemand() (err error) {
	if i.File == "" {
		return nil
	}
	i.Wanted, err = readID(i.FS, i.File)
	if e := (*idFault)(nil); errors.As(err, &e) {
		return fmt.Errorf("%s: %w: it says which store belongs here; restore it, or remove it, and the store in %s "+
			"is taken for the right one", i.File, err, i.Dir)
	}
	return err
}

// Check compares the store in the folder with the one that belongs there.
func (i *Identity) Check() (err error) {
	i.Own, err = readID(i.FS, i.FS.PathJoin(i.Dir, IDName))
	if e := (*idFault)(nil); errors.As(err, &e) {
		return integrity.Damaged(IDName, e.Error())
	}
	if err != nil || i.Wanted == "" || i.Wanted == i.Own {
		return err
	}
	is := "has no id"
	if i.Own != "" {
		is = "is " + i.Own
	}
	return fmt.Errorf("%w: %s %s, and %s says that %s belongs here", ErrOtherStore, i.Dir, is, i.File, i.Wanted)
}

// Missing is the error about a store that belongs here and is not there.
func (i *Identity) Missing() error {
	return fmt.Errorf("%w: %s holds none, and %s says that %s belongs here; nothing was changed", ErrMissing, i.Dir, i.File, i.Wanted)
}

// AssignID gives an id that no other has to a store without one.
func (i *Identity) AssignID() error {
	if i.Own != "" {
		return nil
	}
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	id := hex.EncodeToString(b)
	if err := i.SetID(id); err != nil {
		return err
	}
	i.Own = id
	return nil
}

// SetID makes the store in the folder the one of an id.
func (f Folder) SetID(id string) error { return file.Replace(f.FS, f.Dir, IDName, encodeID(id)) }

// Demand has the file demand this store, when there is no such file yet. A failure is logged, and the store works without
// the file.
func (i *Identity) Demand(log zerolog.Logger) {
	if i.File == "" || i.Wanted != "" {
		return
	}
	if err := i.demand(); err != nil {
		log.Warn().Str("file", i.File).Err(err).Msg("the id of the store cannot be kept there: that the store is missing will not be noticed")
		return
	}
	log.Info().Str("file", i.File).Str("id", i.Own).Msg("store registered with this home")
}

// demand writes the file. The store gets an id first if it has none: after a crash between the two it
// has one and the file is missing, and the next call writes it.
func (i *Identity) demand() error {
	if err := i.AssignID(); err != nil {
		return err
	}
	return file.Replace(i.FS, i.FS.PathDir(i.File), i.FS.PathBase(i.File), encodeID(i.Own))
}

// DropDemand removes the file, so that another store may be made.
func (i *Identity) DropDemand() error {
	if i.Wanted == "" {
		return nil
	}
	i.Wanted = ""
	if err := i.FS.Remove(i.File); err != nil {
		return err
	}
	return file.SyncDir(i.FS, i.FS.PathDir(i.File))
}

// CheckID says whether the store in a folder is the one that a file requires. It opens no store, and locks and changes
// nothing.
func CheckID(fsys vfs.FS, dir, idFile string) error {
	i := Identity{Folder: Folder{FS: fsys, Dir: dir}, File: idFile}
	if err := i.ReadDemand(); err != nil || i.Wanted == "" {
		return err
	}
	names, err := fsys.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(names) == 0 {
		return i.Missing()
	}
	return i.Check()
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
