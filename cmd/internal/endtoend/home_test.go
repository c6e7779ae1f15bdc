package endtoend

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, os.RemoveAll(dir))
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
	require.NoError(h.t, os.MkdirAll(filepath.Dir(path), 0o755))
	hidden := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	require.NoError(h.t, os.WriteFile(hidden, []byte(text), 0o644))
	require.NoError(h.t, os.Rename(hidden, path))
}
