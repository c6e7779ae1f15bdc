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

	"troupe/actors/hold"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/cmd/internal/homedir"
	"troupe/persistence"
	"troupe/persistence/backup"
	"troupe/persistence/key"
)

// stageFolder is below a home that is being restored, and has its files until all of them are checked. A kill leaves it;
// the next restore begins again, and no server starts on such a home, which lacks identity.yaml or a whole store.
const (
	stageFolder = ".restoring"
	placedFile  = "placed" // in it: the names that are moved into the home at the end
)

// restoring is one restore.
type restoring struct {
	from     backup.Backup
	home     string
	dataOnly bool
	progress func(done, total int64)
	log      zerolog.Logger

	stage string
}

// restored is what a restore has found.
type restored struct {
	index  *backup.Index
	counts backup.Counts
}

// restore brings a backup into a home that has no store: everything, or the store only. It says done when all sums are
// right, the store was verified as a whole, and has what the index counted.
func (r *restoring) restore(ctx context.Context) (_ *restored, err error) {
	if err := os.MkdirAll(r.home, 0o755); err != nil {
		return nil, err
	}
	lock, err := lockFolder(r.home)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Close() }() // it was only locked
	r.stage = filepath.Join(r.home, stageFolder)
	if err := r.clean(); err != nil {
		return nil, err
	}
	if err := r.checkEmpty(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.clean())
		}
	}()
	out, err := r.unpack(ctx)
	if err != nil {
		return nil, err
	}
	if out.counts, err = r.prepare(ctx, out.index); err != nil {
		return nil, err
	}
	if differences := out.index.Counts.Differ(out.counts); len(differences) > 0 {
		return nil, fmt.Errorf("%w: %s", backup.ErrDamaged, strings.Join(differences, "; "))
	}
	return out, r.place()
}

// lockFolder keeps other restores and servers out of a home.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%s is in use by another process", dir), f.Close())
	}
	return f, nil
}

func (r *restoring) data() string { return homedir.Data(r.home) }

// clean removes what a restore left that did not come to its end.
func (r *restoring) clean() error {
	inData := filepath.Join(r.data(), stageFolder)
	if !homedir.Exists(r.stage) && !homedir.Exists(inData) {
		return nil
	}
	if !isStore(r.data()) && homedir.Exists(inData) { // all that is there came from it
		if err := removeAll(r.data(), func(name string) bool { return name != "lost+found" && name != stageFolder }); err != nil {
			return err
		}
	}
	if placed, err := os.ReadFile(filepath.Join(r.stage, placedFile)); err == nil && !isText(r.home) {
		var names []string
		if err := json.Unmarshal(placed, &names); err == nil { // else it was cut off, and nothing was placed
			if slices.Contains(names, homedir.DataFolder) && homedir.Exists(r.data()) { // NB: it may be a disk of its own, which stays
				if err := removeAll(r.data(), func(name string) bool { return name != "lost+found" }); err != nil {
					return err
				}
			}
			if err := removeAll(r.home, func(name string) bool { return name != homedir.DataFolder && slices.Contains(names, name) }); err != nil {
				return err
			}
		}
	}
	return errors.Join(os.RemoveAll(inData), os.RemoveAll(r.stage))
}

func removeAll(dir string, which func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if which(e.Name()) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// isStore says whether a folder has the file that makes it a store; it is the last one that is placed.
func isStore(dir string) bool { return homedir.Exists(filepath.Join(dir, storeMark)) }

const storeMark = "FORMAT"

// checkEmpty refuses a home that has what would be restored.
func (r *restoring) checkEmpty() error {
	in := r.home
	if r.dataOnly {
		if !homedir.HasText(r.home) {
			return fmt.Errorf("%s has no %s, so it is no home: leave --data-only out to restore all of it", r.home, home.IdentityFile)
		}
		in = r.data()
	}
	entries, err := os.ReadDir(in)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if inData, err := os.ReadDir(r.data()); err == nil && !homedir.HoldsFiles(inData) { // an empty disk, perhaps
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == homedir.DataFolder })
	}
	if homedir.HoldsFiles(entries) {
		return fmt.Errorf("%s is not empty; nothing was changed: move it away, or give another --home", in)
	}
	return nil
}

