package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence"
	"troupe/persistence/key"
)

// Journal is what is tested: the writing side of a store, and Scan to look at
// the result.
type Journal interface {
	NewBatch(key.Shard) *persistence.Batch
	Append(*persistence.Batch, persistence.Waiter) (taken bool)
	Scan(prefix []byte, visit func(key, value []byte) error) error
	Close() error
}

// Opener opens the journal whose files are on fs, creating it when there are
// none. A harness opens the same journal again on copies of the files.
type Opener func(fs vfs.FS) (Journal, error)

// Store opens a [persistence.Store] in directory "db". The options' FS is
// replaced. Without CommitWaitMax commits may take as long as they like: what is
// tested is what is acknowledged, not how soon.
func Store(o persistence.Options) Opener {
	return func(fs vfs.FS) (Journal, error) {
		o := o
		o.FS = fs
		o.CommitWaitMax = cmp.Or(o.CommitWaitMax, time.Hour)
		return persistence.Open("db", o)
	}
}

// EarlyAck is a journal with a bug: it acknowledges at once, before the writes
// are durable. Every harness must find that.
func EarlyAck(open Opener) Opener {
	return wrapped(open, func(j Journal) Journal { return earlyAck{j} })
}

type earlyAck struct{ Journal }

func (j earlyAck) Append(w *persistence.Batch, waiter persistence.Waiter) bool {
	waiter.Committed(nil) // NB: first, so that no schedule of goroutines can hide the bug
	return j.Journal.Append(w, ignore{})
}

// SplitBatch is a journal with a bug: what belongs together is committed in two
// parts, first the history entry of an event and then the rest. Harnesses that crash
// must find that.
func SplitBatch(open Opener) Opener {
	return wrapped(open, func(j Journal) Journal { return splitBatch{j} })
}

type splitBatch struct{ Journal }

// appendEvent is used by the harnesses in the place of building one batch.
func (j splitBatch) appendEvent(e event, waiter persistence.Waiter) {
	first, second := j.NewBatch(e.Shard), j.NewBatch(e.Shard)
	e.writeEntry(first)
	e.writeRest(second)
	visible := make(applied, 1)
	j.Append(first, visible)
	<-visible // NB: together they would be one batch of the store's
	j.Append(second, waiter)
}

// StartOver is a journal with a bug: where it should refuse a damaged store, it
// begins a new one. [Sweep] must find that.
func StartOver(open Opener) Opener {
	return func(fs vfs.FS) (Journal, error) {
		j, err := open(fs)
		if err == nil {
			return j, nil
		}
		if err := fs.RemoveAll(dir); err != nil {
			return nil, err
		}
		return open(fs)
	}
}

func wrapped(open Opener, with func(Journal) Journal) Opener {
	return func(fs vfs.FS) (Journal, error) {
		j, err := open(fs)
		if err != nil {
			return nil, err
		}
		return with(j), nil
	}
}

type ignore struct{}

func (ignore) Committed(error) {}

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

// errFound ends a scan.
var errFound = errors.New("found")

// load reads one key by Scan.
func load(j Journal, key []byte) (value []byte, ok bool, err error) {
	err = j.Scan(key, func(k, v []byte) error {
		if string(k) == string(key) {
			value, ok = append([]byte{}, v...), true
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("scan for %x: %w", key, err)
	}
	return value, ok, err
}
