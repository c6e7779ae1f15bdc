package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/audit"
	"troupe/actors/bulk"
	"troupe/actors/hold"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/cmd/internal/homedir"
	"troupe/persistence"
	"troupe/persistence/backup"
	"troupe/persistence/folder"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// placedFile is in homedir.RestoringFolder, which has the files until all of them are checked: the names that are moved into
// the home at the end. A kill leaves the folder; the next restore begins again, and no server starts on such a home.
const placedFile = "placed"

// restoring is one restore.
type restoring struct {
	from     *backup.Backup
	source   string // where that is
	home     string
	dataOnly bool
	progress func(done, total int64)
	log      zerolog.Logger
	rename   func(from, to string) error // os.Rename, but in tests

	stage string
}

// restore brings a backup into a home that has no store: everything, or the store only. It says done when all sums are
// right, the store was verified as a whole, and has what the index counted.
func (r *restoring) restore(ctx context.Context) (counts backup.Counts, err error) {
	made := !homedir.Exists(r.home)
	if err := os.MkdirAll(r.home, 0o755); err != nil {
		return counts, err
	}
	lock, err := backup.Lock(r.home) // NB: so does a server
	if err != nil {
		return counts, err
	}
	defer func() { _ = lock.Close() }() // it was only locked
	r.stage = filepath.Join(r.home, homedir.RestoringFolder)
	if err := r.clean(); err != nil {
		return counts, err
	}
	if err := r.checkEmpty(); err != nil {
		return counts, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.clean())
		}
		if err != nil && made {
			_ = os.Remove(r.home) // it is empty, or not ours
		}
	}()
	if !r.dataOnly && !slices.ContainsFunc(r.from.Files, func(f backup.File) bool { return f.Path == home.IdentityFile }) {
		return counts, fmt.Errorf("the backup has no %s, so it is not one of a whole home: restore the store alone with --data-only, into a home that has the text files", home.IdentityFile)
	}
	if err := r.unpack(ctx); err != nil {
		return counts, err
	}
	if counts, err = r.prepare(ctx); err != nil {
		return counts, err
	}
	if differences := r.from.Counts.Differ(counts); len(differences) > 0 {
		return counts, fmt.Errorf("%w: %s", backup.ErrDamaged, strings.Join(differences, "; "))
	}
	return counts, r.moveIn()
}

// clean removes what a restore left that did not come to its end.
func (r *restoring) clean() error {
	placed, err := os.ReadFile(filepath.Join(r.stage, placedFile))
	if err == nil && !homedir.HasText(r.home) {
		var names []string
		if err := json.Unmarshal(placed, &names); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(r.stage, placedFile), err)
		}
		for _, name := range names {
			if err := os.RemoveAll(filepath.Join(r.home, name)); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(r.stage)
}

// checkEmpty refuses a home that has what would be restored.
func (r *restoring) checkEmpty() error {
	in := r.home
	if r.dataOnly {
		if !homedir.HasText(r.home) {
			return fmt.Errorf("%s has no %s, so it is not a home: leave --data-only out to restore all of it", r.home, home.IdentityFile)
		}
		in = homedir.Data(r.home)
	}
	entries, err := os.ReadDir(in)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	store, _ := os.ReadDir(homedir.Data(r.home)) // NB: what cannot be read has no entries
	switch lost := homedir.HasText(r.home) && !homedir.HoldsFiles(store); {
	case homedir.HoldsFiles(entries) && lost && !r.dataOnly:
		return fmt.Errorf("%s has its text files but no store; nothing was changed: bring back the store alone with --data-only, or give another --home", in)
	case homedir.HoldsFiles(entries):
		return fmt.Errorf("%s is not empty; nothing was changed: move it away, or give another --home", in)
	}
	return nil
}

// unpack writes and checks all files.
func (r *restoring) unpack(ctx context.Context) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(r.home, &disk); err == nil {
		if free := int64(disk.Bavail) * int64(disk.Bsize); free < r.from.Bytes() { //nolint:gosec,unconvert // types differ between systems
			return fmt.Errorf("%s has room for %s, and the backup needs %s", r.home, sizeText(free), sizeText(r.from.Bytes()))
		}
	}
	if err := os.Mkdir(r.stage, 0o700); err != nil {
		return err
	}
	if err := r.from.Unpack(ctx, r.stage, r.dataOnly, r.progress); err != nil {
		return err
	}
	return r.checkID()
}

// checkID refuses the store of another home.
func (r *restoring) checkID() error {
	err := persistence.CheckStoreID(filepath.Join(r.stage, homedir.DataFolder), filepath.Join(r.home, homedir.StoreIDFile))
	if errors.Is(err, persistence.ErrOtherStore) {
		return fmt.Errorf("%s says that another store belongs here than the backup has: remove it to use this one", filepath.Join(r.home, homedir.StoreIDFile))
	}
	return err
}

// prepare notes in the store and its audit log that it was restored, ends all sessions, pauses bulk jobs, and reads all of it.
func (r *restoring) prepare(ctx context.Context) (counts backup.Counts, err error) {
	dir := filepath.Join(r.stage, homedir.DataFolder)
	store, err := persistence.Open(dir, persistence.Options{Log: r.log})
	if err != nil {
		return counts, fmt.Errorf("the restored store cannot be opened: %w", err)
	}
	w := store.NewBatch(key.Meta)
	identity.DropSessions(w)
	err = errors.Join(bulk.PauseAll(store, w), hold.Restored{Moment: r.from.Moment, At: time.Now().UTC()}.Put(w))
	if err == nil {
		err = store.Commit(w)
	} else {
		w.Discard()
	}
	if err == nil {
		log := audit.Start(audit.Options{Store: store, Log: r.log})
		err = errors.Join(log.Record(ctx, statemachine.System, audit.StoreRestore, momentText(r.from.Moment)+" of "+r.source), log.Stop(ctx))
	}
	if err = errors.Join(err, store.Close()); err != nil {
		return counts, err
	}
	// NB: opened to be read: only then is everything checked.
	store, err = persistence.Open(dir, persistence.Options{Log: r.log, ReadOnly: true, VerifyBytesMax: -1})
	if err != nil {
		return counts, fmt.Errorf("the restored store cannot be opened: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	counted := make(chan error, 1)
	go func() {
		var err error
		counts, err = backup.Count(ctx, store)
		counted <- err
	}()
	_, damage := store.Verify(ctx)
	err = <-counted
	if damage != nil {
		err = fmt.Errorf("the restored store: %w", damage)
	}
	return counts, err
}

// moveIn moves what was restored into the home: the store first, and last the file that makes the home one.
func (r *restoring) moveIn() error {
	entries, err := os.ReadDir(r.stage)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.SortStableFunc(names, func(a, b string) int { return turnOf(a) - turnOf(b) })
	text, err := json.Marshal(names)
	if err == nil && !r.dataOnly {
		err = homedir.WriteWhole(filepath.Join(r.stage, placedFile), text, 0o600)
	}
	if err == nil {
		err = folder.Sync(r.stage)
	}
	for _, name := range names {
		if err == nil {
			err = r.rename(filepath.Join(r.stage, name), filepath.Join(r.home, name))
		}
		if err == nil {
			err = folder.Sync(r.home)
		}
	}
	if err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(r.stage), folder.Sync(r.home))
}

// turnOf is when a name is moved; the least comes first.
func turnOf(name string) int {
	switch name {
	case homedir.DataFolder:
		return 0
	case home.IdentityFile:
		return 2
	}
	return 1
}
