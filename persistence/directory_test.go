package persistence

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/internal/file"
)

func TestOpenCreatesAStoreInAnAbsentOrEmptyDirectory(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "a", "b", "data")
	empty := t.TempDir()
	mounted := t.TempDir()
	if err := os.Mkdir(filepath.Join(mounted, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"absent": absent, "empty": empty, "root of a disk": mounted} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(dir, Options{Shards: 3})
			if err != nil {
				t.Fatal(err)
			}
			if got := s.ShardCount(); got != 3 {
				t.Errorf("shards: got %d, want 3", got)
			}
			if s.OpenedAfterCrash() {
				t.Error("a new store says that it crashed")
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(dir)
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("directory: got %v, %v, want mode 0700", info.Mode(), err)
			}
		})
	}
}

func TestOpenTakesTheDirectoryAwayFromOthers(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: got %v, %v, want mode 0700", info.Mode(), err)
	}
}

func TestOpenRefusesWhatIsNotAStore(t *testing.T) {
	for name, files := range map[string][]string{
		"somebody's files":                     {"notes.txt", "holiday.jpg"},
		"a bare database":                      {"MANIFEST-000001", "000002.log", "marker.manifest.000001.MANIFEST-000001"},
		"a cut-off creation with tables in it": {creatingName, "000004.sst"},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			if err := fs.MkdirAll("db", 0o700); err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				putFile(t, fs, file, "x")
			}
			_, err := Open("db", small(fs))
			wantError(t, "open", err, ErrIncomplete)
			if got, err := fs.List("db"); err != nil || len(got) != len(files) {
				t.Errorf("files after the refusal: got %q, %v, want %q", got, err, files)
			}
		})
	}
}

// A kill can come before the first file has its name.
func TestOpenFinishesACreationThatHadHardlyBegun(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("db", 0o700); err != nil {
		t.Fatal(err)
	}
	putFile(t, fs, creatingName+file.TmpSuffix, "")
	mustCommit(t, open(t, small(fs)), "a", "1")
}

func TestOpenFinishesACutOffCreation(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("db", 0o700); err != nil {
		t.Fatal(err)
	}
	putFile(t, fs, creatingName, "")
	putFile(t, fs, "MANIFEST-000001", "half")
	putFile(t, fs, "000002.log", "")
	s := open(t, small(fs))
	mustCommit(t, s, "a", "1")
	names, err := fs.List("db")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.Join(names, " "), creatingName) {
		t.Errorf("files: got %q, want no %s", names, creatingName)
	}
}

func TestASecondOpenIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir, Options{})
	wantError(t, "second open", err, ErrLocked)
	_, err = Open(dir, Options{ReadOnly: true})
	wantError(t, "second open to read", err, ErrLocked)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, Options{}); err != nil {
		t.Fatalf("open after the first was closed: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTheFormatDecidesWhoMayOpen(t *testing.T) {
	fs := vfs.NewMem()
	closeStore(t, small(fs))
	for name, c := range map[string]struct {
		format string
		want   error
	}{
		"newer":        {string(file.Seal([]byte("troupe store\nformat 2\nnew things\n"))), ErrNewer},
		"altered":      {strings.Replace(string(format{1, 16}.encode()), "16", "17", 1), ErrDamaged},
		"empty":        {"", ErrDamaged},
		"other file":   {string(file.Seal([]byte("troupe witness\nformat 1\nshards 3\n"))), ErrDamaged},
		"no shards":    {string(file.Seal([]byte("troupe store\nformat 1\nshards 0\n"))), ErrDamaged},
		"one too many": {string(file.Seal([]byte("troupe store\nformat 1\nshards 4\nx\n"))), ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			copied := vfs.NewMem()
			if _, err := vfs.Clone(fs, copied, "db", "db"); err != nil {
				t.Fatal(err)
			}
			putFile(t, copied, formatName, c.format)
			_, err := Open("db", small(copied))
			wantError(t, "open", err, c.want)
		})
	}
	t.Run("another number of shards", func(t *testing.T) {
		o := small(fs)
		o.Shards = 8
		if _, err := Open("db", o); err == nil || !strings.Contains(err.Error(), "has 16 shards") {
			t.Errorf("open: got %v, want an error that names both numbers", err)
		}
	})
}

func TestAReadOnlyStoreChangesNothing(t *testing.T) {
	fs := vfs.NewMem()
	o := small(fs)
	closeStore(t, o)
	before := listing(t, fs)
	o.ReadOnly = true
	s := open(t, o)
	wantSetting(t, s, "a", "1")
	wantError(t, "accepting", s.Accepting(), ErrReadOnly)
	wantError(t, "append", <-appendSetting(s, "b", "2"), ErrReadOnly)
	wantError(t, "await durable", s.AwaitDurable(), nil)
	if _, err := s.Verify(t.Context()); err != nil {
		t.Errorf("verify: %v", err)
	}
	if got := listing(t, fs); got != before {
		t.Errorf("files: got\n%s\nwant\n%s", got, before)
	}
	_, err := Open("elsewhere", o)
	wantError(t, "open of an absent directory to read", err, ErrIncomplete)
}

func FuzzParseFormat(f *testing.F) {
	f.Add(format{version: 1, shards: 16}.encode())
	f.Add([]byte("troupe store\n"))
	f.Add([]byte("troupe store\nformat 1\nshards 1 and more\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, file.Seal(data)} {
			if got, err := parseFormat(data); err == nil && string(got.encode()) != string(data) {
				t.Errorf("%q parses to %+v, which is written as %q", data, got, got.encode())
			}
		}
	})
}

// closeStore makes a store with setting a and closes it.
func closeStore(t testing.TB, o Options) {
	t.Helper()
	s, err := Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	mustCommit(t, s, "a", "1")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func putFile(t testing.TB, fs vfs.FS, name, content string) {
	t.Helper()
	f, err := fs.Create(fs.PathJoin("db", name), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// listing is the names and sizes of all files.
func listing(t testing.TB, fs *vfs.MemFS) string {
	t.Helper()
	return fs.String()
}
