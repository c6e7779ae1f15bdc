package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
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
	folder := filepath.Dir(path)
	if err := makeFolder(folder); err != nil {
		return err
	}
	begun, err := os.CreateTemp(folder, beginning)
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
	return syncFolder(folder)
}

// makeFolder makes a folder, and what is missing above it, durably.
func makeFolder(dir string) error {
	above := filepath.Dir(dir)
	if _, err := os.Stat(dir); err == nil || above == dir {
		return err
	}
	if err := makeFolder(above); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(above)
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
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
