package persistence

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/integrity"
)

// generation is one opening of the database, with its readers. A store that was
// opened read-only on a full disk is opened a second time for writing, while the
// readers of the first opening go on.
type generation struct {
	database
	readers
	lock io.Closer
}

// newGeneration opens the database. NB: Pebble wants a lock for each opening. The
// store holds the lock on the disk for all of them, so these locks do nothing.
func newGeneration(s *Store, o *pebble.Options) (*generation, error) {
	lock, err := pebble.LockDirectory(s.dir, lockedFS{s.fs})
	if err != nil {
		return nil, err
	}
	o.Lock = lock
	db, err := integrity.OpenPebble(s.dir, o)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &generation{database: pebbleDB{db, pebbleView{db}}, readers: readers{gone: make(chan struct{})}, lock: lock}, nil
}

// Close closes the database. It must have no readers.
func (g *generation) Close() error { return errors.Join(g.database.Close(), g.lock.Close()) }

// read counts the caller in as a reader of the present generation; the caller must
// call leave. It returns nil once the store is closed.
func (s *Store) read() *generation {
	for {
		g := s.db.Load()
		if g.enter() {
			return g
		}
		if g == s.db.Load() {
			return nil
		}
	}
}

// lockedFS is a file system whose lock is held already.
type lockedFS struct{ vfs.FS }

// Lock does nothing.
func (lockedFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// reopen opens a read-only store for writing. Reads go on: new ones use the new
// generation, running ones the old one, whose tables are kept until they end. It is false
// when there was no room after all; then it is to be called again.
func (s *Store) reopen() bool {
	old := s.db.Load()
	tables, err := integrity.Tables(pebbleOf(old))
	if err == nil {
		s.kept.Hold(tables)
		err = s.openDB(false)
	}
	if errors.Is(err, syscall.ENOSPC) {
		s.log.Warn().Err(err).Msg("there was not enough space to open the store for writing")
		return false
	}
	if err != nil {
		s.die(fmt.Sprintf("open the store for writing: %v", err))
	}
	s.space.waiting, s.space.old = false, old
	old.shut()
	s.log.Info().Str("dir", s.dir).Msg("there is space again, the store is open for writing")
	return true
}

// closeOld closes the previous generation once it has no readers.
func (s *Store) closeOld() error {
	if s.space.old == nil {
		return nil
	}
	select {
	case <-s.space.old.gone:
	default:
		return nil
	}
	err := s.space.old.Close()
	s.space.old = nil
	for _, path := range s.kept.Release() {
		if rerr := s.fs.Remove(path); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}
