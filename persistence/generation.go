package persistence

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// generation is the database as it was opened once, with those who read in it. A
// store that was opened on a full disk gets a second one, for writing, while the
// first is still read.
type generation struct {
	*pebble.DB
	readers
	lock *pebble.Lock
}

// newGeneration opens the files. NB: Pebble takes a lock for one database only,
// so each generation has its own, on what the store has locked for all of them.
func (s *Store) newGeneration(o *pebble.Options) (*generation, error) {
	lock, err := pebble.LockDirectory(s.dir, lockedFS{s.fs})
	if err != nil {
		return nil, err
	}
	o.Lock = lock
	db, err := openPebble(s.dir, o)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &generation{DB: db, readers: readers{gone: make(chan struct{})}, lock: lock}, nil
}

// Close closes the database. Nobody may read in it any more.
func (g *generation) Close() error { return errors.Join(g.DB.Close(), g.lock.Close()) }

// read counts one reader into the present generation, who must leave it. It is
// nil once the store is closed.
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

// lockedFS is a file system for somebody who has the lock already.
type lockedFS struct{ vfs.FS }

// Lock does nothing.
func (lockedFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// reopen opens a store that is open to read only for writing. Reads go on: new
// ones in the new generation, those that have begun in the old one. Its tables
// stay until they have ended.
func (s *Store) reopen() {
	old := s.db.Load()
	tables, err := liveTables(old.DB)
	if err == nil {
		s.kept.hold(tables)
		err = s.openDB(false)
	}
	if err != nil {
		s.die(fmt.Sprintf("open the store for writing: %v", err))
	}
	s.space.waiting, s.space.old = false, old
	old.shut()
	s.log.Info().Str("dir", s.dir).Msg("there is space again, the store is open for writing")
}

// closeOld closes the generation before, when nobody reads in it any more.
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
	for _, path := range s.kept.release() {
		if rerr := s.fs.Remove(path); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}

// keptTables are the tables of a generation that is still read. The one after it
// may be done with them; they are removed when the readers have left, or after a
// crash by Pebble at the next opening.
type keptTables struct {
	mu     sync.Mutex
	tables map[string]bool // by name; nil when none are kept
	paths  []string        // what would have been removed
}

// hold keeps these tables from now on.
func (k *keptTables) hold(tables []liveTable) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tables = make(map[string]bool, len(tables))
	for _, t := range tables {
		k.tables[tableName(t.number)] = true
	}
}

// keep says whether a file that is to be removed stays for now.
func (k *keptTables) keep(path, name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.tables[name] {
		return false
	}
	k.paths = append(k.paths, path)
	return true
}

// release keeps no more, and returns what is to be removed now.
func (k *keptTables) release() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	paths := k.paths
	k.tables, k.paths = nil, nil
	return paths
}
