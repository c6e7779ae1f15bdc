package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"troupe/actors/cluster"
	"troupe/actors/home"
)

// example is the home that a first start on an empty folder makes.
//
//go:embed example
var example embed.FS

// Names inside a home folder that no text file has.
const (
	dataFolder  = "data"
	adminSocket = "admin.sock"

	storeIDFile   = ".store" // which store belongs to the home
	gitIgnoreFile = ".gitignore"
	fillingFile   = ".filling" // the example has not been written whole yet
)

// ensureHome fills a missing or empty folder with the example home, and reports
// whether it did. A folder with anything in it is left as it is, and must be a home;
// one whose filling was cut off is filled again.
func ensureHome(dir string) (filled bool, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("look at home: %w", err)
	}
	cutOff := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == fillingFile })
	if holdsFiles(entries) && !cutOff {
		if !isHome(dir) {
			return false, fmt.Errorf("%s holds files but no %s, so it is not a home: give --home an empty or missing folder, or a home", dir, home.IdentityFile)
		}
		return false, nil
	}
	if err := fillHome(dir); err != nil {
		return false, fmt.Errorf("fill home: %w", err)
	}
	return true, nil
}

// holdsFiles reports whether a folder has more than a new disk and a new working tree.
func holdsFiles(entries []fs.DirEntry) bool {
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != "lost+found" && e.Name() != ".git" })
}

// fillHome writes the example, with the schemas that its files name for editors. While it does, fillingFile is there.
func fillHome(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	mark := filepath.Join(dir, fillingFile)
	if err := os.WriteFile(mark, nil, 0o644); err != nil {
		return err
	}
	inner, err := fs.Sub(example, "example")
	if err != nil {
		return err
	}
	err = fs.WalkDir(inner, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dir, filepath.FromSlash(name))
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		text, err := fs.ReadFile(inner, name)
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

// isHome reports whether the folder has what no home is without. That of a node of a cluster
// needs no text files.
func isHome(dir string) bool { return hasText(dir) || cluster.Exists(nodeFolder(dir)) }

// hasText reports whether the folder has the text files of a home. One that cannot
// be looked at has them: who reads it gets the reason.
func hasText(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, home.IdentityFile))
	return !errors.Is(err, fs.ErrNotExist)
}

// wantFile refuses what is there and no file: opening a pipe waits for its other end.
// A secret is not asked for, because it may come through a pipe.
func wantFile(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no file but a folder, a pipe or a device", path)
	}
	return nil
}

// wantHome refuses a folder that is no home, for commands that do not make one.
func wantHome(dir string) error {
	if isHome(dir) {
		return nil
	}
	if entries, _ := os.ReadDir(dir); holdsFiles(entries) { // NB: what cannot be read has no entries
		return fmt.Errorf("there is no home in %s: it holds files but no %s; give --home a home", dir, home.IdentityFile)
	}
	return fmt.Errorf("there is no home in %s; give --home, or run troupe serve to make one", dir)
}
