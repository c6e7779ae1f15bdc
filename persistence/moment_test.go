package persistence

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
