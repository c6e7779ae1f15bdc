package endtoend

import (
	"os"
	"path/filepath"
	"testing"

	"troupe/gateway/wiretest"
)

// home is a home folder of a test.
type home struct {
	t        testing.TB
	dir      string
	basePath string // as its troupe.yaml says; "" without one
}

// newHome writes a home with the given files, by their path inside it. Without
// an identity.yaml its users are those of wiretest.People.
//
// NB: not t.TempDir, whose path can be too long for the unix socket inside.
func newHome(t testing.TB, files map[string]string) *home {
	t.Helper()
	dir, err := os.MkdirTemp("", "home")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	h := &home{t: t, dir: dir}
	if _, given := files["identity.yaml"]; !given {
		h.write("identity.yaml", wiretest.People)
	}
	for name, text := range files {
		h.write(name, text)
	}
	return h
}

// write replaces a file as an editor does: a new one takes the old one's place.
func (h *home) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	hidden := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.WriteFile(hidden, []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Rename(hidden, path); err != nil {
		h.t.Fatal(err)
	}
}

// remove deletes a file.
func (h *home) remove(name string) {
	h.t.Helper()
	if err := os.Remove(filepath.Join(h.dir, name)); err != nil {
		h.t.Fatal(err)
	}
}
