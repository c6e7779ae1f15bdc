package persistence

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"troupe/persistence/internal/file"
)

func TestWritesOfAnotherShardPanic(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	for name, write := range map[string]func(w *Writes){
		"set of another shard":    func(w *Writes) { w.Set(EntryKey(nil, 2, ID{}, 1), nil) },
		"delete of another shard": func(w *Writes) { w.Delete(EntryKey(nil, 2, ID{}, 1)) },
		"a key of no shard":       func(w *Writes) { w.Set([]byte{0}, nil) },
		"set of a counter":        func(w *Writes) { w.Set(CountKey(nil, 1, "wf", 1), nil) },
		"add to a record":         func(w *Writes) { w.Add(RecordKey(nil, 1, "wf", ID{}), 1) },
	} {
		t.Run(name, func(t *testing.T) {
			w := s.NewWrites(1)
			defer w.Discard()
			defer func() {
				if recover() == nil {
					t.Error("did not panic")
				}
			}()
			write(w)
		})
	}
	t.Run("a shard that is not there", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("did not panic")
			}
		}()
		s.NewWrites(16)
	})
}

func TestDiscardedWritesLeaveNothing(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	w := s.NewWrites(Meta)
	w.Set(SettingKey(nil, "a"), []byte("1"))
	if got := w.Len(); got != 1 {
		t.Errorf("length: got %d, want 1", got)
	}
	w.Discard()
	mustCommit(t, s, "b", "2")
	_, err := s.Load(SettingKey(nil, "a"))
	wantError(t, "load", err, ErrNotFound)
}

// A set of writes larger than half a memtable goes another way through Pebble.
func TestAVeryLargeAppendIsCommitted(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	big := strings.Repeat("x", 1<<20)
	mustCommit(t, s, "a", big)
	mustCommit(t, s, "b", "2")
	wantSetting(t, s, "a", big)
}

func TestCountersAddUp(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	key := CountKey(nil, 1, "wf", 1)
	if n, err := s.Count(key); n != 0 || err != nil {
		t.Errorf("new counter: got %d, %v, want 0", n, err)
	}
	rapid.Check(t, func(t *rapid.T) {
		want, err := s.Count(key)
		if err != nil {
			t.Fatal(err)
		}
		for _, delta := range rapid.SliceOfN(rapid.Int64Range(-1000, 1000), 1, 5).Draw(t, "deltas") {
			w := s.NewWrites(1)
			w.Add(key, delta)
			want += delta
			c := make(waitFor, 1)
			s.Append(w, c)
			if err := <-c; err != nil {
				t.Fatal(err)
			}
		}
		if rapid.Bool().Draw(t, "flush") {
			if err := s.db.Load().Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := s.Count(key); got != want || err != nil {
			t.Fatalf("got %d, %v, want %d", got, err, want)
		}
	})
}

func TestACounterOfTheWrongSizeIsCorrupt(t *testing.T) {
	for _, value := range []string{"", "1234567", "123456789"} {
		_, err := ParseCount([]byte(value))
		wantError(t, fmt.Sprintf("counter of %d bytes", len(value)), err, ErrCorrupt)
	}
	for _, want := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64} {
		if got, err := ParseCount(appendCounter(nil, want)); got != want || err != nil {
			t.Errorf("got %d, %v, want %d", got, err, want)
		}
	}
}

