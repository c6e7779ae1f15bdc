// Package disk is a folder of the disk as the place where the files of a repository are; it is the only code of the
// repository that touches files. Nothing outside the folder is read, and nothing through a link, also while somebody
// swaps files, folders and links: a path is opened name by name. Only regular files are opened, so that no pipe or
// device keeps a request waiting. A file with several names is read only when it belongs to the owner of the folder,
// because the other names may lie outside. fsnotify tells of changes; where it cannot, a listing says that its folder
// is not watched.
package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/fsnotify/fsnotify"
	"github.com/rs/zerolog"

	"troupe/actors/failure"
	"troupe/actors/repository"
)

// Options configures a Disk. Dir is required.
type Options struct {
	// Dir is the folder. It may be missing, come later, and be replaced.
	Dir string
	// FileBytesMax bounds the files that are opened; a larger one is failure.ErrTooLarge. Default 64 MiB.
	FileBytesMax int64
	Log          zerolog.Logger
}

// Disk is a folder as a repository.Source.
type Disk struct {
	o Options

	notify *fsnotify.Watcher // nil: nothing is watched

	mu struct {
		sync.Mutex
		watched map[string]struct{} // folders, as notify knows them
		limited bool                // that not all folders can be watched was logged
	}
}

// Open begins to watch. Close must be called. Where the system gives no notice of changes, the disk works without.
func Open(o Options) (*Disk, error) {
	o.FileBytesMax = cmp.Or(o.FileBytesMax, 64<<20)
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("open repository: %w", err)
	}
	o.Dir = dir
	d := &Disk{o: o}
	d.mu.watched = map[string]struct{}{}
	if d.notify, err = fsnotify.NewWatcher(); err != nil {
		o.Log.Warn().Err(err).Msg("the repository cannot be watched; changes are found by looking")
		return d, nil
	}
	// The folder above shows that the repository comes, goes or is replaced.
	if err := d.notify.Add(filepath.Dir(dir)); err != nil {
		o.Log.Warn().Err(err).Str("folder", filepath.Dir(dir)).Msg("folder is not watched")
	}
	return d, nil
}

// Close ends the watching, and a call of Watch.
func (d *Disk) Close() error {
	if d.notify == nil {
		return nil
	}
	return d.notify.Close()
}

const batch = 4096

// List implements repository.Source. It leaves out links, devices, pipes and sockets.
func (d *Disk) List(ctx context.Context, folder string) (*repository.Listing, error) {
	dir, err := d.enter(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	// NB: before it is read, so that what comes behind is told.
	listing := &repository.Listing{Unwatched: !d.watch(folder)}
	f, err := d.reading(dir, folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	for {
		entries, err := f.ReadDir(batch)
		for _, e := range entries {
			switch {
			case !e.Type().IsRegular() && !e.IsDir():
			case !repository.IsName(e.Name()):
				listing.Left++
			case e.IsDir():
				listing.Folders = append(listing.Folders, e.Name())
			default:
				listing.Files = append(listing.Files, e.Name())
			}
		}
		if errors.Is(err, io.EOF) {
			return listing, nil
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
	}
}

// NB: ReadDir of a file that os.Root has opened also stats each entry, which takes longer than everything else together
// (BenchmarkDisk). So the folder is opened by its path, and used only if it is the same folder.
func (d *Disk) reading(dir *os.Root, folder string) (*os.File, error) {
	entered, err := dir.Stat(".")
	if err != nil {
		return nil, err
	}
	f, err := os.Open(d.o.Dir + filepath.FromSlash(folder) + "/.")
	if err != nil { // the path may be too long, or not lead here any more
		return dir.Open(".")
	}
	if opened, err := f.Stat(); err != nil || !os.SameFile(entered, opened) {
		_ = f.Close()
		return dir.Open(".")
	}
	return f, nil
}

// enter opens a folder, name by name, so that none on the way is a link.
func (d *Disk) enter(folder string) (*os.Root, error) {
	if !repository.IsPath(folder) {
		return nil, fs.ErrNotExist
	}
	// NB: the dot makes the system refuse a pipe in the folder's place, where opening it would wait for a writer.
	// enterOne does the same.
	dir, err := os.OpenRoot(d.o.Dir + "/.")
	if err != nil {
		return nil, notThere(err)
	}
	for name := range repository.Names(folder) {
		next, err := enterOne(dir, name)
		_ = dir.Close()
		if err != nil {
			return nil, notThere(err)
		}
		dir = next
	}
	return dir, nil
}

// enterOne opens a folder in a folder. os.Root follows links that do not lead out; enterOne follows none.
func enterOne(dir *os.Root, name string) (*os.Root, error) {
	there, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !there.IsDir() {
		return nil, fs.ErrNotExist
	}
	next, err := dir.OpenRoot(name + "/.")
	if err != nil {
		return nil, err
	}
	opened, err := next.Stat(".")
	if err == nil && !os.SameFile(there, opened) {
		err = fs.ErrNotExist
	}
	if err != nil {
		_ = next.Close()
		return nil, err
	}
	return next, nil
}

// notThere is fs.ErrNotExist for a file or a link in a folder's place, and failure.ErrUnavailable for what will pass.
func notThere(err error) error {
	switch {
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENAMETOOLONG):
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOMEM):
		return failure.Errorf(failure.ErrUnavailable, "%w", err)
	}
	return err
}

// attempts is how often Open tries a file that somebody replaces meanwhile.
const attempts = 10

// Open implements repository.Source. It opens only regular files, and none through a link. A file with several names
// must belong to the owner of the repository.
func (d *Disk) Open(_ context.Context, file string) (*repository.File, error) {
	if !repository.IsPath(file) || file == "/" {
		return nil, fs.ErrNotExist
	}
	dir, err := d.enter(path.Dir(file))
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	for range attempts {
		f, err := d.openIn(dir, file)
		if !errors.Is(err, errReplaced) {
			return f, err
		}
	}
	return nil, failure.Errorf(failure.ErrUnavailable, "%w", errReplaced)
}

var errReplaced = errors.New("file was replaced while it was opened")

// NB: an editor puts a new file in the place of the old one, so the one that is opened need not be the one that was
// looked at.
func (d *Disk) openIn(dir *os.Root, file string) (*repository.File, error) {
	name := path.Base(file)
	there, err := dir.Lstat(name)
	if err != nil {
		return nil, notThere(err)
	}
	if !there.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	// NB: by now a pipe may stand there; it must not keep us waiting.
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, notThere(err)
	}
	identity, err := d.identify(f, file, there)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return repository.NewFile(f, *identity), nil
}

