package persistence

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestCheckStoreIDSaysWhatOpenWould, without a lock: also beside the process that has the
// store open.
func TestCheckStoreIDSaysWhatOpenWould(t *testing.T) {
	home := t.TempDir()
	dir, id, other := filepath.Join(home, "data"), filepath.Join(home, ".store"), filepath.Join(home, ".other")
	if err := CheckStoreID(dir, id); err != nil {
		t.Errorf("no store, and none is demanded: got %v", err)
	}
	must(t, Create(filepath.Join(home, "elsewhere"), Options{IDFile: other}))
	s := mustOpen(t, dir, Options{IDFile: id})
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
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
		if err := CheckStoreID(test.dir, test.file); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}
	}
	must(t, os.WriteFile(id, []byte("damaged"), 0o600))
	if err := CheckStoreID(dir, id); err == nil {
		t.Error("a damaged file: got no error")
	}
}
