package endtoend

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// built is where the programs are; written by TestMain, then read only.
var built struct {
	folder string
	// nosync builds the program of the control, once, when it is asked for.
	nosync func() (string, error)
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "troupe")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	built.folder = folder
	built.nosync = sync.OnceValues(func() (string, error) { return build("nosync", "-X troupe/persistence.mutant=nosync") })
	if _, err := build("troupe", ""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

func build(name, linked string) (string, error) {
	path := filepath.Join(built.folder, name)
	out, err := exec.Command("go", "build", "-ldflags", linked, "-o", path, "troupe/cmd/troupe").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the program with -ldflags %q: %w\n%s", linked, err, out)
	}
	return path, nil
}

func binary() string {
	noteSources()
	return filepath.Join(built.folder, "troupe")
}

// noteSources reads what the program is built from. Go keeps the results of tests
// and repeats them while the files that a test opened are the same; those that
// only the compiler opens it does not know of.
var noteSources = sync.OnceFunc(func() {
	for _, folder := range []string{"actors", "bench", "cmd", "gateway", "persistence", "statemachine"} {
		_ = filepath.WalkDir(filepath.Join("../../..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() && !strings.HasSuffix(path, "_test.go") {
				_, err = os.ReadFile(path)
			}
			if err == nil && entry.Name() == "node_modules" {
				return fs.SkipDir
			}
			return err
		})
	}
})
