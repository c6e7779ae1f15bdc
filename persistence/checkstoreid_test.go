package persistence

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestCheckStoreIDSaysWhatOpenWould, without a lock: also beside the process that has the
// store open.
func TestCheckStoreIDSaysWhatOpenWould(t *testing.T) {
	home := t.TempDir()
	dir, id, other := filepath.Join(home, "data"), filepath.Join(home, ".store"), filepath.Join(home, ".other")
	assert.NoError(t, CheckStoreID(dir, id), "no store, and none is demanded")
	must(t, Create(filepath.Join(home, "elsewhere"), Options{IDFile: other}))
	s := mustOpen(t, dir, Options{IDFile: id})
	defer func() {
		assert.NoError(t, s.Close())
	}()
	tests := []struct {
		name, dir, file string
		want            error
	}{
		{"they fit", dir, id, nil},
		{"nothing is demanded", dir, filepath.Join(home, "nothing"), nil},
		{"another store", dir, other, ErrOtherStore},
		{"no folder", filepath.Join(home, "nothing"), id, ErrMissing},
		{"a folder with nothing in it", t.TempDir(), id, ErrMissing},
		{"a folder without a store", home, id, ErrOtherStore},
	}
	for _, test := range tests {
		assert.ErrorIs(t, CheckStoreID(test.dir, test.file), test.want, test.name)
	}
	must(t, os.WriteFile(id, []byte("damaged"), 0o600))
	assert.Error(t, CheckStoreID(dir, id), "a damaged file: got no error")
}
