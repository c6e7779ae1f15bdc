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
	// Changed is called, one call at a time, some moments after files changed.
	Changed func()
	// Settle is how long the files must be quiet. Default 200 ms: an editor's
	// save or a checkout is many events.
	Settle time.Duration
	Log    zerolog.Logger
}

// Watcher calls back when the text files of a home change.
type Watcher struct {
	o    WatchOptions
	fs   *fsnotify.Watcher
	done chan struct{} // closed when the goroutine is gone
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
	go w.loop()
	return w, nil
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

// Stop ends the watching; it returns when no call to Changed is running any more.
func (w *Watcher) Stop() {
	_ = w.fs.Close()
	<-w.done
}

func (w *Watcher) loop() {
	defer close(w.done)
	quiet := time.NewTimer(0)
	<-quiet.C
	defer quiet.Stop()
	for {
		select {
		case e, ok := <-w.fs.Events:
			if !ok {
				return
			}
			if !w.matters(e.Name) {
				continue
			}
			if info, err := os.Stat(e.Name); err == nil && info.IsDir() {
				w.addFolder(e.Name)
			}
			quiet.Reset(w.o.Settle)
		case err, ok := <-w.fs.Errors:
			if !ok {
				return
			}
			// Events may be lost: look at everything.
			w.o.Log.Warn().Err(err).Msg("watching the home")
			quiet.Reset(w.o.Settle)
		case <-quiet.C:
			w.o.Changed()
		}
	}
}

// matters leaves out what the service writes itself, and editors' hidden files.
func (w *Watcher) matters(name string) bool {
	rel, err := filepath.Rel(w.o.Dir, name)
	if err != nil || strings.HasPrefix(filepath.Base(rel), ".") && !strings.HasPrefix(rel, "..") && filepath.Base(rel) != "..data" {
		return false
	}
	top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	return top == IdentityFile || top == RightsFile || slices.Contains(folders, top) || top == "..data"
}
