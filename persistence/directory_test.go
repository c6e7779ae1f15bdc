package persistence

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/internal/disk"
	"troupe/persistence/internal/file"
)

func TestOpenCreatesAStoreInAnAbsentOrEmptyDirectory(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "a", "b", "data")
	empty := t.TempDir()
	mounted := t.TempDir()
	must(t, os.Mkdir(filepath.Join(mounted, "lost+found"), 0o700))
	for name, dir := range map[string]string{"absent": absent, "empty": empty, "root of a disk": mounted} {
		t.Run(name, func(t *testing.T) {
			s := mustOpen(t, dir, Options{Shards: 3})
			assert.Equal(t, uint16(3), s.Shards(), "shards")
			assert.False(t, s.OpenedAfterCrash(), "a new store says that it crashed")
			must(t, s.Close())
			info, err := os.Stat(dir)
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("directory: got %v, %v, want mode 0700", info.Mode(), err)
			}
		})
	}
}

func TestOpenTakesTheDirectoryAwayFromOthers(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	s := mustOpen(t, dir, plain)
	defer s.Close()
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: got %v, %v, want mode 0700", info.Mode(), err)
	}
}

func TestOpenRefusesWhatIsNotAStore(t *testing.T) {
	for name, files := range map[string][]string{
		"somebody's files":                     {"notes.txt", "holiday.jpg"},
		"a bare database":                      {"MANIFEST-000001", "000002.log", "marker.manifest.000001.MANIFEST-000001"},
		"a cut-off creation with tables in it": {disk.CreatingName, "000004.sst"},
	} {
		t.Run(name, func(t *testing.T) {
			fs := memOf(t, "x", files...)
			wantError(t, "open", second(Open("db", small(fs))), ErrIncomplete)
			got, err := fs.List("db")
			assert.True(t, err == nil && len(got) == len(files), "files after the refusal: got %q, %v, want %q", got, err, files)
		})
	}
}

// TestWhatLiesBesideTheStoreStays: a node of a cluster has its identity there before it has a store.
func TestWhatLiesBesideTheStoreStays(t *testing.T) {
	for name, files := range map[string][]string{
		"before the store":                   nil,
		"before a creation that was cut off": {disk.CreatingName, "MANIFEST-000001", "000002.log"},
	} {
		t.Run(name, func(t *testing.T) {
			fs := memOf(t, "x", files...)
			must(t, fs.MkdirAll("db/"+BesideFolder, 0o700))
			f, err := fs.Create("db/"+BesideFolder+"/node.pem", vfs.WriteCategoryUnspecified)
			must(t, err)
			must(t, f.Close())
			must(t, open(t, small(fs)).Close())
			must(t, open(t, small(fs)).Close())
			names, err := fs.List("db/" + BesideFolder)
			assert.True(t, err == nil && slices.Equal(names, []string{"node.pem"}), "beside the store: got %q, %v", names, err)
		})
	}
}

func TestOpenFinishesACutOffCreation(t *testing.T) {
	for name, files := range map[string][]string{
		// A kill can come before the first file has its name.
		"hardly begun": {disk.CreatingName + file.TmpSuffix},
		"with files":   {disk.CreatingName, "MANIFEST-000001", "000002.log"},
	} {
		t.Run(name, func(t *testing.T) {
			fs := memOf(t, "half", files...)
			s := open(t, small(fs))
			mustCommit(t, s, "a", "1")
			names, err := fs.List("db")
			assert.True(t, err == nil && !strings.Contains(strings.Join(names, " "), disk.CreatingName), "files: got %q, %v, want no %s", names, err, disk.CreatingName)
		})
	}
}

func TestASecondOpenIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, plain)
	wantError(t, "second open", second(Open(dir, plain)), ErrLocked)
	wantError(t, "second open to read", second(Open(dir, Options{ReadOnly: true})), ErrLocked)
	must(t, s.Close())
	s = mustOpen(t, dir, plain)
	must(t, s.Close())
}