func TestASnapshotStaysAsItWas(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	for _, name := range []string{"a", "b", "c"} {
		mustCommit(t, s, name, "old")
	}
	sn := s.Snapshot()
	w := s.NewWrites(Meta)
	w.Set(SettingKey(nil, "a"), []byte("new"))
	w.Delete(SettingKey(nil, "b"))
	w.Set(SettingKey(nil, "d"), []byte("new"))
	c := make(waitFor, 1)
	s.Append(w, c)
	if err := errors.Join(<-c, s.AwaitDurable()); err != nil {
		t.Fatal(err)
	}

	if got, err := sn.Load(SettingKey(nil, "a")); string(got) != "old" || err != nil {
		t.Errorf("load: got %q, %v, want old", got, err)
	}
	_, err := sn.Load(SettingKey(nil, "d"))
	wantError(t, "load of what came later", err, ErrNotFound)
	var scanned []string
	if err := sn.Scan(SettingsPrefix(nil), func(key, _ []byte) error {
		k, _ := ParseKey(key)
		scanned = append(scanned, k.Name)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "c"}; !slices.Equal(scanned, want) {
		t.Errorf("scan: got %q, want %q", scanned, want)
	}
	if err := sn.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestABackwardCursorSeeksAndWalks(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	for seq := uint64(1); seq <= 5; seq++ {
		w := s.NewWrites(1)
		w.Set(EntryKey(nil, 1, ID{1}, seq*10), nil)
		s.Append(w, make(waitFor, 1))
	}
	sn := s.Snapshot()
	defer sn.Close()
	c := sn.Backward(EntryKey(nil, 1, ID{1}, 20), EntryKey(nil, 1, ID{1}, 50))
	defer c.Close()
	at := func(ok bool) uint64 {
		if !ok {
			return 0
		}
		seq, _ := EntrySeq(c.Key())
		return seq
	}
	for i, step := range []struct {
		name string
		got  uint64
		want uint64
	}{
		{"first next", at(c.Next()), 40},
		{"second next", at(c.Next()), 30},
		{"the lower bound is inside", at(c.Next()), 20},
		{"next at the end", at(c.Next()), 0},
		{"seek goes before the key", at(c.Seek(EntryKey(nil, 1, ID{1}, 40))), 30},
		{"seek between keys", at(c.Seek(EntryKey(nil, 1, ID{1}, 39))), 30},
		{"seek behind the bounds", at(c.Seek(EntryKey(nil, 1, ID{1}, 99))), 40},
		{"next after a seek", at(c.Next()), 30},
		{"seek before the first", at(c.Seek(EntryKey(nil, 1, ID{1}, 20))), 0},
	} {
		if step.got != step.want {
			t.Errorf("step %d, %s: got %d, want %d", i, step.name, step.got, step.want)
		}
	}
	if err := c.Err(); err != nil {
		t.Error(err)
	}
}

func TestACursorSeeksAndWalks(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	for seq := uint64(1); seq <= 5; seq++ {
		w := s.NewWrites(1)
		w.Set(EntryKey(nil, 1, ID{1}, seq*10), []byte{byte(seq)})
		s.Append(w, make(waitFor, 1))
	}
	sn := s.Snapshot()
	defer sn.Close()
	prefix := EntryPrefix(nil, 1, ID{1})
	c := sn.Cursor(prefix, PrefixEnd(prefix))
	defer c.Close()
	at := func(ok bool) uint64 {
		if !ok {
			return 0
		}
		seq, _ := EntrySeq(c.Key())
		if want := byte(seq / 10); c.Value()[0] != want {
			t.Errorf("value at %d: got %d, want %d", seq, c.Value()[0], want)
		}
		return seq
	}
	for i, step := range []struct {
		name string
		got  uint64
		want uint64
	}{
		{"first next", at(c.Next()), 10},
		{"second next", at(c.Next()), 20},
		{"seek to a key", at(c.Seek(EntryKey(nil, 1, ID{1}, 40))), 40},
		{"seek between keys", at(c.Seek(EntryKey(nil, 1, ID{1}, 21))), 30},
		{"seek before the bounds", at(c.Seek([]byte{0})), 10},
		{"next after a seek", at(c.Next()), 20},
		{"seek behind the last", at(c.Seek(EntryKey(nil, 1, ID{1}, 51))), 0},
	} {
		if step.got != step.want {
			t.Errorf("step %d, %s: got %d, want %d", i, step.name, step.got, step.want)
		}
	}
	if err := c.Err(); err != nil {
		t.Error(err)
	}
}

func TestScanEndsWithTheErrorOfVisit(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	mustCommit(t, s, "a", "1")
	stop := errors.New("enough")
	if err := s.Scan(SettingsPrefix(nil), func(_, _ []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want the error of visit as it is", err)
	}
}

func TestAClosedStoreReturnsErrClosed(t *testing.T) {
	s, err := Open("db", small(vfs.NewMem()))
	if err != nil {
		t.Fatal(err)
	}
	w := s.NewWrites(Meta)
	w.Set(SettingKey(nil, "a"), nil)
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = s.Load(SettingKey(nil, "a"))
	wantError(t, "load", err, ErrClosed)
	wantError(t, "scan", s.Scan(nil, nil), ErrClosed)
	wantError(t, "await durable", s.AwaitDurable(), nil) // nothing is visible any more
	wantError(t, "accepting", s.Accepting(), ErrClosed)
	c := make(waitFor, 1)
	s.Append(w, c)
	wantError(t, "append", <-c, ErrClosed)
	sn := s.Snapshot()
	_, err = sn.Load(SettingKey(nil, "a"))
	wantError(t, "load of a snapshot", err, ErrClosed)
	cursor := sn.Cursor(nil, nil)
	if cursor.Next() || !errors.Is(cursor.Err(), ErrClosed) {
		t.Errorf("cursor: got %v, want %v", cursor.Err(), ErrClosed)
	}
	if err := errors.Join(cursor.Close(), sn.Close()); err != nil {
		t.Error(err)
	}
	_ = s.Metrics()
}

func TestCloseWaitsForReaders(t *testing.T) {
	s, err := Open("db", small(vfs.NewMem()))
	if err != nil {
		t.Fatal(err)
	}
	mustCommit(t, s, "a", "1")
	sn := s.Snapshot()
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				if _, err := s.Load(SettingKey(nil, "a")); err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Errorf("load while closing: %v", err)
					}
					return
				}
			}
		}()
	}
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	wg.Wait() // they end when Close has begun
	select {
	case err := <-closed:
		t.Errorf("close returned (%v) with a snapshot open", err)
	default:
	}
	if got, err := sn.Load(SettingKey(nil, "a")); string(got) != "1" || err != nil {
		t.Errorf("load of the snapshot: got %q, %v, want 1", got, err)
	}
	if err := sn.Close(); err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestCloseGivesUpOnAForgottenSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open("db", small(vfs.NewMem()))
		if err != nil {
			t.Fatal(err)
		}
		sn := s.Snapshot()
		if err := s.Close(); err == nil || !strings.Contains(err.Error(), "snapshots are still open") {
			t.Errorf("close: got %v, want an error that says so", err)
		}
		s.recorder.Stop()
		if err := errors.Join(sn.Close(), s.closeDB(), s.undo[0]()); err != nil {
			t.Error(err)
		}
	})
}

