package persistence

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/persistence/key"
)

// sharded are options for a store in memory of so many shards.
func sharded(n int) Options {
	o := small(vfs.NewMem())
	o.Shards = n
	return o
}

// rows are the keys of a store of four shards that has index entries in all of them,
// and other tables beside: what a test of ranges reads.
func rows(t testing.TB, s *Store) (keys [][]byte) {
	t.Helper()
	for sh := range key.Shard(s.Shards()) {
		w := s.NewBatch(sh)
		for n := range 24 {
			var id key.ID
			binary.BigEndian.PutUint16(id[:], uint16(n*4+int(sh)))
			for _, key := range [][]byte{
				key.Index(nil, sh, uint32(n%3), []byte{byte(n % 5), 0}, id),
				key.Record(nil, sh, "wf", id),
			} {
				w.Set(key, append([]byte("v"), key...))
				keys = append(keys, key)
			}
		}
		// A row with the same rest in every shard.
		same := key.Index(nil, sh, 2, []byte{1, 0}, key.ID{0xEE})
		w.Set(same, append([]byte("v"), same...))
		keys = append(keys, same)
		must(t, s.Commit(w))
	}
	return keys
}

// oracle is the slow way: all keys of the ranges, in the order of a MergeCursor.
type oracle struct{ key, rest []byte }

func oracleOf(keys [][]byte, ranges []key.Range) (all []oracle) {
	for _, r := range ranges {
		for _, k := range keys {
			prefix := bytes.Clone(r.Prefix)
			if key.Shard(binary.BigEndian.Uint16(prefix)) == key.EveryShard {
				copy(prefix, k[:2])
			}
			rest, ok := bytes.CutPrefix(k, prefix)
			if ok && bytes.Compare(rest, r.From) >= 0 && (r.To == nil || bytes.Compare(rest, r.To) < 0) {
				all = append(all, oracle{k, rest})
			}
		}
	}
	slices.SortFunc(all, func(a, b oracle) int {
		if order := bytes.Compare(a.rest, b.rest); order != 0 {
			return order
		}
		return bytes.Compare(a.key, b.key)
	})
	return all
}

// drawRest is a bound or a place: something near what follows a prefix.
func drawRest(t *rapid.T, label string) []byte {
	if rapid.Bool().Draw(t, label+" is nil") {
		return nil
	}
	rest := []byte{rapid.Byte().Draw(t, label) % 6}
	if rapid.Bool().Draw(t, label+" goes on") {
		rest = append(rest, 0, 0, rapid.Byte().Draw(t, label+" id")%100)
	}
	return rest
}

func drawRanges(t *rapid.T) (ranges []key.Range) {
	for range rapid.IntRange(1, 4).Draw(t, "ranges") {
		sh := rapid.SampledFrom([]key.Shard{key.EveryShard, key.EveryShard, 0, 3}).Draw(t, "shard")
		prefix := key.IndexPrefix(nil, sh, rapid.Uint32Range(0, 3).Draw(t, "index"))
		if rapid.Bool().Draw(t, "a point") {
			prefix = append(prefix, rapid.Byte().Draw(t, "value")%6, 0)
		}
		r := key.Range{Prefix: prefix, From: drawRest(t, "from"), To: drawRest(t, "to")}
		if r.To != nil && bytes.Compare(r.From, r.To) > 0 && rapid.Bool().Draw(t, "not empty") {
			r.From, r.To = r.To, r.From
		}
		ranges = append(ranges, r)
	}
	return ranges
}

