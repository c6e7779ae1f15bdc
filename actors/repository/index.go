package repository

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/guard"
)

// index keeps a tree in step with a source.
//
// One goroutine lists and changes the tree. Between two folders of a walk it manages what is pending, so that a
// long walk delays nothing.
type index struct {
	source Source
	o      *Options
	log    zerolog.Logger

	current atomic.Pointer[snapshot] // the newest snapshot; nil until the first walk has ended
	ready   chan struct{}            // closed then
	wake    chan struct{}            // has room for one

	mu struct {
		sync.Mutex
		pending map[Change]struct{} // what Watch told and nobody has looked at; since is when the first of it came
		since   time.Time
		broken  bool // Watch has ended before its time
	}

	// The rest belongs to the goroutine of run.

	started   time.Time
	tree      *tree
	walk      []string // folders to list with everything below; the last one is the next
	whole     bool     // whole says that the walk is one of everything, begun then, with what it has found so far
	begun     time.Time
	found     Found
	again     bool              // something may have changed behind the walk; another one must follow
	retry     map[string]bool   // folders that could not be read for a passing reason
	retryAt   time.Time         // zero without any
	noted     map[string]string // folders that were logged, with why
	nextWhole time.Time         // when the next reconciliation begins; zero while one is needed at once
	rested    time.Time         // when folders that changed are listed again at the earliest
	published time.Time

	last     atomic.Pointer[Found]
	counters struct{ walks, lists, changes, lost atomic.Int64 }
}

// Found is what a walk of everything met besides files and folders.
type Found struct {
	// Unreadable folders, names that IsName refuses, folders that are not watched, and folders beyond the limit of
	// depth, which were not entered.
	Unreadable, Left, Unwatched, TooDeep int64
	Took                                 time.Duration // how long the walk took
}

const (
	// pendingMax bounds the pending changes. More of them become one change of everything.
	pendingMax = 1 << 16
	retryEach  = time.Second // the pause before a folder is tried again
	// restMax bounds the rest after a large folder was listed, so that a change is seen within two seconds.
	restMax     = 500 * time.Millisecond
	publishEach = time.Second // how often a walk publishes what it has found so far
	// firstMax bounds how long the first list waits for folders that cannot be read for a passing reason; for the top
	// it has no bound.
	firstMax  = time.Minute
	walkShare = 20 // walkShare bounds the walks: the pause between two is that many times as long as one
)

func newIndex(o *Options) *index {
	x := &index{
		source: o.Source, o: o, log: o.Log, ready: make(chan struct{}), wake: make(chan struct{}, 1),
		started: time.Now(), tree: newTree(), retry: map[string]bool{}, noted: map[string]string{},
	}
	x.mu.pending = map[Change]struct{}{}
	return x
}

func (x *index) watch(ctx context.Context) {
	var err error
	if panicked := guard.Try(x.log, "files watch", func() { err = x.source.Watch(ctx, x.changed) }); panicked != nil {
		err = panicked
	}
	if ctx.Err() != nil {
		return
	}
	x.log.Warn().Err(err).Msg("the repository is not watched any more; changes are found by looking")
	x.mu.Lock()
	x.mu.broken = true
	x.mu.Unlock()
	x.changed(Change{})
}

func (x *index) changed(c Change) {
	x.counters.changes.Add(1)
	x.mu.Lock()
	if len(x.mu.pending) == 0 {
		x.mu.since = time.Now()
	}
	if len(x.mu.pending) >= pendingMax {
		clear(x.mu.pending)
		c = Change{}
	}
	x.mu.pending[c] = struct{}{}
	x.mu.Unlock()
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

func (x *index) run(ctx context.Context) {
	x.walk, x.whole, x.nextWhole = nil, false, time.Time{} // NB: after a panic everything is looked at
	for ctx.Err() == nil {
		now := time.Now()
		if changes := x.due(now); len(changes) > 0 {
			x.apply(ctx, changes)
			x.publish()
			continue
		}
		x.plan(now)
		if len(x.walk) > 0 {
			x.step(ctx)
			continue
		}
		x.wait(ctx)
	}
}

func (x *index) due(now time.Time) map[Change]struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.mu.pending) == 0 || now.Sub(x.mu.since) < x.o.Settle || now.Before(x.rested) {
		return nil
	}
	changes := x.mu.pending
	x.mu.pending = map[Change]struct{}{}
	return changes
}

func (x *index) apply(ctx context.Context, changes map[Change]struct{}) {
	begun := time.Now()
	folders := map[string][]string{} // with the names in them that may be other folders
	for c := range changes {
		if c.Folder == "" {
			x.counters.lost.Add(1)
			// NB: a running walk goes on: otherwise it would never end while changes are lost.
			x.again = x.whole
			if !x.whole {
				x.nextWhole = time.Time{}
			}
			continue
		}
		folders[c.Folder] = append(folders[c.Folder], c.Name)
	}
	for folder, names := range folders {
		if ctx.Err() != nil {
			return
		}
		if x.tree.find(folder) == nil {
			continue
		}
		x.list(ctx, folder, false)
		for _, name := range names {
			if other := join(folder, name); name != "" && x.tree.find(other) != nil {
				x.walk = append(x.walk, other)
			}
		}
	}
	x.rested = time.Now().Add(min(time.Since(begun), restMax))
}