// damageTables flips a bit in the middle of every table.
func damageTables(t *testing.T, fs *vfs.MemFS) {
	t.Helper()
	names, err := fs.List("db")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			data, err := file.Read(fs, "db/"+name)
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)/4] ^= 1
			putFile(t, fs, name, string(data))
			n++
		}
	}
	if n == 0 {
		t.Fatal("there is no table")
	}
}

func TestADamagedBlockFailsItsReadsOnly(t *testing.T) {
	fs := vfs.NewMem()
	o := small(fs)
	o.VerifyBytesMax = -1
	s, err := Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 1000 {
		w := s.NewWrites(Meta)
		w.Set(SettingKey(nil, fmt.Sprintf("%04d", n)), binary.BigEndian.AppendUint64(make([]byte, 100), uint64(n*7919)))
		s.Append(w, make(waitFor, 1))
	}
	if err := errors.Join(s.AwaitDurable(), s.db.Load().Flush(), s.Close()); err != nil {
		t.Fatal(err)
	}
	damageTables(t, fs)

	s = open(t, o) // its index and properties are whole
	corrupt, whole := 0, 0
	for n := range 1000 {
		switch _, err := s.Load(SettingKey(nil, fmt.Sprintf("%04d", n))); {
		case err == nil:
			whole++
		case errors.Is(err, ErrCorrupt) && strings.Contains(err.Error(), ".sst"):
			corrupt++
		default:
			t.Fatalf("load %d: got %v, want ErrCorrupt with the file's name", n, err)
		}
	}
	if corrupt == 0 || whole == 0 {
		t.Errorf("got %d corrupt and %d whole reads, want some of each", corrupt, whole)
	}
	wantError(t, "scan", s.Scan(SettingsPrefix(nil), func(_, _ []byte) error { return nil }), ErrCorrupt)
	if m := s.Metrics(); m.CorruptReads != uint64(corrupt)+1 || m.CorruptBlocks == 0 {
		t.Errorf("counted %d reads and %d blocks, want %d reads", m.CorruptReads, m.CorruptBlocks, corrupt+1)
	}
	_, err = s.Verify(t.Context())
	wantError(t, "verify", err, ErrDamaged)
	mustCommit(t, s, "after", "1") // the store goes on

	o.FS = copyMem(t, fs)
	o.VerifyBytesMax = 0
	_, err = Open("db", o)
	wantError(t, "open with tables checked", err, ErrDamaged)
}

func copyMem(t *testing.T, fs *vfs.MemFS) *vfs.MemFS {
	t.Helper()
	copied := vfs.NewMem()
	if _, err := vfs.Clone(fs, copied, "db", "db"); err != nil {
		t.Fatal(err)
	}
	return copied
}

// TestVerifyCountsWhatThereIs holds persistence/PROMISES.md, "P25".
func TestVerifyCountsWhatThereIs(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	for n := range 10 {
		w := s.NewWrites(Shard(n % 2))
		w.Set(RecordKey(nil, Shard(n%2), "wf", ID{byte(n)}), nil)
		w.Add(CountKey(nil, Shard(n%2), "wf", 3), 2)
		s.Append(w, make(waitFor, 1))
	}
	if err := errors.Join(s.AwaitDurable(), s.db.Load().Flush()); err != nil {
		t.Fatal(err)
	}
	r, err := s.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Tables == 0 || r.Keys["record"] != 10 || r.Keys["count"] != 2 || r.Counters["wf/3"] != 20 {
		t.Errorf("got %+v, want some tables, 10 records, 2 counters that sum to 20", r)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Verify(ended)
	wantError(t, "verify that was ended", err, context.Canceled)
}

func TestVerifyFindsAKeyThatNobodyBuilds(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	if err := s.db.Load().Set([]byte{0, 1, '?', 1}, nil, nil); err != nil {
		t.Fatal(err)
	}
	_, err := s.Verify(t.Context())
	wantError(t, "verify", err, ErrCorrupt)
}

func TestOptionsReportAllFaultsAtOnce(t *testing.T) {
	_, err := Open("db", Options{Shards: -1, CacheBytes: -1, MemTableBytes: 1, CommitWaitMax: -1, CheckpointInterval: -1})
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{"shards", "cache", "memtable", "commit wait", "checkpoint"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want %q in it", err, want)
		}
	}
}
