package persistence

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/persistence/internal/engine"
	"troupe/persistence/internal/file"
	"troupe/persistence/key"
)

func TestWritesOfAnotherShardPanic(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	for name, write := range map[string]func(w *Batch){
		"set of another shard":    func(w *Batch) { w.Set(key.Entry(nil, 2, key.ID{}, 1), nil) },
		"delete of another shard": func(w *Batch) { w.Delete(key.Entry(nil, 2, key.ID{}, 1)) },
		"a key of no shard":       func(w *Batch) { w.Set([]byte{0}, nil) },
		"set of a counter":        func(w *Batch) { w.Set(key.Count(nil, 1, "wf", 1), nil) },
		"add to a record":         func(w *Batch) { w.Add(key.Record(nil, 1, "wf", key.ID{}), 1) },
		"no shard of the store":   func(*Batch) { s.NewBatch(16) },
	} {
		t.Run(name, func(t *testing.T) {
			w := s.NewBatch(1)
			defer w.Discard()
			defer func() {
				assert.NotNil(t, recover(), "did not panic")
			}()
			write(w)
		})
	}
}

func TestCountersAddUp(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	key := key.Count(nil, 1, "wf", 1)
	n, err := s.Count(key)
	assert.True(t, n == 0 && err == nil, "new counter: got %d, %v, want 0", n, err)
	rapid.Check(t, func(t *rapid.T) {
		want, err := s.Count(key)
		must(t, err)
		for _, delta := range rapid.SliceOfN(rapid.Int64Range(-1000, 1000), 1, 5).Draw(t, "deltas") {
			w := s.NewBatch(1)
			w.Add(key, delta)
			want += delta
			c := make(waitFor, 1)
			s.Append(w, c)
			must(t, <-c)
		}
		if rapid.Bool().Draw(t, "flush") {
			must(t, engine.Pebble(s.db.Load()).Flush())
		}
		got, err := s.Count(key)
		require.True(t, got == want && err == nil, "got %d, %v, want %d", got, err, want)
	})
}

func TestACounterOfTheWrongSizeIsCorrupt(t *testing.T) {
	for _, value := range []string{"", "1234567", "123456789"} {
		wantError(t, fmt.Sprintf("counter of %d bytes", len(value)), second(ParseCount([]byte(value))), ErrCorrupt)
	}
	for _, want := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64} {
		got, err := ParseCount(engine.AppendCounter(nil, want))
		assert.True(t, got == want && err == nil, "got %d, %v, want %d", got, err, want)
	}
}

func TestCloseOfAStuckStoreReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faultyFS{suffix: ".log", kinds: syncKinds}
		s := mustOpen(t, "db", small(errorfs.Wrap(vfs.NewMem(), f)))
		release := f.hold()
		c := appendSetting(s, "a", "1")
		wantError(t, "close", s.Close(), ErrStalled)
		wantError(t, "waiter", <-c, ErrOutcomeUnknown)
		release()
		// What Close gave up on; a process would have ended.
		must(t, s.commits.Close())
		close(s.stop)
		<-s.spaceDone
		s.recorder.Stop()
		assert.NoError(t, errors.Join(s.closeDB(), s.undo[0]()))
	})
}

func TestCloseGivesUpOnAForgottenSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, "db", small(vfs.NewMem()))
		sn := s.Snapshot()
		err := s.Close()
		assert.True(t, err != nil && strings.Contains(err.Error(), "snapshots are still open"), "close: got %v, want an error that says so", err)
		s.recorder.Stop()
		assert.NoError(t, errors.Join(sn.Close(), s.closeDB(), s.undo[0]()))
	})
}

// damageTables flips a bit in the middle of every table.
func damageTables(t *testing.T, fs *vfs.MemFS) {
	t.Helper()
	names, err := fs.List("db")
	must(t, err)
	n := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			data, err := file.Read(fs, "db/"+name)
			must(t, err)
			data[len(data)/4] ^= 1
			putFile(t, fs, name, string(data))
			n++
		}
	}
	require.NotZero(t, n, "there is no table")
}

