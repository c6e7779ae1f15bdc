package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

var (
	// ErrDamaged: the backup is not what was written. The text says where and why.
	ErrDamaged = errors.New("the backup is damaged")
	// ErrNoBackup: there is none of what was asked for.
	ErrNoBackup = errors.New("there is no such backup")
	// ErrBusy: another process writes backups there.
	ErrBusy = errors.New("another process writes backups there")
)

// damagedf is ErrDamaged about a file.
func damagedf(name, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrDamaged, name, fmt.Sprintf(format, args...))
}

// DataFolder is where the store is below a home, and begins the paths of its files in an index.
const DataFolder = "data"

// format counts the layout of backups. A program reads all up to its own.
const format = 1

// Index says what one backup has.
type Index struct {
	Format  int       `json:"format"`
	Moment  time.Time `json:"moment"`  // everything that was acknowledged before is in the backup
	Program string    `json:"program"` // the version that wrote it
	Files   []File    `json:"files"`
	Counts  Counts    `json:"counts"`
}

// File is one file of the home.
type File struct {
	Path   string      `json:"path"` // below the home, with slashes
	Bytes  int64       `json:"bytes"`
	SHA256 string      `json:"sha256"`
	Mode   fs.FileMode `json:"mode"` // permissions
	// Modified is the time of a table in Unix nanoseconds: one of the same name, size and time has the same content. Zero
	// for other files.
	Modified int64 `json:"modified,omitempty"`
}

// isData says whether a file belongs to the store.
func (f *File) isData() bool { return strings.HasPrefix(f.Path, DataFolder+"/") }

const (
	objectFolder = "objects/"
	idFile       = DataFolder + "/ID" // tells the store from every other
)

// object is the name under which a target has the content.
func (f *File) object() string { return objectFolder + f.SHA256[:2] + "/" + f.SHA256 }

// Bytes is the size of all files.
func (i *Index) Bytes() (sum int64) {
	for _, f := range i.Files {
		sum += f.Bytes
	}
	return sum
}

const (
	momentFolder = "moments/"
	momentLayout = "2006-01-02T15-04-05.000000Z"
	momentSuffix = ".json"
)

func (i *Index) name() string {
	return momentFolder + i.Moment.UTC().Format(momentLayout) + momentSuffix
}

// parseMoment reads the moment that an index has by its name.
func parseMoment(name string) (time.Time, bool) {
	text, ok := strings.CutSuffix(strings.TrimPrefix(name, momentFolder), momentSuffix)
	at, err := time.Parse(momentLayout, text)
	return at, ok && err == nil && strings.HasPrefix(name, momentFolder)
}

// indexBytesMax bounds an index, which is read as a whole: a quarter of a million files.
const indexBytesMax = 64 << 20

// sealed is how an index is stored.
type sealed struct {
	Index  json.RawMessage `json:"index"`
	SHA256 string          `json:"sha256"` // of the bytes of Index
}

func (i *Index) encode() ([]byte, error) {
	text, err := json.Marshal(i)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	text, err = json.Marshal(sealed{text, hex.EncodeToString(sum[:])})
	if err == nil && len(text) > indexBytesMax {
		err = fmt.Errorf("a backup of %d files is more than this program reads: leave --with-repository out", len(i.Files))
	}
	return text, err
}

// parseIndex reads what encode has written, and nothing else. name is for the error.
func parseIndex(name string, content io.Reader) (*Index, error) {
	text, err := io.ReadAll(io.LimitReader(content, indexBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > indexBytesMax {
		return nil, damagedf(name, "it is larger than %d bytes", indexBytesMax)
	}
	var s sealed
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, damagedf(name, "%v", err)
	}
	sum := sha256.Sum256(s.Index)
	if hex.EncodeToString(sum[:]) != s.SHA256 {
		return nil, damagedf(name, "its checksum does not fit")
	}
	var i Index
	if err := json.Unmarshal(s.Index, &i); err != nil {
		return nil, damagedf(name, "%v", err)
	}
	if i.Format > format {
		return nil, fmt.Errorf("%s was written by a newer version (format %d, this program reads up to %d)", name, i.Format, format)
	}
	if again, err := json.Marshal(s); err != nil || !bytes.Equal(again, text) {
		return nil, damagedf(name, "it is not written as this program writes it")
	}
	paths := map[string]bool{}
	for _, f := range i.Files {
		if !isPath(f.Path) || paths[f.Path] || len(f.SHA256) != 2*sha256.Size || f.Bytes < 0 {
			return nil, damagedf(name, "it has a file %q that no backup has", f.Path)
		}
		paths[f.Path] = true
	}
	return &i, nil
}

// isPath says whether a backup can have a file: one of the store, of the repository, or a text file.
func isPath(path string) bool {
	first, rest, below := strings.Cut(path, "/")
	switch {
	case !filepath.IsLocal(path) || path != filepath.Clean(path) || strings.HasPrefix(first, ".."):
		return false
	case first == DataFolder:
		return below && !strings.Contains(rest, "/")
	case first == repositoryFolder:
		return below
	}
	return !slices.Contains(notText, first)
}

// tally is the size and the sum of what is written to it.
type tally struct {
	hash.Hash
	bytes int64
}

func newTally() *tally { return &tally{Hash: sha256.New()} }

func (t *tally) Write(p []byte) (int, error) {
	t.bytes += int64(len(p))
	return t.Hash.Write(p)
}

func (t *tally) sum() string { return hex.EncodeToString(t.Sum(nil)) }

// check compares what was read with what the index says.
func (t *tally) check(f *File) error {
	switch {
	case t.bytes != f.Bytes:
		return damagedf(f.Path, "it has %d bytes, and had %d", t.bytes, f.Bytes)
	case t.sum() != f.SHA256:
		return damagedf(f.Path, "its checksum does not fit")
	}
	return nil
}
