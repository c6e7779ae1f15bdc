package history

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/internal/breaks"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// stored is what Load of a store has in a map; reads counts.
type stored struct {
	rows  map[string][]byte
	reads int
}

func (s *stored) Load(key []byte) ([]byte, error) {
	s.reads++
	if value, ok := s.rows[string(key)]; ok {
		return value, nil
	}
	return nil, persistence.ErrNotFound
}

// walk returns the entries of an instance with many state machines, some of which have regions that come and go, as they are shown and
// as they are stored.
func walk(r *rand.Rand, machines, entries int) (shown []string, kept [][]byte) {
	at := make([]statemachine.NodeID, machines)
	for k := range at {
		at[k] = "Start"
	}
	var chain statemachine.Chain
	for n := 1; n <= entries; n++ {
		to := append([]statemachine.NodeID(nil), at...)
		for range r.IntN(4) {
			k := r.IntN(len(to))
			switch r.IntN(6) {
			case 0:
				to = append(to[:k:k], append([]statemachine.NodeID{"region"}, to[k:]...)...)
			case 1:
				if len(to) > machines {
					to = append(to[:k:k], to[k+1:]...)
				}
			default:
				to[k] = statemachine.NodeID(fmt.Sprintf("a node of a long name \"%d\"", r.IntN(9)))
			}
		}
		e := statemachine.Entry{User: `jo","startState":[]`, Start: at, Event: `go,"endState":[]`, End: to, At: time.UnixMilli(int64(n))}
		if r.IntN(3) == 0 {
			e.Data = data.Value(`{"a":1}`)
		}
		value := e.AppendJSON(make([]byte, HeadBytes))
		shown = append(shown, string(value[HeadBytes:]))
		e.Attempt = n%5 == 0
		value = complete(value, &e, nil, uint64(n), uint16(n), n%3 > 0, true)
		chain = Seal(value, chain)
		kept, at = append(kept, value), to
	}
	return shown, kept
}

// TestFoldedEntriesAreShownWhole, whatever comes before or behind them is read, byte for byte.
func TestFoldedEntriesAreShownWhole(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		shown, kept := walk(r, 2+r.IntN(60), 150)
		id, from := key.ID{1}, &stored{rows: map[string][]byte{}}
		for k, value := range kept {
			from.rows[string(key.Entry(nil, 0, id, uint64(k+1)))] = value
		}
		check := func(what string, reader *Reader, n int) {
			t.Helper()
			if got, err := reader.Entry(uint64(n), kept[n-1]); string(got) != shown[n-1] || err != nil {
				t.Fatalf("seed %d, %s, entry %d: got %s, %v, want %s", seed, what, n, got, err, shown[n-1])
			}
		}
		up, down, other := NewReader(from, 0, id), NewReader(from, 0, id), NewReader(from, 0, id)
		for n := 1; n <= len(kept); n++ {
			check("forward", up, n)
			check("backward", down, len(kept)+1-n)
			check("anywhere", other, 1+r.IntN(len(kept)))
			from.reads = 0
			if check("alone", NewReader(from, 0, id), n); from.reads > wholeEvery {
				t.Errorf("entry %d alone took %d reads", n, from.reads)
			}
		}
	}
}

// TestAFoldedEntryIsSmall: what moves counts, not how many state machines there are.
func TestAFoldedEntryIsSmall(t *testing.T) {
	at := make([]statemachine.NodeID, 100)
	for k := range at {
		at[k] = statemachine.NodeID(fmt.Sprint(strings.Repeat("long", 15), k))
	}
	to := append([]statemachine.NodeID(nil), at...)
	to[50] = "another"
	e := statemachine.Entry{User: "john", Start: at, Event: "go", End: to, At: time.UnixMilli(1)}
	whole := e.AppendJSON(nil)
	folded := complete(e.AppendJSON(make([]byte, HeadBytes)), &e, nil, 2, 7, true, true)
	assert.True(t, mayFold(&e, 2, len(whole)) && len(whole) >= 12_000 && len(folded) <= 250, "%d bytes become %d", len(whole), len(folded))
	for _, no := range []uint64{1, wholeEvery} {
		assert.False(t, mayFold(&e, no, len(whole)), "entry %d may be folded", no)
	}
	got, ok := Ending(folded, to)
	assert.True(t, ok && bytes.Equal(got, whole), "got %s", got)
	_, ok = Ending(folded, at)
	assert.False(t, ok, "another end fits")
	e.Start, e.End = at[:1], to[:1]
	assert.False(t, mayFold(&e, 2, 1<<20), "one state machine gains by it")
}

// TestAnAnswerHasTheNewestPart, whether entries are read or come one by one.
func TestAnAnswerHasTheNewestPart(t *testing.T) {
	const most = 100
	var joined Joined
	var all []string
	for n := 1; n <= 50; n++ {
		entry := fmt.Sprintf(`{"n":%d,"t":"}{\"\\"}`, n)
		if n == 40 {
			entry = `{"long":"` + strings.Repeat("x", most) + `"}`
		}
		all = append(all, entry)
		joined = joined.with([]byte(entry), most)
		from, size := n, len(entry)
		for from > 1 && size+1+len(all[from-2]) <= most {
			from--
			size += 1 + len(all[from-1])
		}
		want := strings.Join(all[from-1:], ",")
		require.True(t, string(joined.Text) == want && joined.From == uint64(from), "after %d: got %d, %s, want %d, %s", n, joined.From, joined.Text, from, want)
	}
}

// changes are the bytes of what the kept entries change.
func (k *newest) changes() (n int) {
	for _, e := range k.entries {
		n += e.changes
	}
	return n
}

// TestTheEndOfAHistory is the same whether entries are unfolded one after the other, or only those that an answer has. No more
// is kept than that, and few are read a second time.
func TestTheEndOfAHistory(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 2))
		machines := 1 + int(seed)*3 // one: nothing is folded
		shown, kept := walk(r, machines, 150)
		id, from := key.ID{1}, &stored{rows: map[string][]byte{}}
		for k, value := range kept {
			from.rows[string(key.Entry(nil, 0, id, uint64(k+1)))] = value
		}
		for _, most := range []int{1, 2 * len(shown[0]), 30 * len(shown[0]), 1 << 20} {
			var want Joined
			end := newest{first: 1, most: most, breaks: breaks.New(time.Hour, 1, 1)}
			for k, value := range kept {
				want = want.with([]byte(shown[k]), most)
				p, ok := split(value)
				if end.add(p); !ok || len(end.text) > most+end.changes()+end.entries[0].stored() {
					t.Fatalf("seed %d, %d bytes, entry %d: %d are kept", seed, most, k+1, len(end.text))
				}
			}
			from.reads = 0
			got, err := end.join(NewReader(from, 0, id))
			assert.True(t, err == nil && bytes.Equal(got.Text, want.Text) && got.From == want.From,
				"seed %d, %d bytes: got %d bytes from entry %d, %v, want %d from %d", seed, most, len(got.Text), got.From, err, len(want.Text), want.From)
			has := uint64(len(kept)) + 1 - want.From
			assert.False(t, machines > 20 && uint64(len(end.entries)) > 4*has+4, "seed %d, %d bytes: %d entries are kept for %d", seed, most, len(end.entries), has)
			assert.LessOrEqual(t, from.reads, len(end.entries)+wholeEvery, "seed %d, %d bytes", seed, most)
		}
	}
}

// TestADamagedFoldShows where the entry before is missing or another one.
func TestADamagedFoldShows(t *testing.T) {
	disk, err := storetest.NewDisk().Open(persistence.Options{Log: zerolog.Nop()})
	require.NoError(t, err)
	defer func() {
		assert.NoError(t, disk.Close())
	}()
	shown, kept := walk(rand.New(rand.NewPCG(7, 7)), 40, 20)
	_, other := walk(rand.New(rand.NewPCG(8, 8)), 40, 20)
	for what, spoil := range map[string]func([][]byte){
		"nothing": func([][]byte) {}, "the one before is missing": func(all [][]byte) { all[9] = nil }, "the one before is another": func(all [][]byte) { all[9] = other[9] },
		"a byte": func(all [][]byte) { all[10][len(all[10])-12]++ },
	} {
		all := make([][]byte, len(kept))
		id := key.ID{byte(len(what)), 1}
		w := disk.NewBatch(disk.ShardOf(id))
		for k := range kept {
			all[k] = bytes.Clone(kept[k])
		}
		spoil(all)
		for k, value := range all {
			if value != nil {
				w.Set(key.Entry(nil, disk.ShardOf(id), id, uint64(k+1)), value)
			}
		}
		require.NoError(t, disk.Commit(w))
		joined, _, err := Load(disk, disk.ShardOf(id), id, uint64(len(kept)))
		if what == "nothing" {
			assert.True(t, string(joined.Text) == strings.Join(shown, ",") && err == nil, "got %v", err)
		} else if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
