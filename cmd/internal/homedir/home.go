// Package homedir is the folder of a home: what lies in it, whether a folder is one, how an empty one is filled, and
// whether a server runs on it. It knows no setting and opens no store.
package homedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"troupe/actors/cluster"
	"troupe/actors/home"
	"troupe/persistence"
	"troupe/statemachine"
)

const (
	DataFolder  = "data"
	AdminSocket = "admin.sock"

	StoreIDFile   = ".store" // which store belongs to the home
	GitIgnoreFile = ".gitignore"
	fillingFile   = ".filling" // the example has not been written whole yet
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
		return false, fmt.Errorf("look at home: %w", err)
	}
	cutOff := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == fillingFile })
	if HoldsFiles(entries) && !cutOff {
		if !isHome(dir) {
			return false, fmt.Errorf("%s holds files but no %s, so it is not a home: give --home an empty or missing folder, or a home", dir, home.IdentityFile)
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

// While it does, fillingFile is there.
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
		target := filepath.Join(dir, filepath.FromSlash(name))
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		text, err := fs.ReadFile(example, name)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o644)
	})
	if err != nil {
		return err
	}
	if err := home.WriteSchemas(dir); err != nil {
		return err
	}
	return os.Remove(mark)
}

// That of a node of a cluster needs no text files.
func isHome(dir string) bool { return HasText(dir) || cluster.Exists(NodeFolder(dir)) }

// HasText reports whether the folder has the text files of a home.
func HasText(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, home.IdentityFile))
	return !errors.Is(err, fs.ErrNotExist)
}

// Demand refuses a folder that is no home, for commands that do not make one.
func Demand(dir string) error {
	if isHome(dir) {
		return nil
	}
	if entries, _ := os.ReadDir(dir); HoldsFiles(entries) { // NB: what cannot be read has no entries
		return fmt.Errorf("there is no home in %s: it holds files but no %s; give --home a home", dir, home.IdentityFile)
	}
	return fmt.Errorf("there is no home in %s; give --home, or run troupe serve to make one", dir)
}

// SettingsFile is where settings stand in a home.
const SettingsFile = "troupe.yaml"

// NodeFolder is where a home's node of a cluster keeps its identity.
func NodeFolder(home string) string {
	return filepath.Join(home, DataFolder, persistence.BesideFolder)
}
