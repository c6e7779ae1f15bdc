package persistence

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/file"
	"troupe/persistence/key"
)

const planted = "a secret that somebody wanted to be gone"

// findPlanted returns the files that have the planted text; the integrity checkpoint has no rows.
func findPlanted(t *testing.T, fs vfs.FS) (found []string) {
	t.Helper()
	names, err := fs.List("db")
	require.NoError(t, err)
	for _, name := range names {
		if info, err := fs.Stat(fs.PathJoin("db", name)); err != nil || info.IsDir() || name == integrity.CheckpointName {
			continue
		}
		text, err := file.Read(fs, fs.PathJoin("db", name))
		require.NoError(t, err)
		if bytes.Contains(text, []byte(planted)) {
			found = append(found, name)
		}
	}
	return found
}

// plant writes the text into values and keys of each shard, among so many other rows that it is in several tables and
// logs, and overwrites some of it.
func plant(t *testing.T, s *Store) (keys [][]byte) {
	t.Helper()
	filler := bytes.Repeat([]byte("x"), 1<<10)
	for round := range byte(12) {
		for sh := range key.Shard(s.Shards()) {
			w := s.NewBatch(sh)
			id := key.ID{1, round}
			for _, k := range [][]byte{key.Record(nil, sh, "w", id), key.Record(nil, sh, "w", key.ID{2}), key.Index(nil, sh, 1, []byte(planted), id)} {
				w.Set(k, fmt.Appendf(nil, "%s %d", planted, round))
				keys = append(keys, k)
			}
			for n := range byte(32) {
				w.Set(key.Entry(nil, sh, key.ID{3, round, n}, 1), filler)
			}
			require.NoError(t, s.Commit(w))
		}
	}
	return keys
}

func erase(t *testing.T, s *Store, keys [][]byte) {
	t.Helper()
	for _, k := range keys {
		w := s.NewBatch(key.ShardOf(k))
		w.Delete(k)
		require.NoError(t, s.Commit(w))
	}
}

func silent(string) {}

// TestCompactLeavesNoByteOfWhatWasDeleted holds persistence/PROMISES.md, "P33": neither in tables nor in logs, also those that are kept to be written over, after merges that kept what a
// snapshot saw; and after the second opening not in MANIFESTs.
func TestCompactLeavesNoByteOfWhatWasDeleted(t *testing.T) {
	o := small(vfs.NewMem())
	o.Shards = 3
	s := mustOpen(t, "db", o)
	keys := plant(t, s)
	reads := s.Snapshot()
	erase(t, s, keys)
	plant(t, s) // pushes the old ones through merges that keep what the snapshot sees
	erase(t, s, keys)
	require.NoError(t, reads.Close())
	before := strings.Join(findPlanted(t, o.FS), " ")
	require.True(t, strings.Contains(before, ".sst") && strings.Contains(before, ".log"), "the control: the text is in %s", before)

	report, err := s.Compact(t.Context(), silent)
	require.NoError(t, err)
	left := findPlanted(t, o.FS)
	assert.Subset(t, report.Manifests, left)
	assert.Less(t, report.BytesAfter, report.BytesBefore)
	for range 2 {
		require.NoError(t, s.Close())
		s = mustOpen(t, "db", o)
	}
	n := 0
	require.NoError(t, s.Scan(nil, func(_, _ []byte) error { n++; return nil }))
	assert.Equal(t, 12*3*32, n, "rows that were not deleted")
	_, err = s.Verify(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Close())
	assert.Empty(t, findPlanted(t, o.FS)) // NB: what an opening removes is gone when it is closed
}

// TestCompactWaitsForReads that began before: it would keep what they see. A second one is refused meanwhile.
func TestCompactWaitsForReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small(vfs.NewMem())
		s := mustOpen(t, "db", o)
		keys := plant(t, s)
		reads := s.Snapshot()
		erase(t, s, keys)
		done := make(chan error, 1)
		waits := make(chan struct{}, 8)
		go func() {
			_, err := s.Compact(t.Context(), func(step string) {
				if strings.HasPrefix(step, "waiting for reads") {
					waits <- struct{}{}
				}
			})
			done <- err
		}()
		<-waits
		_, err := s.Compact(t.Context(), silent)
		assert.ErrorIs(t, err, ErrCompacting)
		select {
		case err := <-done:
			t.Errorf("it did not wait: %v", err)
		default:
		}
		require.NoError(t, reads.Close())
		require.NoError(t, <-done)
		for _, name := range findPlanted(t, o.FS) {
			assert.True(t, strings.HasPrefix(name, "MANIFEST-"), name)
		}
		require.NoError(t, s.Close())
		_, err = s.Compact(t.Context(), silent)
		assert.ErrorIs(t, err, ErrClosed)
	})
}

// TestCompactEmptiesTheLogsOfReplicas, which hold what was written as well.
func TestCompactEmptiesTheLogsOfReplicas(t *testing.T) {
	onAGroup(t, func(t *testing.T, s *Store) {
		led(t, s)
		erase(t, s, plant(t, s))
		entries := func() (n int) {
			require.NoError(t, s.scanPart(s.db.Load(), nil, nil, func(k, value []byte) error {
				if bytes.Contains(value, []byte(planted)) {
					n++
				}
				return nil
			}))
			return n
		}
		require.NotZero(t, entries(), "the control: entries of logs have the text")
		_, err := s.Compact(t.Context(), silent)
		require.NoError(t, err)
		assert.Zero(t, entries())
		for _, name := range findPlanted(t, s.options.FS) {
			assert.True(t, strings.HasPrefix(name, "MANIFEST-"), name)
		}
		w := s.NewBatch(0) // the group goes on
		w.Set(key.Record(nil, 0, "w", key.ID{1}), nil)
		require.NoError(t, s.Commit(w))
	})
}
