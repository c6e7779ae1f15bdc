package query

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
)

func TestAnEstimateIsExactBelowWhatIsEnough(t *testing.T) {
	s, err := storetest.NewSteadyDisk().Open(persistence.Options{Shards: 4})
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	const total int64 = 96
	for sh := range key.Shard(4) {
		w := s.NewBatch(sh)
		for n := range byte(total / 4) {
			w.Set(key.Record(nil, sh, "wf", key.ID{n}), nil)
			w.Set(key.Index(nil, sh, 1, []byte{n}, key.ID{n}), nil)
		}
		require.NoError(t, s.Commit(w))
	}
	snapshot := s.Snapshot()
	defer func() { _ = snapshot.Close() }()
	records := key.Range{Prefix: key.RecordPrefix(nil, key.EveryShard, "wf")}
	for _, c := range []struct {
		enough, most int64
		want         estimate
	}{
		{total + 1, total + 1, estimate{keys: total, exact: true, read: total}},
		{total / 4, total, estimate{keys: total, read: total / 4}}, // one shard tells
		{total/4 + 1, total, estimate{keys: total, read: total / 2}},
		{10, 10, estimate{keys: 40, read: 10}},
	} {
		visited, begun := int64(0), int64(0)
		stopAt := int64(-1)
		stopped := errors.New("stopped")
		visit := func(k []byte) error {
			if visited+begun == stopAt {
				return stopped
			}
			if _, ok := key.RecordID(k); ok {
				visited++
			} else if k == nil {
				begun++
			}
			return nil
		}
		got, err := estimateKeys(snapshot, c.enough, c.most, visit, records)
		assert.True(t, err == nil && got == c.want && visited == c.want.read && begun == (visited+total/4-1)/(total/4),
			"enough %d, most %d: got %+v of %d visited in %d shards, %v, want %+v", c.enough, c.most, got, visited, begun, err, c.want)
		for visits := visited + begun; stopAt < visits-1; {
			visited, begun, stopAt = 0, 0, stopAt+1
			_, err := estimateKeys(snapshot, c.enough, c.most, visit, records)
			assert.ErrorIs(t, err, stopped, "enough %d, most %d, stopped at visit %d", c.enough, c.most, stopAt)
		}
	}
}
