package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// example is the home that a first start on an empty folder makes.
//
//go:embed example
var example embed.FS

// Names inside a home folder that no text file has.
const (
	dataFolder  = "data"
	adminSocket = "admin.sock"
)

// ensureHome fills a missing or empty folder with the example home, and reports
// whether it did. A folder with anything in it is left as it is.
func ensureHome(dir string) (filled bool, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("look at home: %w", err)
	}
	if len(entries) > 0 {
		return false, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, fmt.Errorf("make home: %w", err)
	}
	inner, err := fs.Sub(example, "example")
	if err == nil {
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
	}
	if err != nil {
		return false, fmt.Errorf("fill home: %w", err)
	}
	return true, nil
}
