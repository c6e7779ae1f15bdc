package endtoend

import (
	"fmt"
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
	built.nosync = sync.OnceValues(func() (string, error) { return build("nosync", "mut_nosync") })
	if _, err := build("troupe", ownTags, os.Getenv("TROUPE_TEST_TAGS")); err != nil {
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

// build builds the program under a name and returns its path.
func build(name string, tags ...string) (string, error) {
	path := filepath.Join(built.folder, name)
	list := strings.Trim(strings.Join(tags, ","), ",")
	out, err := exec.Command("go", "build", "-tags", list, "-o", path, "troupe/cmd/troupe").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the program with tags %q: %w\n%s", list, err, out)
	}
	return path, nil
}

// binary is the program under test.
func binary() string { return filepath.Join(built.folder, "troupe") }
