package persistence

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/disk"
	"troupe/persistence/internal/engine"
)

// BesideFolder is a folder below that of the store, in which its user may keep what should be copied
// and lost with it. The store does not look into it.
const BesideFolder = disk.BesideFolder

// wrapFS builds the file system that the store works on.
func (s *Store) wrapFS() {
	s.fs = s.options.FS
	if s.fs == nil {
		checked, closer := vfs.WithDiskHealthChecks(vfs.Default, slowDiskMin, nil, s.diskSlow)
		s.fs = checked
		s.undo = append(s.undo, closer.Close)
	}
	s.fs = vfs.OnDiskFull(s.fs, func() { s.diskFull("a write found no space") })
	s.fs = disk.Files{FS: s.fs, Dir: s.dir, FreeBytesMin: s.options.FreeBytesMin, Kept: &s.kept, Fresh: &s.freshLogs, Stop: s.stop}
	s.folder = disk.Identity{Folder: disk.Folder{FS: s.fs, Dir: s.dir}, File: s.options.IDFile}
}

// hold locks a folder as long as the store is open.
func (s *Store) hold(dir string) error {
	if s.options.FS != nil {
		return nil // not the operating system's files
	}
	held, err := disk.Hold(dir, s.log)
	if err == nil {
		s.undo = append(s.undo, held.Close)
	}
	return err
}

// prepareDir locks the directory, checks what it holds, and creates a store when there is none and Options.IDFile
// requires none. It changes nothing in a directory with files that are not a store's.
func prepareDir(s *Store) (*pebble.Lock, error) {
	state, err := s.findStore()
	if err != nil {
		return nil, err
	}
	if state == disk.Absent {
		if err := s.folder.Make(); err != nil {
			return nil, err
		}
	}
	if s.options.FS == nil && !s.readOnly { // the operating system's files, and ours to change
		disk.Restrict(s.dir, s.log)
	}
	if err := s.hold(s.dir); err != nil {
		return nil, err
	}
	lock, err := disk.Lock(s.folder.Folder)
	if err != nil {
		return nil, err
	}
	s.undo = append(s.undo, lock.Close)
	// Another process may have been at work until the lock was ours.
	if state, err = s.folder.Inspect(); err != nil {
		return nil, err
	}
	if state == disk.Whole {
		if err := s.folder.Check(); err != nil {
			return nil, err
		}
		if s.readOnly {
			return lock, nil
		}
		return lock, s.folder.Tidy()
	}
	return lock, create(s, lock)
}

// findStore reads which store Options.IDFile requires and what the directory holds. It locks the folder of Options.IDFile.
func (s *Store) findStore() (disk.State, error) {
	if s.options.IDFile != "" {
		if err := s.hold(s.fs.PathDir(s.folder.File)); err != nil {
			return disk.Absent, err
		}
	}
	state, err := s.folder.Inspect()
	if err != nil {
		return state, err
	}
	if err = s.folder.ReadDemand(); err != nil {
		return state, err
	}
	switch {
	case s.purpose.createOnly && state == disk.Whole:
		return state, fmt.Errorf("%w: move %s away first; nothing was changed", ErrExists, s.dir)
	case s.purpose.createOnly:
		return state, s.folder.DropDemand()
	case s.folder.Wanted != "" && state != disk.Whole:
		return state, s.folder.Missing()
	case s.readOnly && state != disk.Whole:
		return state, fmt.Errorf("%w: nothing to read there", ErrIncomplete)
	}
	return state, nil
}

// create makes an empty store. The order matters: CREATING is durable before the first file of Pebble's, FORMAT after
// the last, so that a crash leaves either nothing worth keeping or a whole store.
func create(s *Store, lock *pebble.Lock) error {
	if err := s.folder.BeginCreation(); err != nil {
		return err
	}
	o := pebbleOptions(s, lock)
	o.Logger = engine.Log{Log: s.log, Die: func(reason string) { panic(reason) }}
	o.ErrorIfExists = true
	db, err := integrity.OpenPebble(s.dir, o)
	if err != nil {
		return err
	}
	// NB: closed here and opened again by Open. The first log is made before the
	// newest format is in force, and logs of the older one do not show damage.
	if err := db.Close(); err != nil {
		return err
	}
	if err := s.newRecorder().Close(); err != nil {
		return err
	}
	if err := s.folder.AssignID(); err != nil {
		return err
	}
	shards := s.options.Shards
	if shards == 0 {
		shards = defaultShards
	}
	if err := s.folder.SetFormat(shards, false); err != nil {
		return err
	}
	s.log.Info().Str("dir", s.dir).Int("shards", shards).Msg("created a new store")
	return s.folder.Tidy()
}

// keepReplicated notes that the shards have replicas: from then on nobody opens the store alone.
func (s *Store) keepReplicated() error {
	if s.replicated {
		return nil
	}
	if err := s.folder.SetFormat(s.shards, true); err != nil {
		return fmt.Errorf("note that the store has replicas: %w", err)
	}
	s.log.Info().Msg("the store is one of a cluster's from now on")
	s.replicated = true
	return nil
}

// check looks at the files before any of them is changed.
func check(s *Store, lock *pebble.Lock) (present disk.Format, found integrity.Found, err error) {
	if present, err = s.folder.Format(); err != nil {
		return disk.Format{}, integrity.Found{}, err
	}
	if want := s.options.Shards; want != 0 && want != present.Shards {
		return disk.Format{}, integrity.Found{}, fmt.Errorf("the store has %d shards and the options ask for %d: "+
			"the number is fixed when a store is created", present.Shards, want)
	}
	o := pebbleOptions(s, lock)
	o.Logger = engine.Log{Log: s.log, Die: func(reason string) { panic(reason) }}
	found, err = integrity.Check(integrity.CheckOptions{FS: s.fs, Dir: s.dir, Open: o, TableBytesMax: s.options.VerifyBytesMax})
	return present, found, err
}

// CheckStoreID says whether the store in dir is the one that a file requires, as Open does with Options.IDFile. It opens no
// store, and locks and changes nothing, so it may be called while another process has the store open. It returns nil when
// they fit, or the file requires nothing; ErrMissing or ErrOtherStore when they do not.
func CheckStoreID(dir, idFile string) error { return disk.CheckID(vfs.Default, dir, idFile) }