func TestADamagedBlockFailsItsReadsOnly(t *testing.T) {
	fs := vfs.NewMem()
	o := small(fs)
	o.VerifyBytesMax = -1
	s := mustOpen(t, "db", o)
	for n := range 1000 {
		w := s.NewBatch(key.Meta)
		w.Set(key.Setting(nil, fmt.Sprintf("%04d", n)), binary.BigEndian.AppendUint64(make([]byte, 100), uint64(n*7919)))
		s.Append(w, make(waitFor, 1))
	}
	must(t, errors.Join(s.AwaitDurable(), engine.Pebble(s.db.Load()).Flush(), s.Close()))
	damageTables(t, fs)

	s = open(t, o) // its index and properties are whole
	corrupt, whole := 0, 0
	for n := range 1000 {
		switch _, err := s.Load(key.Setting(nil, fmt.Sprintf("%04d", n))); {
		case err == nil:
			whole++
		case errors.Is(err, ErrCorrupt) && strings.Contains(err.Error(), ".sst"):
			corrupt++
		default:
			t.Fatalf("load %d: got %v, want ErrCorrupt with the file's name", n, err)
		}
	}
	assert.True(t, corrupt != 0 && whole != 0, "got %d corrupt and %d whole reads, want some of each", corrupt, whole)
	wantError(t, "scan", s.Scan(key.SettingsPrefix(nil), func(_, _ []byte) error { return nil }), ErrCorrupt)
	m := s.Metrics()
	assert.True(t, m.CorruptReads == uint64(corrupt)+1 && m.CorruptBlocks != 0, "%v %v %v", m.CorruptReads, m.CorruptBlocks, corrupt+1)
	wantError(t, "verify", second(s.Verify(t.Context())), ErrDamaged)
	mustCommit(t, s, "after", "1") // the store goes on

	o.FS = copyMem(t, fs)
	o.VerifyBytesMax = 0
	wantError(t, "open with tables checked", second(Open("db", o)), ErrDamaged)
}

func copyMem(t *testing.T, fs *vfs.MemFS) *vfs.MemFS {
	t.Helper()
	copied := vfs.NewMem()
	_, err := vfs.Clone(fs, copied, "db", "db")
	require.NoError(t, err)
	return copied
}

// TestVerifyCountsWhatThereIs holds persistence/PROMISES.md, "P25".
func TestVerifyCountsWhatThereIs(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	for n := range 10 {
		w := s.NewBatch(key.Shard(n % 2))
		w.Set(key.Record(nil, key.Shard(n%2), "wf", key.ID{byte(n)}), nil)
		w.Add(key.Count(nil, key.Shard(n%2), "wf", 3), 2)
		s.Append(w, make(waitFor, 1))
	}
	must(t, errors.Join(s.AwaitDurable(), engine.Pebble(s.db.Load()).Flush()))
	r, err := s.Verify(t.Context())
	must(t, err)
	assert.True(t, r.Tables != 0 && r.Keys["record"] == 10 && r.Keys["count"] == 2 && r.Counters["wf/3"] == 20, r)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, "verify that was ended", second(s.Verify(ended)), context.Canceled)
}

func TestVerifyFindsAKeyThatNobodyBuilds(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	must(t, engine.Pebble(s.db.Load()).Set([]byte{0, 1, '?', 1}, nil, nil))
	wantError(t, "verify", second(s.Verify(t.Context())), ErrCorrupt)
}

func TestOptionsReportAllFaultsAtOnce(t *testing.T) {
	_, err := Open("db", Options{Shards: -1, CacheBytes: -1, MemTableBytes: 1, CommitWaitMax: -1, CheckpointInterval: -1})
	require.Error(t, err, "got no error")
	for _, want := range []string{"shards", "cache", "memtable", "commit wait", "checkpoint"} {
		assert.Contains(t, err.Error(), want)
	}
}

// TestACopyTakesRowsOfItsShardOnly: another node must not be able to end this one, or to change
// other shards.
func TestACopyTakesRowsOfItsShardOnly(t *testing.T) {
	s := open(t, sharded(2))
	for _, test := range []struct {
		first, last key.Shard
		key         []byte
		good        bool
	}{
		{1, 1, key.Record(nil, 1, "w", key.ID{}), true},
		{1, 1, key.Record(nil, 0, "w", key.ID{}), false},
		{0, 1, key.Record(nil, 1, "w", key.ID{}), true},
		{0, 0, key.Record(nil, 1, "w", key.ID{}), false},
		{1, 1, key.Record(nil, key.Meta, "w", key.ID{}), false},
		{key.Meta, key.Meta, key.Setting(nil, "a"), true},
		{key.Meta, key.Meta, key.Record(nil, 1, "w", key.ID{}), false},
		{key.Meta, key.Meta, []byte{0xFF, 0xFF, 0xFF}, false},
		{1, 1, nil, false},
		{0, 0, []byte{0}, false},
	} {
		rows, err := s.tables("copy")
		must(t, err)
		copied := &replacement{s: s, first: test.first, last: test.last, rows: rows}
		err = copied.Set(test.key, nil)
		assert.Equal(t, test.good, err == nil, "key %x in a copy of the shards from %d to %d: got %v", test.key, test.first, test.last, err)
		must(t, rows.End())
		rows.Remove()
	}
}