func TestRangesOfEveryShardComeInOneOrder(t *testing.T) {
	s := open(t, sharded(4))
	keys := rows(t, s)
	snapshot := s.Snapshot()
	defer func() { _ = snapshot.Close() }()
	rapid.Check(t, func(t *rapid.T) {
		ranges := drawRanges(t)
		want := oracleOf(keys, ranges)
		merge, behind := snapshot.Merge, func(rest, place []byte) bool { return bytes.Compare(rest, place) >= 0 }
		if rapid.Bool().Draw(t, "backward") {
			slices.Reverse(want)
			merge, behind = snapshot.MergeBackward, func(rest, place []byte) bool { return bytes.Compare(rest, place) < 0 }
		}
		c := merge(ranges...)
		at := -1 // in want
		for range rapid.IntRange(0, 60).Draw(t, "moves") {
			var got bool
			if rapid.IntRange(0, 5).Draw(t, "seek") == 0 {
				// On from where it stands: it does not go back.
				place := drawRest(t, "place")
				if at >= 0 && at < len(want) && behind(want[at].rest, place) {
					continue
				}
				got = c.Seek(place)
				for at = max(at, 0); at < len(want) && !behind(want[at].rest, place); at++ {
				}
			} else {
				got = c.Next()
				at = min(at+1, len(want))
			}
			require.Equal(t, at < len(want), got, "row %d of %d: the cursor", at, len(want))
			if !got {
				continue
			}
			if w := want[at]; !bytes.Equal(c.Key(), w.key) || !bytes.Equal(c.Rest(), w.rest) || string(c.Value()) != "v"+string(w.key) {
				t.Fatalf("row %d: got %x with rest %x, want %x with %x", at, c.Key(), c.Rest(), w.key, w.rest)
			}
		}
		must(t, errors.Join(c.Err(), c.Close()))
		var scanned [][]byte
		require.NoError(t, snapshot.ScanRanges(func(key, _ []byte) error {
			scanned = append(scanned, bytes.Clone(key))
			return nil
		}, ranges...))
		all := make([][]byte, 0, len(want))
		for _, w := range want {
			all = append(all, w.key)
		}
		slices.SortFunc(all, bytes.Compare)
		slices.SortFunc(scanned, bytes.Compare)
		require.True(t, slices.EqualFunc(scanned, all, bytes.Equal), "a scan gave %d keys, want %d", len(scanned), len(all))
	})
}

func TestAPrefixOfEveryShardIsScannedAndSummed(t *testing.T) {
	s := open(t, sharded(4))
	for sh := range key.Shard(4) {
		w := s.NewBatch(sh)
		w.Add(key.Count(nil, sh, "wf", 1), int64(sh)+1)
		w.Add(key.Count(nil, sh, "wf", 2), 10)
		w.Add(key.Count(nil, sh, "other", 1), 100)
		must(t, s.Commit(w))
	}
	for prefix, want := range map[string]int64{
		string(key.CountPrefix(nil, key.EveryShard, "wf")):     50,
		string(key.Count(nil, key.EveryShard, "wf", 1)):        10,
		string(key.Count(nil, key.EveryShard, "wf", 3)):        0,
		string(key.CountPrefix(nil, 2, "wf")):                  13,
		string(key.CountPrefix(nil, key.EveryShard, "nobody")): 0,
	} {
		got, err := s.CountAll([]byte(prefix))
		assert.True(t, err == nil && got == want, "%x: got %d, %v, want %d", prefix, got, err, want)
	}
	stop := errors.New("enough")
	calls := 0
	err := s.Scan(key.CountPrefix(nil, key.EveryShard, "wf"), func(_, _ []byte) error {
		if calls++; calls == 3 {
			return stop
		}
		return nil
	})
	assert.True(t, errors.Is(err, stop) && calls == 3, "a scan that is stopped: got %v after %d keys, want %v after 3", err, calls, stop)
}

func TestPrefixesOfEveryShardAreDeleted(t *testing.T) {
	s := open(t, sharded(4))
	keys := rows(t, s)
	gone := []key.Range{{Prefix: key.IndexPrefix(nil, key.EveryShard, 1)}, {Prefix: key.IndexPrefix(nil, key.EveryShard, 2)}}
	must(t, s.DeletePrefixes(gone[0].Prefix, gone[1].Prefix))
	left := 0
	must(t, s.Scan(nil, func(_, _ []byte) error { left++; return nil }))
	want := len(keys) - len(oracleOf(keys, gone))
	assert.Equal(t, want, left, "keys are left")
}

func TestWhatIsGoneIsDeletedInEveryShard(t *testing.T) {
	s := open(t, sharded(3))
	for sh, n := range []int{1, deletesMax + 5, 1} { // the second takes two sets of writes
		w := s.NewBatch(key.Shard(sh))
		for k := range n {
			w.Set(key.Reply(nil, key.Shard(sh), key.ID{}, [16]byte{byte(k >> 8), byte(k)}), []byte("old"))
		}
		w.Set(key.Reply(nil, key.Shard(sh), key.ID{}, [16]byte{255}), []byte(map[bool]string{true: "damaged", false: "new"}[sh == 0]))
		w.Set(key.Reply(nil, key.Shard(sh), key.ID{1}, [16]byte{}), []byte("old")) // has another prefix
		must(t, s.Commit(w))
	}
	damaged := errors.New("damaged")
	err := s.DeleteWhere(key.ReplyPrefix(nil, key.EveryShard, key.ID{}), func(value []byte) (bool, error) {
		if string(value) == "damaged" {
			return false, damaged
		}
		return string(value) == "old", nil
	})
	assert.ErrorIs(t, err, damaged)
	left := map[string]int{}
	must(t, s.Scan(nil, func(_, value []byte) error { left[string(value)]++; return nil }))
	want := map[string]int{"damaged": 1, "new": 2, "old": 3}
	assert.True(t, maps.Equal(left, want), "left are %v, want %v", left, want)
}

