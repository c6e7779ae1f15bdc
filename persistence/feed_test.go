package persistence

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "troupe/internal/fixedseed"
	"troupe/persistence/key"
)

// announce commits a row of the feed, and returns its place.
func announce(t fataler, s *Store, sh key.Shard, at int64, text string) key.FeedPlace {
	t.Helper()
	w := s.NewBatch(sh)
	w.Set(key.Record(nil, sh, "w", key.ID{}), []byte(text))
	var placed key.FeedPlace
	w.Announce(at, []byte(text), &placed)
	w.Set(key.Entry(nil, sh, key.ID{}, 1), []byte("behind the row in the batch"))
	must(t, s.Commit(w))
	return placed
}

// feedOf reads the feed of a shard.
func feedOf(t fataler, s *Store, sh key.Shard) (rows []FeedRow) {
	t.Helper()
	must(t, s.Scan(key.FeedPrefix(nil, sh), func(key, stored []byte) error {
		if row, ok := ParseFeedRow(key, stored); ok {
			row.Value = slices.Clone(row.Value)
			rows = append(rows, row)
		}
		return nil
	}))
	return rows
}

// TestAFeedIsInTheOrderOfItsCommits whatever the clock says, over restarts: places and ordinals grow, and each
// writer is told its own.
func TestAFeedIsInTheOrderOfItsCommits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		fs := vfs.NewMem()
		s := mustOpen(t, "db", small(fs))
		want := map[key.Shard][]FeedRow{}
		for n := range rapid.IntRange(1, 12).Draw(t, "steps") {
			if rapid.IntRange(0, 4).Draw(t, "restart") == 0 {
				must(t, s.Close())
				s = mustOpen(t, "db", small(fs))
			}
			sh := key.Shard(rapid.IntRange(0, 1).Draw(t, "shard"))
			at := rapid.SampledFrom([]int64{0, 1, 2, 1_700_000_000_000, 1_700_000_000_001}).Draw(t, "at")
			text := fmt.Sprint(n)
			of := want[sh]
			place := max(key.FeedPlaceAt(at), 1)
			if len(of) > 0 {
				place = max(place, of[len(of)-1].Place+1)
			}
			require.Equal(t, place, announce(t, s, sh, at, text), "place")
			want[sh] = append(of, FeedRow{Place: place, Ordinal: uint64(len(of)) + 1, Value: []byte(text)})
		}
		for sh, rows := range want {
			got := feedOf(t, s, sh)
			require.True(t, slices.EqualFunc(got, rows, func(a, b FeedRow) bool {
				return a.Place == b.Place && a.Ordinal == b.Ordinal && string(a.Value) == string(b.Value)
			}), "shard %d: got %v, want %v", sh, got, rows)
			end, err := s.FeedEnd(sh)
			must(t, err)
			last := rows[len(rows)-1]
			require.True(t, end.Place == last.Place && end.Ordinal == last.Ordinal, "the end of shard %d: got %v, want %v", sh, end, last)
		}
		must(t, s.Close())
	})
}

// TestAReaderOfAFeedMissesNoRow: a row never becomes visible before another one that has a later place.
func TestAReaderOfAFeedMissesNoRow(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	const writers, each = 8, 200
	var wg sync.WaitGroup
	for g := range writers {
		wg.Go(func() {
			for n := range each {
				announce(t, s, 3, int64(n), fmt.Sprintf("%d-%d", g, n))
			}
		})
	}
	var seen []string
	var at key.FeedPlace
	for len(seen) < writers*each {
		written := s.Written()
		sn := s.Snapshot()
		c := sn.Cursor(key.Feed(nil, 3, at+1), key.PrefixEnd(key.FeedPrefix(nil, 3)))
		found := false
		for c.Next() {
			row, ok := ParseFeedRow(c.Key(), c.Value())
			if !ok {
				t.Fatalf("row %x cannot be read", c.Key())
			}
			at, found = row.Place, true
			seen = append(seen, string(row.Value))
		}
		must(t, errors.Join(c.Err(), c.Close(), sn.Close()))
		if !found {
			<-written
		}
	}
	wg.Wait()
	rows := feedOf(t, s, 3)
	for n, row := range rows {
		require.Equal(t, seen[n], string(row.Value), "row %d: a reader saw", n)
	}
	assert.Len(t, rows, len(seen), "there")
}

