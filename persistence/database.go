package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/disk"
	"troupe/persistence/internal/engine"
)

// reopen opens a read-only store for writing. Reads go on: new ones use the new generation, running ones the old one,
// whose tables are kept until they end. It is false when there was no room after all; then it is to be called again.
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

// openDB opens the files, which were checked before. Unless they are only read, it begins to record what is durable.
func (s *Store) openDB(readOnly bool) error {
	o := pebbleOptions(s, nil)
	o.ReadOnly = readOnly
	o.EventListener = listener(s)
	o.Logger = engine.Log{Log: s.log, Die: s.commits.Die}
	o.ErrorIfNotExists = true
	g, err := engine.Open(s.fs, s.dir, o)
	if err != nil {
		return err
	}
	if !readOnly {
		if err := s.recorder.Start(func() ([]integrity.Table, error) { return integrity.Tables(engine.Pebble(g)) }); err != nil {
			return errors.Join(err, g.Close())
		}
	}
	s.db.Store(g)
	return nil
}

// newRecorder returns what keeps the integrity checkpoint.
func (s *Store) newRecorder() *integrity.Recorder {
	return integrity.Record(integrity.RecordOptions{
		FS: s.fs, Dir: s.dir, Interval: s.options.CheckpointInterval, LogBytes: s.options.logBytes(), SpareBytes: 2 * disk.LogAhead,
		Opened: s.started, Log: s.log, Fatal: s.commits.Die,
	})
}

// closeDB closes the database and, when that went well, says so in the integrity checkpoint.
func (s *Store) closeDB() error {
	s.recorder.Stop()
	if err := errors.Join(s.closeOld(), s.db.Load().Close()); err != nil {
		return err
	}
	if s.readOnly || s.space.waiting {
		return nil
	}
	return s.recorder.Close()
}
