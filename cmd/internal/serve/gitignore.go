package serve

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"troupe/cmd/internal/homedir"
)

var ignored = []string{"/" + homedir.DataFolder + "/", "/" + homedir.AdminSocket, "/" + homedir.StoreIDFile}

// ignoreStoreID keeps the store's id out of git, so that a clone of the text files is a home that never had a store.
func ignoreStoreID(home string) error {
	path := filepath.Join(home, homedir.GitIgnoreFile)
	if err := homedir.DemandFile(path); err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	add := strings.Join(ignored, "\n") + "\n"
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		for line := range strings.Lines(string(text)) {
			if strings.TrimPrefix(strings.TrimSpace(line), "/") == homedir.StoreIDFile {
				return nil
			}
		}
		add = "/" + homedir.StoreIDFile + "\n"
		if len(text) > 0 && text[len(text)-1] != '\n' {
			add = "\n" + add
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(add)
	return errors.Join(err, f.Close())
}