// plan adds to the walk what is due.
func (x *index) plan(now time.Time) {
	if !x.retryAt.IsZero() && !now.Before(x.retryAt) {
		for folder := range x.retry {
			x.walk = append(x.walk, folder)
		}
		x.retryAt = time.Time{}
		clear(x.retry)
	}
	if !x.whole && len(x.walk) == 0 && !now.Before(x.nextWhole) { // new folders come first
		x.whole, x.begun, x.found = true, now, Found{}
		x.walk = append(x.walk, top)
		for folder := range x.noted {
			if x.tree.find(folder) == nil {
				delete(x.noted, folder)
			}
		}
	}
}

// step lists one folder of the walk, and ends the walk behind the last one.
func (x *index) step(ctx context.Context) {
	folder := x.walk[len(x.walk)-1]
	x.walk = x.walk[:len(x.walk)-1]
	x.list(ctx, folder, true)
	if ctx.Err() != nil {
		return
	}
	if len(x.walk) > 0 {
		if time.Since(x.published) > publishEach {
			x.publish()
		}
		return
	}
	x.walk = nil // it may have been long
	if x.whole {
		x.endWhole()
	}
	x.publish()
}

func (x *index) endWhole() {
	x.whole = false
	x.found.Took = time.Since(x.begun)
	found := x.found
	x.last.Store(&found)
	x.counters.walks.Add(1)
	every := x.o.Reconcile
	x.mu.Lock()
	if x.mu.broken || found.Unwatched > 0 {
		every = x.o.ReconcileUnwatched
	}
	x.mu.Unlock()
	every = max(every, walkShare*found.Took)
	if x.again {
		x.again, every = false, found.Took
	}
	x.nextWhole = time.Now().Add(every)
}

func (x *index) publish() {
	x.published = time.Now()
	switch {
	case x.current.Load() != nil:
		if x.tree.dirty {
			x.current.Store(x.tree.snapshot())
		}
	case x.last.Load() != nil && !x.isShort():
		x.log.Info().Int("files", x.tree.files).Int("folders", x.tree.folders).Dur("tookMs", time.Since(x.started)).Msg("repository is indexed")
		x.current.Store(x.tree.snapshot())
		close(x.ready)
	}
}

// isShort reports whether a first list would lack folders that may soon be readable.
func (x *index) isShort() bool {
	return x.retry[top] || slices.Contains(x.walk, top) || (len(x.retry) > 0 || len(x.walk) > 0) && time.Since(x.started) < firstMax
}

// Folders in it that are new are walked; deep: so are the others.
func (x *index) list(ctx context.Context, folder string, deep bool) {
	if x.tree.find(folder) == nil {
		return // it has gone in the meantime
	}
	x.counters.lists.Add(1)
	var listing *Listing
	var err error
	if panicked := guard.Try(x.log, "files index", func() { listing, err = x.source.List(ctx, folder) }); panicked != nil {
		err = panicked // NB: a folder that panics is one that cannot be read now
	}
	if err == nil && bytesOf(listing.Files) > namesBytesMax {
		err = errTooManyNames
	}
	switch {
	case err == nil:
		delete(x.noted, folder)
	case ctx.Err() != nil:
		return
	case errors.Is(err, fs.ErrNotExist):
		// The folder above says whether it has gone; a repository may be missing.
		listing = &Listing{}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, errTooManyNames):
		x.found.Unreadable++
		x.note(folder, "folder cannot be read; it is skipped", err)
		listing = &Listing{}
	default:
		// What is known of it stays: a short list must not look whole.
		x.found.Unreadable++
		x.note(folder, "folder cannot be read now; it is tried again", err)
		x.retry[folder] = true
		if x.retryAt.IsZero() {
			x.retryAt = time.Now().Add(retryEach)
		}
		return
	}
	x.found.Left += int64(listing.Left)
	if listing.Unwatched {
		x.found.Unwatched++
		if soon := time.Now().Add(x.o.ReconcileUnwatched); !x.whole && soon.Before(x.nextWhole) {
			x.nextWhole = soon
		}
	}
	if depth(folder) >= x.o.DepthMax && len(listing.Folders) > 0 {
		x.found.TooDeep += int64(len(listing.Folders))
		x.note(folder, "folders in it are too deep; they are skipped", fmt.Errorf("more than %d levels", x.o.DepthMax))
		listing.Folders = nil
	}
	fresh, _ := x.tree.replace(folder, listing.Files, listing.Folders)
	if deep {
		fresh = listing.Folders
	}
	for i := range fresh { // the first is the next
		x.walk = append(x.walk, join(folder, fresh[len(fresh)-1-i]))
	}
}

func (x *index) note(folder, what string, err error) {
	if x.noted[folder] == what {
		return
	}
	x.noted[folder] = what
	x.log.Warn().Err(err).Str("folder", folder).Msg(what)
}

func (x *index) wait(ctx context.Context) {
	until := x.nextWhole
	if !x.retryAt.IsZero() && x.retryAt.Before(until) {
		until = x.retryAt
	}
	x.mu.Lock()
	if len(x.mu.pending) > 0 {
		due := x.mu.since.Add(x.o.Settle)
		if due.Before(x.rested) {
			due = x.rested
		}
		if due.Before(until) {
			until = due
		}
	}
	x.mu.Unlock()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-x.wake:
	case <-timer.C:
	}
}
