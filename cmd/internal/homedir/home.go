// Package homedir is the folder of a home: what lies in it, whether a folder is one, how an empty one is filled, and
// whether a server runs on it. It knows no setting and opens no store.
package homedir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"troupe/actors/cluster"
	"troupe/actors/home"
	"troupe/gateway/admin"
	"troupe/persistence"
	"troupe/statemachine"
)

const (
	DataFolder  = "data"
	AdminSocket = "admin.sock"

	StoreIDFile   = ".store" // which store belongs to the home
	GitIgnoreFile = ".gitignore"
	fillingFile   = ".filling" // the example has not been written whole yet

	RestoringFolder = ".restoring" // what a restore brings in, until all of it is checked
)

// Load reads the text files of a home. With faults, the error is document.Faults, and the set has what could be read.
func Load(dir string) (*home.Set, error) {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		return &home.Set{}, err
	}
	return home.Load(os.DirFS(dir), parser)
}

// Data is the folder of the store of a home.
func Data(dir string) string { return filepath.Join(dir, DataFolder) }

// Ensure fills a missing or empty folder with an example home, and reports whether it did.
func Ensure(dir string, example fs.FS) (filled bool, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read home: %w", err)
	}
	if err := demandRestored(dir); err != nil {
		return false, err
	}
	cutOff := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == fillingFile })
	if HoldsFiles(entries) && !cutOff {
		if !isHome(dir) {
			return false, fmt.Errorf("%s has files but no %s, so it is not a home: give --home a home, or an empty or missing folder", dir, home.IdentityFile)
		}
		return false, nil
	}
	if err := fill(dir, example); err != nil {
		return false, fmt.Errorf("fill home: %w", err)
	}
	return true, nil
}

// HoldsFiles reports whether a folder has more than a new disk and a new working tree.
func HoldsFiles(entries []fs.DirEntry) bool {
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != "lost+found" && e.Name() != ".git" })
}

// While it does, fillingFile is there. Several may fill a home at once, as starts do that find it empty: each file comes whole,
// and one that is there stays.
func fill(dir string, example fs.FS) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	mark := filepath.Join(dir, fillingFile)
	if err := os.WriteFile(mark, nil, 0o644); err != nil {
		return err
	}
	err := fs.WalkDir(example, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasPrefix(d.Name(), "..") { // how Kubernetes keeps the files of a volume
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		target := filepath.Join(dir, filepath.FromSlash(name))
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		text, err := fs.ReadFile(example, name)
		if err != nil {
			return err
		}
		return addFile(target, text)
	})
	if err != nil {
		return err
	}
	if err := home.WriteSchemas(dir); err != nil {
		return err
	}
	if err := os.Remove(mark); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// addFile makes a file that is not there yet.
func addFile(path string, text []byte) error {
	if Exists(path) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), fillingFile+"-")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it may be gone
	}
	return err
}

// The home of a node of a cluster needs no text files.
func isHome(dir string) bool { return HasText(dir) || cluster.Exists(NodeFolder(dir)) }

// HasText reports whether the folder has the text files of a home.
func HasText(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, home.IdentityFile))
	return !errors.Is(err, fs.ErrNotExist)
}

// demandRestored refuses a home that a restore has not brought in whole.
func demandRestored(dir string) error {
	store, _ := os.ReadDir(Data(dir)) // NB: what cannot be read has no entries
	if !Exists(filepath.Join(dir, RestoringFolder)) || HasText(dir) && HoldsFiles(store) {
		return nil
	}
	return fmt.Errorf("a restore into %s runs or was interrupted: wait for it, or run the same `troupe store restore` again, which starts over", dir)
}

// Demand refuses a folder that is not a home, for commands that do not make one.
func Demand(dir string) error {
	if err := demandRestored(dir); err != nil {
		return err
	}
	if isHome(dir) {
		return nil
	}
	if entries, _ := os.ReadDir(dir); HoldsFiles(entries) { // NB: what cannot be read has no entries
		return fmt.Errorf("there is no home in %s: it has files but no %s; give another --home", dir, home.IdentityFile)
	}
	return fmt.Errorf("there is no home in %s; give --home, or run troupe serve to make one", dir)
}

// SettingsFile is where settings stand in a home.
const SettingsFile = "troupe.yaml"

// NodeFolder is where a home's node of a cluster keeps its identity.
func NodeFolder(home string) string { return filepath.Join(home, DataFolder, persistence.BesideFolder) }

// DemandFile refuses what is there and no file: opening a pipe waits for its other end.
func DemandFile(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	return nil
}

// Exists reports whether something has the name, or hides whether it does.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// CanFill refuses a folder in which no file can be made. It leaves it as it was.
func CanFill(dir string) error {
	missing := dir // the first of the folders that have to be made
	for parent := filepath.Dir(dir); !Exists(parent) && parent != filepath.Dir(parent); parent = filepath.Dir(parent) {
		missing = parent
	}
	if !Exists(dir) {
		defer func() { _ = os.RemoveAll(missing) }()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, SettingsFile+".*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// AppendDurably adds to a file, or leaves what was in it.
func AppendDurably(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	had, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		err = errors.Join(err, f.Truncate(had))
	}
	return errors.Join(err, f.Close())
}

// WriteWhole puts a file in the place of another one, so that nobody ever reads a part of it.
func WriteWhole(path string, text []byte, mode fs.FileMode) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// AskMax is how long another server may take to accept a connection.
const AskMax = 5 * time.Second

// Dial connects to the server that runs on a home; admin.ErrNoServer when none does.
func Dial(ctx context.Context, dir string) (*admin.Client, error) {
	return admin.Dial(ctx, filepath.Join(dir, AdminSocket))
}

// AloneAt refuses a home on which another server runs: it would answer at the socket.
func AloneAt(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, AskMax)
	defer cancel()
	if _, err := Dial(ctx, dir); err != nil {
		return nil
	}
	return fmt.Errorf("%w: a server answers at %s; stop it first, or use another --home", persistence.ErrLocked, filepath.Join(dir, AdminSocket))
}

// AwaitStore calls open again while another process has the store of a home, at most for waitMax. waiting is told of it once.
func AwaitStore(ctx context.Context, waitMax time.Duration, waiting func(error), open func() error) error {
	const pause = 250 * time.Millisecond
	begun, err := time.Now(), open()
	if errors.Is(err, persistence.ErrLocked) {
		waiting(err)
	}
	for errors.Is(err, persistence.ErrLocked) && time.Since(begun) < waitMax {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		err = open()
	}
	return err
}

// IsServed reports whether a server runs on the home.
func IsServed(ctx context.Context, dir string) bool {
	ctx, cancel := context.WithTimeout(ctx, AskMax)
	defer cancel()
	_, err := Dial(ctx, dir)
	return !errors.Is(err, admin.ErrNoServer)
}