func (d *Disk) identify(f *os.File, file string, there fs.FileInfo) (*repository.Identity, error) {
	opened, err := f.Stat()
	if err != nil {
		return nil, err
	}
	inside, err := os.Stat(d.o.Dir)
	if err != nil {
		return nil, err
	}
	status, owner := statusOf(opened), statusOf(inside)
	switch {
	case !os.SameFile(there, opened):
		return nil, errReplaced
	case !opened.Mode().IsRegular(), status == nil, owner == nil:
		return nil, fs.ErrNotExist
	case status.Nlink > 1 && status.Uid != owner.Uid:
		return nil, fs.ErrNotExist
	case opened.Size() > d.o.FileBytesMax:
		return nil, repository.TooLarge(d.o.FileBytesMax)
	}
	return &repository.Identity{Path: file, Modified: opened.ModTime().UnixNano(), Size: opened.Size(), Inode: status.Ino}, nil
}

func statusOf(info fs.FileInfo) *syscall.Stat_t {
	status, _ := info.Sys().(*syscall.Stat_t)
	return status
}

var errUnwatched = errors.New("the system gives no notice of changes")

// watch begins to watch a folder; false when it cannot be. Watching one again changes nothing.
func (d *Disk) watch(folder string) bool {
	if d.notify == nil {
		return false
	}
	name := d.o.Dir
	if folder != "/" {
		name += filepath.FromSlash(folder)
	}
	err := d.notify.Add(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		delete(d.mu.watched, name)
		if !d.mu.limited && !errors.Is(err, fsnotify.ErrClosed) {
			d.mu.limited = true
			d.o.Log.Warn().Err(err).Str("folder", folder).Msg("not all folders of the repository can be watched; changes in the others are found by looking")
		}
		return false
	}
	d.mu.watched[name] = struct{}{}
	return true
}

// Watch implements repository.Source.
func (d *Disk) Watch(ctx context.Context, changed func(repository.Change)) error {
	if d.notify == nil {
		return errUnwatched
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, open := <-d.notify.Events:
			if !open {
				return fsnotify.ErrClosed
			}
			d.pass(e, changed)
		case err, open := <-d.notify.Errors:
			if !open {
				return fsnotify.ErrClosed
			}
			d.o.Log.Warn().Err(err).Msg("notices of changes were lost; the repository is looked through")
			changed(repository.Change{})
		}
	}
}

func (d *Disk) pass(e fsnotify.Event, changed func(repository.Change)) {
	named := e.Has(fsnotify.Create) || e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
	if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
		d.unwatch(e.Name, e.Has(fsnotify.Rename))
	}
	if e.Name == d.o.Dir {
		switch {
		case named: // it may be another folder now
			changed(repository.Change{})
		case e.Has(fsnotify.Chmod): // it may be readable now
			changed(repository.Change{Folder: "/"})
		}
		return
	}
	inside, below := strings.CutPrefix(e.Name, d.o.Dir+string(filepath.Separator))
	if !below {
		return // beside the repository
	}
	at := "/" + filepath.ToSlash(inside)
	switch {
	case named:
		changed(repository.Change{Folder: path.Dir(at), Name: path.Base(at)})
	case e.Has(fsnotify.Chmod): // a folder may be readable now
		changed(repository.Change{Folder: at})
	}
}

// NB: the system goes on watching those, and tells of them under the old path even when they are watched again under
// the new one.
func (d *Disk) unwatch(name string, renamed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, watched := d.mu.watched[name]; !watched {
		return
	}
	delete(d.mu.watched, name)
	_ = d.notify.Remove(name) // it may be gone already
	if !renamed {
		return
	}
	for other := range d.mu.watched {
		if strings.HasPrefix(other, name+string(filepath.Separator)) {
			delete(d.mu.watched, other)
			_ = d.notify.Remove(other)
		}
	}
}