// unpack writes and checks all files. A folder of data that is there is a disk of its own, perhaps, and has room for it.
func (r *restoring) unpack(ctx context.Context) (*restored, error) {
	if err := os.Mkdir(r.stage, 0o700); err != nil {
		return nil, err
	}
	roomIn := r.home
	if homedir.Exists(r.data()) {
		roomIn = r.data()
		inData := filepath.Join(r.data(), stageFolder)
		if err := os.Mkdir(inData, 0o700); err != nil {
			return nil, err
		}
		whole, err := filepath.Abs(inData)
		if err == nil {
			err = os.Symlink(whole, filepath.Join(r.stage, homedir.DataFolder))
		}
		if err != nil {
			return nil, err
		}
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(roomIn, &disk); err == nil && int64(disk.Bavail)*disk.Bsize < r.from.Bytes() { //nolint:unconvert // other systems have other types
		return nil, fmt.Errorf("%s has room for %s, and the backup needs %s", roomIn, sizeText(int64(disk.Bavail)*disk.Bsize), sizeText(r.from.Bytes()))
	}
	wanted := backup.Everything
	if r.dataOnly {
		wanted = backup.DataOnly
	}
	index, err := r.from.Unpack(ctx, r.stage, wanted, r.progress)
	if err != nil {
		return nil, err
	}
	if !isStore(filepath.Join(r.stage, homedir.DataFolder)) {
		return nil, fmt.Errorf("%w: it has no store", backup.ErrDamaged)
	}
	return &restored{index: index}, r.checkID()
}

// checkID refuses the store of another home.
func (r *restoring) checkID() error {
	err := persistence.CheckStoreID(filepath.Join(r.stage, homedir.DataFolder), filepath.Join(r.home, homedir.StoreIDFile))
	if errors.Is(err, persistence.ErrOtherStore) {
		return fmt.Errorf("%s says that another store belongs here than the backup has: remove it to use this one", filepath.Join(r.home, homedir.StoreIDFile))
	}
	return err
}

// prepare notes in the store that it was restored, ends all sessions, and reads all of it.
func (r *restoring) prepare(ctx context.Context, index *backup.Index) (counts backup.Counts, err error) {
	dir := filepath.Join(r.stage, homedir.DataFolder)
	store, err := persistence.Open(dir, persistence.Options{Log: r.log})
	if err != nil {
		return counts, fmt.Errorf("the restored store cannot be opened: %w", err)
	}
	w := store.NewBatch(key.Meta)
	identity.DropSessions(w)
	err = hold.Restored{Moment: index.Moment, At: time.Now().UTC()}.Put(w)
	if err == nil {
		err = store.Commit(w)
	} else {
		w.Discard()
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
	if _, err := store.Verify(ctx); err != nil {
		return counts, fmt.Errorf("the restored store: %w", err)
	}
	return backup.Count(ctx, store)
}

// place moves what was restored into the home: the store first, and last the file that makes the home one.
func (r *restoring) place() error {
	entries, err := os.ReadDir(r.stage)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.SortStableFunc(names, func(a, b string) int { return placeOf(a) - placeOf(b) })
	text, err := json.Marshal(names)
	if err == nil && !r.dataOnly {
		err = homedir.WriteWhole(filepath.Join(r.stage, placedFile), text, 0o600)
	}
	if err == nil {
		err = syncDir(r.stage)
	}
	for _, name := range names {
		switch {
		case err != nil:
		case name == homedir.DataFolder && homedir.Exists(r.data()):
			err = r.placeData()
		default:
			err = os.Rename(filepath.Join(r.stage, name), filepath.Join(r.home, name))
		}
		if err == nil {
			err = syncDir(r.home)
		}
	}
	if err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(r.stage), syncDir(r.home))
}

func placeOf(name string) int {
	switch name {
	case homedir.DataFolder:
		return 0
	case home.IdentityFile:
		return 2
	}
	return 1
}

// placeData moves the files of the store into its folder, which was there.
func (r *restoring) placeData() error {
	from := filepath.Join(r.data(), stageFolder)
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for last := range 2 {
		for _, e := range entries {
			if (e.Name() == storeMark) != (last == 1) {
				continue
			}
			if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(r.data(), e.Name())); err != nil {
				return err
			}
		}
		if err := syncDir(r.data()); err != nil {
			return err
		}
	}
	return os.Remove(from)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
