package replica

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func command(index uint64, data []byte) *raft.Log {
	return &raft.Log{Index: index, Term: 7, Type: raft.LogCommand, Data: data}
}

var epochEntry = []byte{entryVersion, kindEpoch}

func take(t *testing.T, s *snapshots, index uint64) {
	t.Helper()
	require.NoError(t, tryTake(s, index))
}

func tryTake(s *snapshots, index uint64) error {
	sink, err := s.Create(raft.SnapshotVersionMax, index, 7, raft.Configuration{}, 1, nil)
	if err == nil {
		err = rowsAsTheyAre{}.Persist(sink)
	}
	return err
}

// TestACopyHasTheRowsAsTheyAreNow: who gets a snapshot gets rows that may be newer, and
// its own row about the snapshot, in one step.
func TestACopyHasTheRowsAsTheyAreNow(t *testing.T) {
	from := newMemory()
	s, _ := openState(from, []byte("a "), nil)
	saved := newSnapshots(from, []byte("a "), s)
	s.Apply(command(4, epochEntry))
	take(t, saved, 4)
	s.Apply(command(5, writesOf(4, 0, "x1", "y"+strings.Repeat("long", 1000))))
	meta, rows, err := saved.Open("")
	require.NoError(t, err)
	sent, err := io.ReadAll(rows)
	if err != nil || int64(len(sent)) != meta.Size || meta.Index != 4 {
		t.Fatalf("got %d bytes up to entry %d (%v), want %d up to 4", len(sent), meta.Index, err, meta.Size)
	}
	for name, c := range map[string]struct {
		log         []*raft.Log
		index, term uint64
	}{
		"a log that has the entry":  {logOf(9, 5), 5, 9},
		"one that goes on":          {logOf(9, 5, 6), 5, 9},
		"one that begins behind it": {logOf(9, 6, 7), 4, 7},
		"one that ends before it":   {logOf(9, 4), 4, 7},
		"an empty one":              {nil, 4, 7},
	} {
		log := openLog(t, newMemory())
		if c.log != nil {
			require.NoError(t, log.StoreLogs(c.log))
		}
		with := &snapshots{store: from, state: s, key: saved.key, log: log}
		meta, rows, err := with.Open("")
		assert.True(t, err == nil && meta.Index == c.index && meta.Term == c.term && meta.ConfigurationIndex == 1 && int64(len(sent)) == meta.Size,
			"%s: got %+v, %v, want entry %d of term %d", name, meta, err, c.index, c.term)
		_ = rows.Close()
	}

	install := func(sent []byte) (*memory, *state, *snapshots, error) {
		to := newMemory()
		to.rows["row old"] = "of before"
		state, _ := openState(to, []byte("a "), nil)
		received := newSnapshots(to, []byte("a "), state)
		sink, _ := received.Create(raft.SnapshotVersionMax, 4, 7, raft.Configuration{Servers: []raft.Server{{ID: "me"}}}, 2, nil)
		for part := range slices.Chunk(sent, 100) {
			if _, err := sink.Write(part); err != nil {
				return to, state, received, errors.Join(err, sink.Cancel())
			}
		}
		return to, state, received, sink.Close()
	}
	to, state, received, err := install(sent)
	require.NoError(t, err)
	delete(from.rows, "a s")
	own := to.rows["a s"]
	delete(to.rows, "a s")
	assert.True(t, maps.Equal(from.rows, to.rows) && strings.Contains(own, `"me"`), "got %d rows and %s, want %d rows and its own", len(to.rows), own, len(from.rows))
	to.rows["a s"] = own
	if at, _ := state.position(); at.applied != 5 || at.revision != 1 {
		t.Errorf("the position is %+v, want that of the rows", at)
	}
	assert.True(t, state.Apply(command(5, writesOf(4, 0, "x9"))) == nil && to.rows["row x"] == "1", "an entry that the copy contains was applied again")
	_, rows, err = received.Open("")
	assert.True(t, err == nil && state.Restore(rows) == nil, "Raft cannot go on with the copy: %v", err)
	at := bytes.Index(sent, []byte("a p")) + len("a p")
	old := bytes.Clone(sent)
	old[at+7] = 3 // the number of the last entry that was applied
	short := slices.Delete(bytes.Clone(sent), at, at+1)
	short[at-len("a p")-1]--
	for name, broken := range map[string][]byte{
		"behind its index":  old,
		"a short position":  short,
		"without position":  {0, 0, 0, 1, 0, 0, 0, 1, 'a', 'b'},
		"cut off":           sent[:len(sent)-1],
		"a row too large":   append([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0}, sent...),
		"rows out of order": append(bytes.Clone(sent), sent...),
	} {
		if to, _, _, err := install(broken); err == nil || to.rows["row old"] != "of before" {
			t.Errorf("%s: got %v and %q, want an error and nothing changed", name, err, to.rows)
		}
	}
}
