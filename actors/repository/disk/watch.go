package disk

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"

	"troupe/actors/repository"
)

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