// TestAMergeGivesItsCursorsBack: a store closes only when none is open any more.
func TestAMergeGivesItsCursorsBack(t *testing.T) {
	for moves := range 4 {
		t.Run(fmt.Sprint(moves, " moves"), func(t *testing.T) {
			s := mustOpen(t, "db", sharded(4))
			rows(t, s)
			snapshot := s.Snapshot()
			c := snapshot.Merge(key.Range{Prefix: key.RecordPrefix(nil, key.EveryShard, "wf"), From: bytes.Repeat([]byte{0}, 2), To: []byte{0, 2}})
			for range moves {
				c.Next()
			}
			assert.NoError(t, errors.Join(c.Err(), c.Close(), snapshot.Close(), s.Close()))
			if c := s.Snapshot().Merge(key.Range{Prefix: key.RecordPrefix(nil, key.EveryShard, "wf")}); c.Next() || !errors.Is(c.Err(), ErrClosed) || c.Close() != nil {
				t.Errorf("on a closed store: got %v, want ErrClosed", c.Err())
			}
		})
	}
}

// TestAMergeKeepsLargeRowsOneAtATime: small ones it reads ahead.
func TestAMergeKeepsLargeRowsOneAtATime(t *testing.T) {
	s := open(t, sharded(4))
	for n := range 100 {
		w := s.NewBatch(1)
		w.Set(key.Index(nil, 1, 1, []byte{0}, key.ID{byte(n)}), make([]byte, 100))
		w.Set(key.Index(nil, 1, 2, []byte{0}, key.ID{byte(n)}), make([]byte, aheadBytes))
		must(t, s.Commit(w))
	}
	snapshot := s.Snapshot()
	defer func() { _ = snapshot.Close() }()
	for index, want := range map[uint32]int{1: aheadMax, 2: 1} {
		c, most := snapshot.Merge(key.Range{Prefix: key.IndexPrefix(nil, key.EveryShard, index)}), 0
		for c.Next() {
			most = max(most, len(c.sources.all[0].ahead))
		}
		err := errors.Join(c.Err(), c.Close())
		assert.True(t, err == nil && most == want, "index %d: %d rows are kept, %v, want %d", index, most, err, want)
	}
}

// TestHoppingFindsEachGroupOnce: from the values of an index it goes to the next one, in each shard.
func TestHoppingFindsEachGroupOnce(t *testing.T) {
	s := mustOpen(t, "store", sharded(4))
	defer func() { must(t, s.Close()) }()
	keys := rows(t, s)
	sn := s.Snapshot()
	defer func() { must(t, sn.Close()) }()
	valueOf := func(k []byte) []byte { return k[:len(k)-len(key.ID{})] }
	want := map[string]bool{}
	for _, k := range keys {
		if key, ok := key.Parse(k); ok && key.Table == "index" && key.Number == 1 {
			want[string(valueOf(k))] = true
		}
	}
	index := key.Range{Prefix: key.IndexPrefix(nil, key.EveryShard, 1)}
	got := map[string]int{}
	must(t, sn.Hop(func(k []byte) ([]byte, error) {
		got[string(valueOf(k))]++
		return key.PrefixEnd(valueOf(k)), nil
	}, index))
	assert.True(t, len(got) == len(want) && len(want) != 0, "got %d values, want %d", len(got), len(want))
	for value, n := range got {
		assert.True(t, n == 1 && want[value], "%x: visited %d times, is one: %t", value, n, want[value])
	}
	first := 0
	must(t, sn.Hop(func([]byte) ([]byte, error) { first++; return nil, nil }, index, index))
	assert.Equal(t, 2*int(s.Shards()), first, "without a next one")
	failed := errors.New("enough")
	assert.ErrorIs(t, sn.Hop(func([]byte) ([]byte, error) { return nil, failed }, index), failed)
}
