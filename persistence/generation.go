package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/engine"
)

// read counts the caller in as a reader of the present generation; the caller must
// call leave. It returns nil once the store is closed.
func (s *Store) read() *engine.Generation {
	for {
		g := s.db.Load()
		if g.Enter() {
			return g
		}
		if g == s.db.Load() {
			return nil
		}
	}
}

// reopen opens a read-only store for writing. Reads go on: new ones use the new
// generation, running ones the old one, whose tables are kept until they end. It is false
// when there was no room after all; then it is to be called again.
func (s *Store) reopen() bool {
	old := s.db.Load()
	tables, err := integrity.Tables(engine.Pebble(old))
	if err == nil {
		s.kept.Hold(tables)
		err = s.openDB(false)
	}
	if errors.Is(err, syscall.ENOSPC) {
		s.log.Warn().Err(err).Msg("there was not enough space to open the store for writing")
		return false
	}
	if err != nil {
		s.commits.Die(fmt.Sprintf("open the store for writing: %v", err))
	}
	s.space.waiting, s.space.old = false, old
	old.Shut()
	s.log.Info().Str("dir", s.dir).Msg("there is space again, the store is open for writing")
	return true
}

// closeOld closes the previous generation once it has no readers.
func (s *Store) closeOld() error {
	if s.space.old == nil {
		return nil
	}
	select {
	case <-s.space.old.Gone():
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
