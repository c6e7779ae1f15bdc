package homedir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// DemandFile refuses what is there and no file: opening a pipe waits for its other end.
func DemandFile(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no file but a folder, a pipe or a device", path)
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
