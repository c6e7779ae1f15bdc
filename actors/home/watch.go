package home

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/rs/zerolog"

	"troupe/actors/guard"
)

// WatchOptions configures a Watcher.
type WatchOptions struct {
	Dir string
	// Access is called some moments after identity.yaml or rights.yaml changed, and Definitions after any text file
	// did: both name roles. There is one call of each at a time. again asks for another call after an interval that
	// grows.
	Access, Definitions func() (again bool)
	// Tests: the folder of tests counts for Definitions, too.
	Tests bool
	// Settle is how long the files must be quiet. Default 200 ms: an editor's save or a checkout is many events.
	Settle time.Duration
	Log    zerolog.Logger
}

// The interval after which a set that was not taken is tried again doubles from retryMin to retryMax.
const (
	retryMin = time.Second
	retryMax = 30 * time.Second
)

// Watcher calls back when the text files of a home change.
type Watcher struct {
	o                   WatchOptions
	fs                  *fsnotify.Watcher
	folders             []string // that count, in Dir
	access, definitions *follower

	starting, stopping sync.Once
	running            sync.WaitGroup // the goroutines that Start begins
}

// NewWatcher begins to watch: files that are read from now on do not change unnoticed.
func NewWatcher(o WatchOptions) (*Watcher, error) {
	if o.Settle == 0 {
		o.Settle = 200 * time.Millisecond
	}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", o.Dir, err)
	}
	w := &Watcher{
		o: o, fs: notify, folders: folders,
		access: newFollower(o.Access, o.Settle), definitions: newFollower(o.Definitions, o.Settle),
	}
	if err := notify.Add(o.Dir); err != nil {
		_ = notify.Close()
		return nil, fmt.Errorf("watch %s: %w", o.Dir, err)
	}
	w.access.log, w.definitions.log = o.Log, o.Log
	if o.Tests {
		w.folders = append(slices.Clone(folders), TestsFolder)
	}
	for _, folder := range w.folders {
		w.addFolder(filepath.Join(o.Dir, folder))
	}
	return w, nil
}

// Start begins to call back. It can be called again, and does nothing after Stop.
func (w *Watcher) Start() {
	w.starting.Do(func() {
		w.running.Go(func() {
			before := false
			guard.Loop(w.access.stop, w.o.Log, "home watch", func() {
				if before { // NB: what the panic was about has been passed over
					w.Retry()
				}
				before = true
				w.loop()
			})
		})
		for _, f := range []*follower{w.access, w.definitions} {
			w.running.Go(f.loop)
		}
	})
}

// Retry acts as if both callbacks had asked for another call. It may be called before Start.
func (w *Watcher) Retry() {
	for _, f := range []*follower{w.access, w.definitions} {
		poke(f.retry)
	}
}

// addFolder watches a folder and those below it, where definitions and templates may have files that they refer to.
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

// Stop ends the watching and waits until no callback is running any more or ctx ends.
func (w *Watcher) Stop(ctx context.Context) error {
	w.starting.Do(func() {}) // NB: a Start that comes later does nothing
	w.stopping.Do(func() {
		_ = w.fs.Close()
		close(w.access.stop)
		close(w.definitions.stop)
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.running.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop watching %s: the files are still being taken over: %w", w.o.Dir, ctx.Err())
	}
}

func (w *Watcher) loop() {
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

// matters is false for what the service writes itself, and for hidden files. access: the file may be of that set.
func (w *Watcher) matters(name string) (access, matters bool) {
	rel, err := filepath.Rel(w.o.Dir, name)
	if err != nil || strings.HasPrefix(filepath.Base(rel), ".") && !strings.HasPrefix(rel, "..") && filepath.Base(rel) != "..data" {
		return false, false
	}
	top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	access = top == IdentityFile || top == RightsFile || top == "..data"
	return access, access || slices.Contains(w.folders, top)
}

// follower calls back for one set: when its files have been quiet, and again while the callback asks for it.
type follower struct {
	callback       func() (again bool)
	settle         time.Duration
	changed, retry chan struct{} // one entry when there is something to do
	stop           chan struct{} // closed when loop is to end
	log            zerolog.Logger
}

func newFollower(callback func() (again bool), settle time.Duration) *follower {
	return &follower{
		callback: callback, settle: settle, changed: make(chan struct{}, 1), retry: make(chan struct{}, 1),
		stop: make(chan struct{}),
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (f *follower) loop() {
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
			again := true // after a panic
			_ = guard.Try(f.log, "home follower", func() { again = f.callback() })
			if !again {
				quiet, wait = nil, retryMin
				continue
			}
		}
		quiet, wait = time.After(wait), min(2*wait, retryMax)
	}
}
