package persistence

import (
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/cockroachdb/pebble/v2/wal"
	"pgregory.net/rapid"
)

func drawWitness(t *rapid.T) *witness {
	w := &witness{
		clean:         rapid.Bool().Draw(t, "clean"),
		owner:         rapid.StringMatching(`[0-9a-f]{0,32}`).Draw(t, "owner"),
		manifest:      rapid.StringMatching(`MANIFEST-[0-9]{6}`).Draw(t, "manifest"),
		manifestBytes: rapid.Int64Min(0).Draw(t, "bytes"),
		manifestSum:   rapid.Uint32().Draw(t, "sum"),
		proof:         proof{wal: rapid.Uint64().Draw(t, "wal"), seq: rapid.Uint64().Draw(t, "seq")},
	}
	for range rapid.IntRange(0, 3).Draw(t, "logs") {
		w.logs = append(w.logs, logSize{rapid.Uint64().Draw(t, "log"), rapid.Int64Min(0).Draw(t, "size")})
	}
	for range rapid.IntRange(0, 3).Draw(t, "tables") {
		w.tables = append(w.tables, tableSum{
			rapid.Uint64().Draw(t, "table"), rapid.Int64Min(0).Draw(t, "size"), rapid.Uint32().Draw(t, "tail"),
		})
	}
	return w
}

func TestAWitnessIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawWitness(t)
		got, err := parseWitness(want.encode())
		if err != nil {
			t.Fatal(err)
		}
		if string(got.encode()) != string(want.encode()) ||
			!slices.Equal(got.logs, want.logs) || !slices.Equal(got.tables, want.tables) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

func TestAnAlteredWitnessIsNotRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := drawWitness(t).encode()
		switch rapid.IntRange(0, 1).Draw(t, "how") {
		case 0:
			data[rapid.IntRange(0, len(data)-1).Draw(t, "offset")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case 1:
			data = data[:rapid.IntRange(0, len(data)-1).Draw(t, "length")]
		}
		if w, err := parseWitness(data); err == nil {
			t.Fatalf("%q was read as %+v", data, w)
		}
	})
}

func FuzzParseWitness(f *testing.F) {
	w := witness{manifest: "MANIFEST-000001", logs: []logSize{{2, 3}}, tables: []tableSum{{4, 5, 6}}}
	f.Add(w.encode())
	text, _ := unseal(w.encode())
	f.Add(slices.Clone(text))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, seal(slices.Clone(data))} {
			w, err := parseWitness(data)
			if err != nil {
				continue
			}
			if again, err := parseWitness(w.encode()); err != nil || string(again.encode()) != string(w.encode()) {
				t.Errorf("%q parses to %+v, which is read back as %+v, %v", data, w, again, err)
			}
		}
	})
}

// A log that is not in the witness can disappear without a trace.
func TestTheWitnessNamesALogBeforeItsFirstRecord(t *testing.T) {
	mem := vfs.NewMem()
	var mu sync.Mutex
	seen := map[string]bool{}
	var unknown []string
	watch := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind != errorfs.OpFileWrite || !strings.HasSuffix(op.Path, ".log") {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if seen[op.Path] {
			return nil
		}
		seen[op.Path] = true
		data, err := readFile(mem, "db/"+witnessName)
		if err != nil {
			return nil // the log of a store that is being created
		}
		w, err := parseWitness(data)
		n, _, _ := wal.ParseLogFilename(mem.PathBase(op.Path))
		if err != nil || !slices.ContainsFunc(w.logs, func(l logSize) bool { return l.number == uint64(n) && l.bytes > 0 }) {
			unknown = append(unknown, op.Path)
		}
		return nil
	})
	o := small(errorfs.Wrap(mem, watch))
	o.MemTableBytes = 64 << 10
	s := open(t, o)
	for range 300 {
		mustCommit(t, s, "a", strings.Repeat("x", 1<<10))
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) < 3 {
		t.Errorf("only %d logs were written, want several", len(seen))
	}
	if len(unknown) > 0 {
		t.Errorf("the witness did not know %q when their first record was written", unknown)
	}
}

func TestTheWitnessFollowsCommitsAndACloseMarksIt(t *testing.T) {
	fs := vfs.NewMem()
	o := small(fs)
	o.WitnessInterval = time.Millisecond
	s, err := Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	mustCommit(t, s, "a", "1")
	read := func() *witness {
		w, err := s.readWitness()
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	eventually(t, "the witness knows of the commit", func() bool { return read().proof == s.commits.durable.load() })
	if w := read(); w.clean || w.proof.wal == 0 || w.proof.seq == 0 {
		t.Errorf("while open: got %+v, want a proof and no clean close", w)
	}
	mustCommit(t, s, "b", "1")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if w := read(); !w.clean || w.proof != s.commits.durable.load() {
		t.Errorf("after close: got %+v, want a clean close and the last proof", w)
	}
	s = open(t, o)
	if s.OpenedAfterCrash() {
		t.Error("opened after a crash, want after a close")
	}
	if read().clean {
		t.Error("an open store says that it was closed")
	}
}

func TestAStoreGoesOnWithoutItsWitness(t *testing.T) {
	f := &faultyFS{suffix: witnessName + tmpSuffix, kinds: []errorfs.OpKind{errorfs.OpCreate}}
	o := small(errorfs.Wrap(vfs.NewMem(), f))
	o.WitnessInterval = time.Millisecond
	s := open(t, o)
	f.fail(&os.PathError{Op: "create", Path: witnessName, Err: syscall.EIO})
	mustCommit(t, s, "a", "1")
	eventually(t, "a failure is counted", func() bool { return s.Metrics().WitnessErrors > 0 })
	mustCommit(t, s, "b", "2")
	f.fault.Store(nil)
	eventually(t, "the witness is written again", func() bool {
		w, err := s.readWitness()
		return err == nil && w.proof == s.commits.durable.load()
	})
}

// TestAManifestThatIsGoneIsNotMadeAnew: somebody removed or cut it under the
// running store. The witness keeps saying what there was, and the next start
// refuses the store.
// TestAManifestThatIsGoneIsNotMadeAnew holds what follows of
// persistence/PROMISES.md, "F3".
func TestAManifestThatIsGoneIsNotMadeAnew(t *testing.T) {
	for name, hurt := range map[string]func(fs vfs.FS, path string) error{
		"removed": func(fs vfs.FS, path string) error { return fs.Remove(path) },
		"cut": func(fs vfs.FS, path string) error {
			f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
			if err != nil {
				return err
			}
			return f.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			o := small(fs)
			s, err := Open("db", o)
			if err != nil {
				t.Fatal(err)
			}
			mustCommit(t, s, "a", "1")
			before, err := s.readWitness()
			if err != nil {
				t.Fatal(err)
			}
			path := fs.PathJoin("db", before.manifest)
			if err := hurt(fs, path); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err == nil {
				t.Error("the close found nothing wrong")
			}
			if name == "removed" {
				if _, err := fs.Stat(path); err == nil {
					t.Errorf("%s was made anew", before.manifest)
				}
			}
			if again, err := Open("db", o); !errors.Is(err, ErrDamaged) {
				t.Errorf("the next start: got %v, %v, want ErrDamaged", again, err)
			}
		})
	}
}
