package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/file"
)

// creatingName is a file that exists while a store is being created. A
// directory with it and without FORMAT never held anything acknowledged.
const creatingName = "CREATING"

// lockName is Pebble's lock file. It alone does not make a directory a store.
const lockName = "LOCK"

// dirState is what a directory holds.
type dirState int

const (
	dirAbsent     dirState = iota
	dirEmpty               // nothing of anybody's
	dirUnfinished          // a creation that was cut off
	dirWhole               // a store; whether it is damaged is another question
)

// prepareDir locks the directory, checks what it holds, and creates a store when
// there is none and Options.IDFile demands none. It changes nothing in a directory
// with files that are not a store's.
func prepareDir(s *Store) (*pebble.Lock, error) {
	state, err := s.findStore()
	if err != nil {
		return nil, err
	}
	if state == dirAbsent {
		if err := makeDir(s.fs, s.dir); err != nil {
			return nil, err
		}
	}
	s.restrictDir()
	if err := s.holdFolder(s.dir); err != nil {
		return nil, err
	}
	lock, err := lockDirectory(s.fs, s.dir)
	if err != nil {
		return nil, err
	}
	s.undo = append(s.undo, lock.Close)
	// Another process may have been at work until the lock was ours.
	if state, err = inspect(s.fs, s.dir); err != nil {
		return nil, err
	}
	if state == dirWhole {
		if err := s.checkID(); err != nil {
			return nil, err
		}
		return lock, s.tidy()
	}
	return lock, create(s, lock)
}

// findStore reads which store Options.IDFile demands and what the directory holds.
// It locks the folder of Options.IDFile.
func (s *Store) findStore() (dirState, error) {
	if s.options.IDFile != "" {
		if err := s.holdFolder(s.fs.PathDir(s.options.IDFile)); err != nil {
			return dirAbsent, err
		}
	}
	state, err := inspect(s.fs, s.dir)
	if err != nil {
		return state, err
	}
	if s.ids.wanted, err = s.wantedID(); err != nil {
		return state, err
	}
	switch {
	case s.purpose.createOnly && state == dirWhole:
		return state, fmt.Errorf("%w: move %s away first; nothing was changed", ErrExists, s.dir)
	case s.purpose.createOnly:
		return state, s.removeIDFile()
	case s.ids.wanted != "" && state != dirWhole:
		return state, s.missing()
	case s.readOnly && state != dirWhole:
		return state, fmt.Errorf("%w: nothing to read there", ErrIncomplete)
	}
	return state, nil
}

// BesideFolder is a folder below that of the store, in which its user may keep what should be copied
// and lost with it. The store does not look into it.
const BesideFolder = "cluster"

// isForeign reports whether a name is no part of the store: lost+found is in the root of a mounted
// disk.
func isForeign(name string) bool { return name == BesideFolder || name == "lost+found" }

// inspect tells what dir holds without changing anything.
func inspect(fsys vfs.FS, dir string) (dirState, error) {
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return dirAbsent, nil
	}
	if err != nil {
		return dirAbsent, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return name == lockName || isForeign(name)
	})
	slices.Sort(names)
	hasTable := slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, ".sst") })
	switch {
	case len(names) == 0:
		return dirEmpty, nil
	case slices.Contains(names, formatName):
		return dirWhole, nil
	case slices.Contains(names, creatingName) && !hasTable, slices.Equal(names, []string{creatingName + file.TmpSuffix}):
		return dirUnfinished, nil
	case slices.Contains(names, integrity.CheckpointName):
		return dirAbsent, integrity.Damaged(formatName, "it is missing")
	}
	return dirAbsent, fmt.Errorf("%w: it holds %s but no %s; give an empty directory or a whole store",
		ErrIncomplete, some(names, 3), formatName)
}

// some lists at most n names.
func some(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}

// restrictDir gives the directory mode 0700: it holds what people wrote and the
// digests of credentials.
func (s *Store) restrictDir() {
	if s.options.FS != nil || s.readOnly {
		return // not the operating system's files, or not ours to change
	}
	info, err := os.Stat(s.dir)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return
	}
	if err := os.Chmod(s.dir, 0o700); err != nil {
		s.log.Warn().Str("dir", s.dir).Err(err).Msg("other users of this machine can read the store")
		return
	}
	s.log.Warn().Str("dir", s.dir).Str("was", info.Mode().Perm().String()).
		Msg("removed the access of other users to the store's directory")
}

func lockDirectory(fsys vfs.FS, dir string) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(dir, fsys)
	if err == nil {
		return lock, nil
	}
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return nil, err // the file could not even be made
	}
	return nil, lockedFault(dir)
}

// create makes an empty store. The order matters: CREATING is durable before
// the first file of Pebble's, FORMAT after the last, so that a crash leaves
// either nothing worth keeping or a whole store.
func create(s *Store, lock *pebble.Lock) error {
	if err := s.clear(); err != nil {
		return err
	}
	if err := file.Replace(s.fs, s.dir, creatingName, nil); err != nil {
		return err
	}
	o := pebbleOptions(s, lock)
	o.Logger = pebbleLog{log: s.log, die: func(reason string) { panic(reason) }}
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
	if err := s.assignID(); err != nil {
		return err
	}
	shards := s.options.Shards
	if shards == 0 {
		shards = defaultShards
	}
	if err := file.Replace(s.fs, s.dir, formatName, format{version: formatVersion, shards: shards}.encode()); err != nil {
		return err
	}
	s.log.Info().Str("dir", s.dir).Int("shards", shards).Msg("created a new store")
	return s.tidy()
}

// clear removes what a creation that was cut off left, all but CREATING: without
// it the rest would look like damage.
func (s *Store) clear() error {
	names, err := s.fs.List(s.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == lockName || name == creatingName || isForeign(name) {
			continue
		}
		if err := s.fs.Remove(s.fs.PathJoin(s.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// tidy removes what a crash can leave behind in a whole store: files that were
// being replaced, and CREATING.
func (s *Store) tidy() error {
	if s.readOnly {
		return nil
	}
	names, err := s.fs.List(s.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != creatingName && !strings.HasSuffix(name, file.TmpSuffix) {
			continue
		}
		if err := s.fs.Remove(s.fs.PathJoin(s.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// makeDir creates dir and what is missing above it, for this user only, and
// makes the new entries durable.
func makeDir(fsys vfs.FS, dir string) error {
	var made []string
	for d := dir; ; d = fsys.PathDir(d) {
		if _, err := fsys.Stat(d); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		made = append(made, d)
		if fsys.PathDir(d) == d {
			break
		}
	}
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, d := range made {
		if err := file.SyncDir(fsys, fsys.PathDir(d)); err != nil {
			return err
		}
	}
	return nil
}
