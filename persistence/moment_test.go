package persistence

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/internal/disk"
	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
)

// TestACheckpointHasWhatWasAcknowledged: writers number what they write, each in rows of its own shard, two rows in one
// commit. A checkpoint has every number that was acknowledged before it began, no number behind a gap, and both rows
// of each. Tables, several logs and a log that is being written are all in it.
func TestACheckpointHasWhatWasAcknowledged(t *testing.T) {
	s := mustOpen(t, t.TempDir(), plain)
	defer func() { must(t, s.Close()) }()
	const writers = 8
	var acknowledged [writers]atomic.Uint64
	var all sync.WaitGroup
	stop, begun := make(chan struct{}), make(chan struct{}, writers)
	for n := range writers {
		all.Go(func() {
			id := key.ID{byte(n)}
			sh := s.ShardOf(id)
			for i := uint64(1); ; i++ {
				w := s.NewBatch(sh)
				w.Set(key.Entry(nil, sh, id, i), binary.BigEndian.AppendUint64(make([]byte, 2000), i))
				w.Set(key.Record(nil, sh, "w", id), binary.BigEndian.AppendUint64(nil, i))
				if err := s.Commit(w); err != nil {
					assert.NoError(t, err)
					return
				}
				acknowledged[n].Store(i)
				if i == 100 {
					begun <- struct{}{}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range writers {
		<-begun
	}
	for range 10 {
		var before [writers]uint64
		for n := range writers {
			before[n] = acknowledged[n].Load()
		}
		dir, err := s.Checkpoint()
		require.NoError(t, err)
		checkMoment(t, dir, before[:])
	}
	close(stop)
	all.Wait()
}

func checkMoment(t *testing.T, dir string, atLeast []uint64) {
	t.Helper()
	copied := mustOpen(t, dir, plain)
	defer func() { must(t, copied.Close()) }()
	_, err := copied.Verify(t.Context())
	require.NoError(t, err)
	for n, least := range atLeast {
		id := key.ID{byte(n)}
		sh := copied.ShardOf(id)
		last := uint64(0)
		must(t, copied.Scan(key.EntryPrefix(nil, sh, id), func(k, _ []byte) error {
			parts, _ := key.Parse(k)
			require.Equal(t, last+1, parts.Number, "the entry after %d", last)
			last = parts.Number
			return nil
		}))
		value, err := copied.Load(key.Record(nil, sh, "w", id))
		require.NoError(t, err)
		assert.Equal(t, last, binary.BigEndian.Uint64(value), "the record of the last entry")
		assert.GreaterOrEqual(t, last, least, "what was acknowledged before")
	}
}

// TestACheckpointIsRemovedByTheNextOpen holds for one that was left by a kill.
func TestACheckpointIsRemovedByTheNextOpen(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, plain)
	left, err := s.Checkpoint()
	require.NoError(t, err)
	must(t, s.Close())
	must(t, mustOpen(t, dir, plain).Close())
	assert.NoDirExists(t, left)
	s = mustOpen(t, dir, Options{ReadOnly: true})
	defer func() { must(t, s.Close()) }()
	_, err = s.Checkpoint()
	assert.Error(t, err, "a store that is open to be read")
}

// TestTheSameRowsAreTheSameTables: a gathered store has its rows, counters and id, is whole, and after a change next to all
// of its tables are as they were.
func TestTheSameRowsAreTheSameTables(t *testing.T) {
	o := plain
	o.Shards = 2
	s := mustOpen(t, t.TempDir(), o)
	defer func() { must(t, s.Close()) }()
	const instances = 40_000
	tables := func(without int) map[[sha256.Size]byte]bool {
		dir, err := s.Gather("a-cluster", func(set func(k, value []byte) error) error {
			for sh := range s.AllShards() {
				if sh != key.Meta {
					must(t, set(key.Count(nil, sh, "w", 1), engine.AppendCounter(nil, 7)))
				}
				for n := range instances / 2 {
					if id := (key.ID{14: byte(n >> 8), 15: byte(n)}); n != without && sh != key.Meta {
						must(t, set(key.Record(nil, sh, "w", id), id[:]))
					}
				}
			}
			return nil
		})
		require.NoError(t, err)
		id, err := os.ReadFile(filepath.Join(dir, "ID"))
		assert.True(t, err == nil && bytes.Contains(id, []byte("id a-cluster\n")), "%s %v", id, err)
		sums := map[[sha256.Size]byte]bool{}
		names, err := filepath.Glob(filepath.Join(dir, "*.sst"))
		require.NoError(t, err)
		for _, name := range names {
			content, err := os.ReadFile(name)
			require.NoError(t, err)
			sums[sha256.Sum256(content)] = true
		}
		to := mustOpen(t, dir, plain)
		defer func() { must(t, to.Close()) }()
		_, err = to.Verify(t.Context())
		require.NoError(t, err)
		n, err := to.CountAll(key.Count(nil, key.EveryShard, "w", 1))
		assert.True(t, err == nil && n == 14, "%d %v", n, err)
		records := 0
		must(t, to.Scan(key.RecordPrefix(nil, key.EveryShard, "w"), func(_, _ []byte) error { records++; return nil }))
		assert.GreaterOrEqual(t, records, instances-2)
		return sums
	}
	before, after := tables(-1), tables(instances/4)
	assert.Equal(t, before, tables(-1))
	kept := 0
	for sum := range before {
		if after[sum] {
			kept++
		}
	}
	assert.True(t, len(before) > 6 && kept >= len(before)-2, "%d of %d tables are as they were", kept, len(before))

	left, err := filepath.Glob(filepath.Join(s.dir, disk.CheckpointPrefix+"*"))
	require.NoError(t, err)
	_, err = s.Gather("a-cluster", func(func(k, value []byte) error) error { return ErrClosed })
	require.ErrorIs(t, err, ErrClosed)
	still, err := filepath.Glob(filepath.Join(s.dir, disk.CheckpointPrefix+"*"))
	assert.True(t, err == nil && len(still) == len(left), "what failed leaves nothing: %v", still)
}
