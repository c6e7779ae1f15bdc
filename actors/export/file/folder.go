package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"troupe/persistence/folder"
)

// Folder is a place on a disk. It is made when it is first written to.
type Folder struct{ dir string }

// NewFolder returns the place of a folder.
func NewFolder(dir string) *Folder { return &Folder{dir} }

func (f *Folder) String() string { return f.dir }

// Close implements Place.
func (*Folder) Close() error { return nil }

const (
	beginning = ".beginning-"
	leftAfter = time.Hour // then a file that was begun is one that a crash has left
)

// Create implements Place: the file is durable when it returns.
func (f *Folder) Create(_ context.Context, name string, text []byte) (err error) {
	path := filepath.Join(f.dir, filepath.FromSlash(name))
	below := filepath.Dir(path)
	if err := folder.Make(below, 0o750); err != nil {
		return err
	}
	begun, err := os.CreateTemp(below, beginning)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(begun.Name()) }() // the next listing removes what is left
	_, err = begun.Write(text)
	if err = errors.Join(err, begun.Sync(), begun.Close()); err != nil {
		return err
	}
	if err := os.Link(begun.Name(), path); err != nil { // NB: unlike a rename it replaces nothing
		return err
	}
	return folder.Sync(below)
}

// Names implements Place. It removes what crashes have left.
func (f *Folder) Names(_ context.Context, folder string) (names []string, err error) {
	folder = filepath.Join(f.dir, filepath.FromSlash(folder))
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), beginning) {
			names = append(names, e.Name())
			continue
		}
		if at, err := e.Info(); err == nil && time.Since(at.ModTime()) > leftAfter {
			_ = os.Remove(filepath.Join(folder, e.Name())) // the next one tries it again
		}
	}
	return names, nil
}
