package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// cgroups is where Linux shows its control groups.
const cgroups = "/sys/fs/cgroup"

// Setting is a file of a control group and what is written into it.
type Setting [2]string

// Group makes a control group with the settings of version 1, below the folder of a controller, or those of version 2.
// Only root can. The folder's file cgroup.procs takes processes, and os.Remove removes it once they are gone.
func Group(controller, name string, v1, v2 []Setting) (dir string, err error) {
	return groupBelow(cgroups, controller, name, v1, v2)
}

func groupBelow(root, controller, name string, v1, v2 []Setting) (string, error) {
	dir := filepath.Join(root, controller, name)
	err := group(dir, v1)
	if err != nil {
		dir = filepath.Join(root, name)
		if err2 := group(dir, v2); err2 != nil {
			return "", fmt.Errorf("make a control group: %w", errors.Join(err, err2))
		}
	}
	return dir, nil
}

func group(dir string, settings []Setting) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, s := range settings {
		if err := SetGroup(filepath.Join(dir, s[0]), s[1]); err != nil {
			return errors.Join(err, os.Remove(dir))
		}
	}
	return nil
}

// SetGroup writes a file that the kernel has made; a folder that is not a control group has none.
func SetGroup(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
