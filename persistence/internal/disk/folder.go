// Package disk is the folder of a store as a file system shows it: what it holds, which format
// it has and which store it is, who has it locked, how much room there is, and how files are
// made in it so that a full disk is noticed in time. It knows neither rows nor commits.
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/file"
)

// Folder is where a store is, or may be.
type Folder struct {
	FS  vfs.FS
	Dir string
}

// ErrIncomplete: the folder is neither empty nor a whole store.
var ErrIncomplete = errors.New("directory holds no whole store")

// CreatingName is a file that exists while a store is being created. A
// directory with it and without FORMAT never held anything acknowledged.
const CreatingName = "CREATING"

// LockName is Pebble's lock file. It alone does not make a directory a store.
const LockName = "LOCK"

// State is what a directory holds.
type State int

const (
	Absent     State = iota
	Empty            // nothing of anybody's
	Unfinished       // a creation that was cut off
	Whole            // a store; whether it is damaged is another question
)

// BesideFolder is a folder below that of the store, in which its user may keep what should be copied
// and lost with it. The store does not look into it.
const BesideFolder = "cluster"

// isForeign reports whether a name is not part of the store: lost+found is in the root of a mounted disk.
func isForeign(name string) bool { return name == BesideFolder || name == "lost+found" }

// Inspect tells what the folder holds without changing anything.
func (f Folder) Inspect() (State, error) {
	names, err := f.FS.List(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Absent, nil
	}
	if err != nil {
		return Absent, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return name == LockName || isForeign(name)
	})
	slices.Sort(names)
	hasTable := slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, ".sst") })
	switch {
	case len(names) == 0:
		return Empty, nil
	case slices.Contains(names, FormatName):
		return Whole, nil
	case slices.Contains(names, CreatingName) && !hasTable, slices.Equal(names, []string{CreatingName + file.TmpSuffix}):
		return Unfinished, nil
	case slices.Contains(names, integrity.CheckpointName):
		return Absent, integrity.Damaged(FormatName, "it is missing")
	}
	return Absent, fmt.Errorf("%w: it holds %s but no %s; give an empty directory or a whole store",
		ErrIncomplete, some(names, 3), FormatName)
}

// some lists at most n names.
func some(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}

// Restrict gives a folder of the operating system's mode 0700: it holds what people wrote and the
// digests of credentials.
func Restrict(dir string, log zerolog.Logger) {
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return // whoever opens the folder says what is wrong with it
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		log.Warn().Str("dir", dir).Err(err).Msg("other users of this machine can read the store")
		return
	}
	log.Warn().Str("dir", dir).Str("was", info.Mode().Perm().String()).Msg("removed the access of other users to the store's directory")
}

// BeginCreation makes the folder one in which a store is being created. It removes what a creation
// that was cut off left.
func (f Folder) BeginCreation() error {
	if err := f.clear(); err != nil {
		return err
	}
	return file.Replace(f.FS, f.Dir, CreatingName, nil)
}

// clear removes what a creation that was cut off left, all but CREATING: without it the rest would look like damage.
func (f Folder) clear() error {
	names, err := f.FS.List(f.Dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == LockName || name == CreatingName || isForeign(name) {
			continue
		}
		if err := f.FS.Remove(f.FS.PathJoin(f.Dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// CheckpointPrefix begins the names of folders below that of a store, each with a checkpoint of it.
const CheckpointPrefix = "checkpoint-"

// CopyMarks makes the files in another folder, which are those of a store, the store that is in this one.
func (f Folder) CopyMarks(to string) error {
	for _, name := range []string{IDName, FormatName} {
		data, err := file.Read(f.FS, f.FS.PathJoin(f.Dir, name))
		if errors.Is(err, fs.ErrNotExist) && name == IDName {
			continue // a store without one gets it when it is opened
		}
		if err == nil {
			err = file.Replace(f.FS, to, name, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Tidy removes what a crash can leave behind in a whole store: files that were being replaced, CREATING, and checkpoints.
func (f Folder) Tidy() error {
	names, err := f.FS.List(f.Dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		path, err := f.FS.PathJoin(f.Dir, name), error(nil)
		switch {
		case name == CreatingName, strings.HasSuffix(name, file.TmpSuffix):
			err = f.FS.Remove(path)
		case strings.HasPrefix(name, CheckpointPrefix):
			err = f.FS.RemoveAll(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Make creates the folder and what is missing above it, for this user only, and makes the new entries durable.
func (f Folder) Make() error {
	var made []string
	for d := f.Dir; ; d = f.FS.PathDir(d) {
		if _, err := f.FS.Stat(d); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		made = append(made, d)
		if f.FS.PathDir(d) == d {
			break
		}
	}
	if err := f.FS.MkdirAll(f.Dir, 0o700); err != nil {
		return err
	}
	for _, d := range made {
		if err := file.SyncDir(f.FS, f.FS.PathDir(d)); err != nil {
			return err
		}
	}
	return nil
}