// TestPlacesAreInTheOrderOfAppend, whichever set of writes was announced first. With places that Announce gives, a reader
// sees the later place first and passes over the other one.
func TestPlacesAreInTheOrderOfAppend(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	var first, second key.FeedPlace
	w, before := s.NewBatch(2), s.NewBatch(2)
	w.Announce(7, []byte("announced first"), &second)
	before.Announce(7, []byte("appended first"), &first)
	must(t, s.Commit(before))
	at := feedOf(t, s, 2)[0].Place
	must(t, s.Commit(w))
	rows := feedOf(t, s, 2)
	assert.True(t, len(rows) == 2 && rows[0].Place == at && string(rows[1].Value) == "announced first" && first == at && second > first, "%v %v %v", rows, first, second)
}

func TestATrimmedFeedSaysSoAndGoesOn(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, "db", small(fs))
	for n := range 5 {
		announce(t, s, 0, 10, fmt.Sprint(n))
	}
	last := feedOf(t, s, 0)[3].Place
	w := s.NewBatch(0)
	TrimFeed(w, last)
	must(t, s.Commit(w))
	must(t, s.Close())
	s = mustOpen(t, "db", small(fs))
	announce(t, s, 0, 1, "5")
	var got []string
	for _, row := range feedOf(t, s, 0) {
		got = append(got, fmt.Sprintf("%d %s", row.Ordinal, row.Value))
	}
	want := []string{"5 4", "6 5"}
	assert.True(t, slices.Equal(got, want), "got %q, want %q", got, want)
	sn := s.Snapshot()
	floor, err := sn.FeedFloor(0)
	assert.True(t, floor == last && err == nil, "floor: got %d and %v, want %d", floor, err, last)
	floor, err = sn.FeedFloor(1)
	assert.True(t, floor == 0 && err == nil, "floor of another shard: got %d and %v, want 0", floor, err)
	must(t, errors.Join(sn.Close(), s.Close()))
}

// TestTheFloorOfAFeedIsNoRow, and no other bytes are one.
func TestTheFloorOfAFeedIsNoRow(t *testing.T) {
	value := binary.BigEndian.AppendUint64(nil, 7)
	for name, c := range map[string]struct {
		key, value []byte
		want       bool
	}{
		"a row":        {key.Feed(nil, 1, 9), value, true},
		"the floor":    {key.FeedFloor(nil, 1), value, false},
		"no ordinal":   {key.Feed(nil, 1, 9), value[:7], false},
		"a longer key": {append(key.Feed(nil, 1, 9), 0), value, false},
		"another row":  {key.Entry(nil, 1, key.ID{}, 9), value, false},
	} {
		_, ok := ParseFeedRow(c.key, c.value)
		assert.Equal(t, c.want, ok, name)
	}
}

// TestRowsOfOneSetOfWritesFollowEachOther in their order, and the next set has none of them.
func TestRowsOfOneSetOfWritesFollowEachOther(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	var places [3]key.FeedPlace
	w := s.NewBatch(0)
	for i := range places[:2] {
		w.Announce(7, []byte{byte(i)}, &places[i])
	}
	assert.Equal(t, 2, w.Len())
	require.NoError(t, s.Commit(w))
	w = s.NewBatch(0)
	assert.Zero(t, w.Len())
	w.Announce(7, []byte{2}, &places[2])
	require.NoError(t, s.Commit(w))
	var got []FeedRow
	require.NoError(t, s.Scan(key.FeedPrefix(nil, 0), func(k, stored []byte) error {
		row, ok := ParseFeedRow(k, bytes.Clone(stored))
		got = append(got, row)
		assert.True(t, ok)
		return nil
	}))
	require.Len(t, got, len(places))
	for i, row := range got {
		assert.Equal(t, FeedRow{Place: key.FeedPlaceAt(7) + key.FeedPlace(i), Ordinal: uint64(i + 1), Value: []byte{byte(i)}}, row)
		assert.Equal(t, row.Place, places[i])
	}
}
