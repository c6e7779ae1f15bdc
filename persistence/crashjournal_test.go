package persistence_test

import (
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence"
)

// bug is what a journal does wrong on purpose: a harness that cannot fail proves nothing, so each must find its own.
type bug int

const (
	// earlyAck acknowledges at once, before the writes are durable.
	earlyAck bug = iota + 1
	// splitBatch commits what belongs together in two parts, first the history entry of an event and then the rest.
	splitBatch
	// startOver begins a new store where a damaged one should be refused.
	startOver
)

// opener opens the store whose files are on a file system, creating it when there are none. A harness opens the same
// store again on copies of the files.
type opener struct {
	options persistence.Options
	bug     bug // zero: none
}

// journal is a store that is tested, with its bug.
type journal struct {
	*persistence.Store
	bug bug
}

// open opens the store in directory "db". Commits may take as long as they like: what is tested is what is
// acknowledged, not how soon.
func (o opener) open(fs vfs.FS) (journal, error) {
	o.options.FS, o.options.CommitWaitMax = fs, time.Hour
	s, err := persistence.Open(dir, o.options)
	if err != nil && o.bug == startOver {
		must(0, fs.RemoveAll(dir))
		s, err = persistence.Open(dir, o.options)
	}
	return journal{s, o.bug}, err
}

// appendEvent commits the event as one batch, or in the way of the bug.
func (j journal) appendEvent(e event, waiter persistence.Waiter) {
	w := j.NewBatch(e.Shard)
	e.writeEntry(w)
	switch j.bug {
	case earlyAck:
		waiter.Committed(nil) // NB: first, so that no schedule of goroutines can hide the bug
		waiter = make(applied, 1)
	case splitBatch:
		visible := make(applied, 1)
		j.Append(w, visible)
		<-visible // NB: together they would be one batch of the store's
		w = j.NewBatch(e.Shard)
	}
	e.writeRest(w)
	j.Append(w, waiter)
}

// applied is told when what it waits for is visible, or will never be.
type applied chan struct{}

func (a applied) Applied()        { a.tell() }
func (a applied) Committed(error) { a.tell() }

func (a applied) tell() {
	select {
	case a <- struct{}{}:
	default:
	}
}

// must is for what can fail only where the disk in memory is broken.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