func TestTheFormatDecidesWhoMayOpen(t *testing.T) {
	fs := vfs.NewMem()
	closeStore(t, small(fs))
	for name, c := range map[string]struct {
		format string
		want   error
	}{
		"newer":        {string(file.Seal(fmt.Appendf(nil, "troupe store\nreleased format %d\nnew things\n", disk.FormatVersion+1))), ErrNewer},
		"altered":      {strings.Replace(string(file.Seal([]byte("troupe store\nreleased format 1\nshards 16\nreplicas false\n"))), "16", "17", 1), ErrDamaged},
		"empty":        {"", ErrDamaged},
		"other file":   {string(file.Seal([]byte("troupe witness\nreleased format 1\nshards 3\nreplicas false\n"))), ErrDamaged},
		"no shards":    {string(file.Seal([]byte("troupe store\nreleased format 1\nshards 0\nreplicas false\n"))), ErrDamaged},
		"one too many": {string(file.Seal([]byte("troupe store\nreleased format 1\nshards 4\nreplicas false\nx\n"))), ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			copied := copyMem(t, fs)
			putFile(t, copied, disk.FormatName, c.format)
			wantError(t, "open", second(Open("db", small(copied))), c.want)
		})
	}
	t.Run("of a build before 0.1.0", func(t *testing.T) {
		for version := 1; version <= 9; version++ {
			copied := copyMem(t, fs)
			putFile(t, copied, disk.FormatName, string(file.Seal(fmt.Appendf(nil, "troupe store\nformat %d\nshards 16\n", version))))
			before := copied.String()
			for _, readOnly := range []bool{false, true} {
				o := small(copied)
				o.ReadOnly = readOnly
				err := second(Open("db", o))
				wantError(t, fmt.Sprintf("open of format %d", version), err, ErrUnreleased)
				assert.False(t, err != nil && strings.Contains(err.Error(), "\n"), "format %d: more than one line: %v", version, err)
			}
			assert.Equal(t, before, copied.String(), "format %d: files", version)
		}
	})
	t.Run("another number of shards", func(t *testing.T) {
		o := small(fs)
		o.Shards = 8
		_, err := Open("db", o)
		assert.True(t, err != nil && strings.Contains(err.Error(), "has 16 shards"), "open: got %v, want an error that names both numbers", err)
	})
}

func TestAReadOnlyStoreChangesNothing(t *testing.T) {
	fs := vfs.NewMem()
	o := small(fs)
	closeStore(t, o)
	before := fs.String()
	o.ReadOnly = true
	s := open(t, o)
	wantSetting(t, s, "a", "1")
	wantError(t, "accepting", s.Accepting(), ErrReadOnly)
	wantError(t, "append", <-appendSetting(s, "b", "2"), ErrReadOnly)
	wantError(t, "await durable", s.AwaitDurable(), nil)
	_, err := s.Verify(t.Context())
	assert.NoError(t, err, "verify")
	assert.Equal(t, before, fs.String(), "files")
	wantError(t, "open of an absent directory to read", second(Open("elsewhere", o)), ErrIncomplete)
}

// closeStore makes a store with setting a and closes it.
func closeStore(t testing.TB, o Options) {
	t.Helper()
	s := mustOpen(t, "db", o)
	mustCommit(t, s, "a", "1")
	must(t, s.Close())
}

// memOf is a directory with files of that content.
func memOf(t testing.TB, content string, files ...string) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewMem()
	must(t, fs.MkdirAll("db", 0o700))
	for _, name := range files {
		putFile(t, fs, name, content)
	}
	return fs
}

func putFile(t testing.TB, fs vfs.FS, name, content string) {
	t.Helper()
	f, err := fs.Create(fs.PathJoin("db", name), vfs.WriteCategoryUnspecified)
	must(t, err)
	_, err = f.Write([]byte(content))
	require.NoError(t, err)
	must(t, f.Close())
}
