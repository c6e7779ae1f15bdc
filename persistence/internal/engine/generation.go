// Package engine is Pebble as the store uses it: an opening with its readers, batches, iterators, and counters that are
// summed up while they are merged. It knows no key, no queue, and nobody who waits.
package engine

import (
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/integrity"
)

// Generation is one opening of the database, with its readers. A store that was opened read-only on a full disk is
// opened a second time for writing, while the readers of the first opening go on.
type Generation struct {
	database
	readers
	lock io.Closer
}

// Open opens the database. NB: Pebble wants a lock for each opening. The
// store holds the lock on the disk for all of them, so these locks do nothing.
func Open(fsys vfs.FS, dir string, o *pebble.Options) (*Generation, error) {
	lock, err := pebble.LockDirectory(dir, lockedFS{fsys})
	if err != nil {
		return nil, err
	}
	o.Lock = lock
	db, err := integrity.OpenPebble(dir, o)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Generation{database: pebbleDB{db, pebbleView{db}}, readers: readers{gone: make(chan struct{})}, lock: lock}, nil
}

// Close closes the database. It must have no readers.
func (g *Generation) Close() error { return errors.Join(g.database.Close(), g.lock.Close()) }

// lockedFS is a file system whose lock is held already.
type lockedFS struct{ vfs.FS }

// Lock does nothing.
func (lockedFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }
