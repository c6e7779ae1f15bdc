package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/rs/zerolog"
)

// WatchOptions configures a Watcher.
type WatchOptions struct {
	Dir string
	// Access is called some moments after identity.yaml or rights.yaml changed, and
	// Definitions after any text file did: both name roles. Each is called one call
	// at a time, and does not wait for the other. again asks to be called once more
	// without a change, after an interval that grows.
	Access, Definitions func() (again bool)
	// Settle is how long the files must be quiet. Default 200 ms: an editor's
	// save or a checkout is many events.
	Settle time.Duration
	Log    zerolog.Logger
}

// The interval after which a set that was not taken is tried again doubles from
// retryMin to retryMax. A change of its files begins anew.
const (
	retryMin = time.Second
	retryMax = 30 * time.Second
)

// Watcher calls back when the text files of a home change.
type Watcher struct {
	o                   WatchOptions
	fs                  *fsnotify.Watcher
	access, definitions *follower
	done                chan struct{} // closed when the goroutine is gone
}

// Watch begins to watch. Stop must be called.
func Watch(o WatchOptions) (*Watcher, error) {
	if o.Settle == 0 {
		o.Settle = 200 * time.Millisecond
	}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", o.Dir, err)
	}
	w := &Watcher{o: o, fs: notify, done: make(chan struct{})}
	if err := notify.Add(o.Dir); err != nil {
		_ = notify.Close()
		return nil, fmt.Errorf("watch %s: %w", o.Dir, err)
	}
	for _, folder := range folders {
		w.addFolder(filepath.Join(o.Dir, folder))
	}
	w.access, w.definitions = follow(o.Access, o.Settle), follow(o.Definitions, o.Settle)
	go w.loop()
	return w, nil
}

// Retry has both sets looked at as after a call that asked for another.
func (w *Watcher) Retry() {
	for _, f := range []*follower{w.access, w.definitions} {
		poke(f.retry)
	}
}

// addFolder watches a folder and those below it, where definitions and templates
// may have files that they refer to. It may come later or come again.
func (w *Watcher) addFolder(path string) {
	// NB: the dot, because a folder may be a symbolic link.
	err := filepath.WalkDir(path+"/.", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return w.fs.Add(path)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.o.Log.Warn().Err(err).Str("folder", path).Msg("folder is not watched")
	}
}

// Stop ends the watching; it returns when no callback is running any more.
func (w *Watcher) Stop() {
	_ = w.fs.Close()
	<-w.done
	w.access.end()
	w.definitions.end()
}

func (w *Watcher) loop() {
	defer close(w.done)
	for {
		select {
		case e, ok := <-w.fs.Events:
			if !ok {
				return
			}
			access, matters := w.matters(e.Name)
			if !matters {
				continue
			}
			if info, err := os.Stat(e.Name); err == nil && info.IsDir() {
				w.addFolder(e.Name)
			}
			w.changed(access)
		case err, ok := <-w.fs.Errors:
			if !ok {
				return
			}
			// Events may be lost: look at everything.
			w.o.Log.Warn().Err(err).Msg("watching the home")
			w.changed(true)
		}
	}
}

func (w *Watcher) changed(access bool) {
	if access {
		poke(w.access.changed)
	}
	poke(w.definitions.changed)
}

// matters leaves out what the service writes itself, and editors' hidden files.
// access: it may be one of the files of that set.
func (w *Watcher) matters(name string) (access, matters bool) {
	rel, err := filepath.Rel(w.o.Dir, name)
	if err != nil || strings.HasPrefix(filepath.Base(rel), ".") && !strings.HasPrefix(rel, "..") && filepath.Base(rel) != "..data" {
		return false, false
	}
	top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	access = top == IdentityFile || top == RightsFile || top == "..data"
	return access, access || slices.Contains(folders, top)
}

// follower calls back for one set: when its files have been quiet, and again while
// the callback asks for it.
type follower struct {
	callback       func() (again bool)
	settle         time.Duration
	changed, retry chan struct{} // one entry when there is something to do
	stop           chan struct{}
	done           chan struct{} // closed when the goroutine is gone
}

func follow(callback func() (again bool), settle time.Duration) *follower {
	f := &follower{
		callback: callback, settle: settle, changed: make(chan struct{}, 1), retry: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	go f.loop()
	return f
}

// poke leaves an entry in a channel that has room for one.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (f *follower) end() {
	close(f.stop)
	<-f.done
}

func (f *follower) loop() {
	defer close(f.done)
	var quiet <-chan time.Time
	wait := retryMin
	for {
		select {
		case <-f.stop:
			return
		case <-f.changed:
			quiet, wait = time.After(f.settle), retryMin
			continue
		case <-f.retry:
		case <-quiet:
			if !f.callback() {
				quiet, wait = nil, retryMin
				continue
			}
		}
		quiet, wait = time.After(wait), min(2*wait, retryMax)
	}
}
