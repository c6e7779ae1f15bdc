package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"troupe/persistence/folder"
)

// Target is where backups are kept: names with slashes, and bytes.
type Target interface {
	// List returns all names with their sizes, without what is being written; none if there is nothing yet.
	List(ctx context.Context) (map[string]int64, error)
	// Get returns fs.ErrNotExist, wrapped, for a name that is not there.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// Put returns when the content is durable under the name. Before, nothing is there.
	Put(ctx context.Context, name string, size int64, content io.Reader) error
	Remove(ctx context.Context, name string) error
	// Lock makes the target if it is not there, keeps other runs out until release, and removes what killed ones left
	// half written. ErrBusy.
	Lock(ctx context.Context) (release func(), err error)
	// String is what people know it by.
	String() string
}

// markFile tells a folder with backups from others, and is locked by who writes there. partFolder has what is being
// written.
const (
	markFile   = "troupe-backups"
	partFolder = ".parts"
)

// Folder is a folder as a Target.
type Folder string

func (f Folder) String() string          { return string(f) }
func (f Folder) path(name string) string { return filepath.Join(string(f), filepath.FromSlash(name)) }

// isTarget says whether a folder has backups.
func isTarget(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, markFile))
	return err == nil
}

// List implements Target.
func (f Folder) List(context.Context) (map[string]int64, error) {
	names := map[string]int64{}
	err := filepath.WalkDir(string(f), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == partFolder:
			return fs.SkipDir
		case !d.Type().IsRegular() || d.Name() == markFile:
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(string(f), path)
		names[filepath.ToSlash(name)] = info.Size()
		return err
	})
	if errors.Is(err, fs.ErrNotExist) && len(names) == 0 {
		err = nil
	}
	return names, err
}

// Get implements Target.
func (f Folder) Get(_ context.Context, name string) (io.ReadCloser, error) {
	file, err := os.OpenFile(f.path(name), os.O_RDONLY|syscall.O_NONBLOCK, 0) // NB: a pipe would wait for its writer
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = damagedf(f.path(name), "it is not a regular file")
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Put implements Target.
func (f Folder) Put(_ context.Context, name string, _ int64, content io.Reader) error {
	part, err := os.CreateTemp(f.path(partFolder), "*") // NB: first, so that a target which somebody removed is not made again without its mark
	if err != nil {
		return err
	}
	dir := filepath.Dir(f.path(name))
	if err = folder.Make(dir, 0o700); err == nil {
		_, err = io.Copy(part, content)
	}
	if err = errors.Join(err, part.Sync(), part.Close()); err == nil {
		err = os.Rename(part.Name(), f.path(name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	return folder.Sync(dir)
}

// Remove implements Target.
func (f Folder) Remove(_ context.Context, name string) error { return os.Remove(f.path(name)) }

// Lock implements Target.
func (f Folder) Lock(context.Context) (release func(), err error) {
	if err := folder.Make(filepath.Clean(string(f)), 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return nil, err
	}
	if !isTarget(string(f)) && hasFiles(entries) {
		return nil, fmt.Errorf("%s has files that are not backups: give an empty or missing folder", f)
	}
	mark, err := os.OpenFile(f.path(markFile), os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(mark); err != nil {
		return nil, errors.Join(err, mark.Close())
	}
	err = errors.Join(os.RemoveAll(f.path(partFolder)), os.Mkdir(f.path(partFolder), 0o700))
	if err != nil {
		return nil, errors.Join(err, mark.Close())
	}
	return func() { _ = mark.Close() }, nil // nothing was written to it
}

func hasFiles(entries []fs.DirEntry) bool {
	for _, e := range entries {
		if e.Name() != "lost+found" {
			return true
		}
	}
	return false
}
