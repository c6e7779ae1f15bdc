package replica

import (
	"bytes"
	"errors"
	"io"
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

// TestWhatWasBuiltOnSomethingLostIsPassedOver: an entry counts when its epoch and the
// revision that it follows are those of the shard.
func TestWhatWasBuiltOnSomethingLostIsPassedOver(t *testing.T) {
	m := newMemory()
	s, err := openState(m, []byte("state "), func(reason string) { t.Fatal(reason) })
	require.NoError(t, err)
	for _, step := range []struct {
		what  string
		index uint64
		data  []byte
		want  any
		row   string // that is set by it; the first letter is the key
	}{
		{"before any epoch", 2, writesOf(1, 0, "a1"), errStale, ""},
		{"an epoch begins", 3, epochEntry, uint64(3), ""},
		{"its first", 4, writesOf(3, 0, "a1", "b1"), nil, "a1"},
		{"its second", 5, writesOf(3, 1, "a2"), nil, "a2"},
		{"the second again", 6, writesOf(3, 1, "a9"), errStale, ""},
		{"one behind a gap", 7, writesOf(3, 3, "a9"), errStale, ""},
		{"the third", 8, writesOf(3, 2, "a3"), nil, "a3"},
		{"an epoch begins again", 9, epochEntry, uint64(9), ""},
		{"of the epoch before", 10, writesOf(3, 3, "a9"), errStale, ""},
		{"of this", 11, writesOf(9, 0, "a4"), nil, "a4"},
		{"applied before", 11, writesOf(9, 1, "a9"), nil, ""},
	} {
		before, _ := m.Load([]byte("row a"))
		if got := s.Apply(command(step.index, step.data)); got != step.want {
			t.Errorf("%s: got %v, want %v", step.what, got, step.want)
		}
		want := string(before)
		if step.row != "" {
			want = step.row[1:]
		}
		got, _ := m.Load([]byte("row a"))
		assert.Equal(t, want, string(got), "%s: the row", step.what)
	}
	assert.ErrorIs(t, errStale, ErrNotLed, "an entry that was passed over is not said to be without effect")
	again, err := openState(m, []byte("state "), nil)
	if err != nil || again.at != s.at || again.at.applied != 11 || again.at.term != 7 {
		t.Errorf("after a restart the position is %+v (%v), want %+v", again.at, err, s.at)
	}
}

func TestEntriesThatNobodyKnowsEndTheProcess(t *testing.T) {
	for name, data := range map[string][]byte{
		"empty":           {},
		"a newer version": {entryVersion + 1, kindEpoch},
		"another kind":    {entryVersion, 9},
		"a short head":    writesOf(0, 0)[:10],
		"a short set":     append(writesOf(0, 0), 9, 'a'),
		"no length":       append(writesOf(0, 0), 0xFF),
	} {
		t.Run(name, func(t *testing.T) {
			type fatal string
			s, err := openState(newMemory(), nil, func(reason string) { panic(fatal(reason)) })
			require.NoError(t, err)
			defer func() {
				_, is := recover().(fatal)
				assert.True(t, is, "it was applied")
			}()
			s.Apply(command(5, data))
		})
	}
}

// TestAStateOlderThanItsLogIsDamaged: Raft counts on what the snapshot says that there is.
func TestAStateOlderThanItsLogIsDamaged(t *testing.T) {
	m := newMemory()
	s, _ := openState(m, []byte("state "), nil)
	saved := newSnapshots(m, []byte("state "), s)
	s.Apply(command(4, epochEntry))
	take(t, saved, 4)
	require.NoError(t, saved.check())
	delete(m.rows, "state p")
	s.at = position{applied: 3}
	assert.ErrorIs(t, saved.check(), ErrDamaged)
}

// TestWhatWasAppliedIsNotReadAgain: the snapshot of a group that starts goes up to where the rows are, with the
// members of that moment.
func TestWhatWasAppliedIsNotReadAgain(t *testing.T) {
	members := func(names ...string) (c raft.Configuration) {
		for _, n := range names {
			c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(n)})
		}
		return c
	}
	logs := logOf(2, 4, 5, 6, 7, 8)
	for i, c := range map[int]raft.Configuration{1: members("a", "b"), 4: members("a", "b", "c")} {
		logs[i].Type, logs[i].Data = raft.LogConfiguration, raft.EncodeConfiguration(c)
	}
	type snapshot struct {
		index, term, of uint64
		members         int
	}
	for name, c := range map[string]struct {
		applied  uint64
		snapshot snapshot // before; none if it is zero
		logs     []*raft.Log
		want     snapshot
	}{
		"behind members":           {7, snapshot{3, 1, 1, 1}, logs, snapshot{7, 2, 5, 2}},
		"before members":           {4, snapshot{3, 1, 1, 1}, logs, snapshot{4, 2, 1, 1}},
		"at the end":               {8, snapshot{3, 1, 1, 1}, logs, snapshot{8, 2, 8, 3}},
		"no snapshot yet":          {5, snapshot{}, logs, snapshot{5, 2, 5, 2}},
		"members are unknown":      {4, snapshot{}, logs, snapshot{}},
		"a copy behind the log":    {9, snapshot{3, 1, 1, 1}, logs, snapshot{3, 1, 1, 1}},
		"a copy and no log":        {9, snapshot{3, 1, 1, 1}, nil, snapshot{3, 1, 1, 1}},
		"nothing new":              {8, snapshot{8, 2, 8, 3}, logs, snapshot{8, 2, 8, 3}},
		"newer members than known": {6, snapshot{5, 2, 5, 2}, logs, snapshot{6, 2, 5, 2}},
	} {
		m := newMemory()
		m.rows["state p"] = string(position{applied: c.applied}.encode())
		s, _ := openState(m, []byte("state "), nil)
		saved := newSnapshots(m, []byte("state "), s)
		if was := c.snapshot; was.index > 0 {
			m.rows["state s"] = string(saved.create(raft.SnapshotVersionMax, was.index, was.term, members([]string{"a", "b", "c"}[:was.members]...), was.of).encode())
		}
		before := entries{prefix: []byte("log l")}
		for _, l := range c.logs {
			m.rows[string(before.key(l.Index))] = string(encodeEntry(l))
		}
		saved.log = openLog(t, m)
		require.NoError(t, saved.raise())
		got, err := saved.meta()
		require.NoError(t, err)
		if got == nil {
			got = new(raft.SnapshotMeta)
		}
		g := (snapshot{got.Index, got.Term, got.ConfigurationIndex, len(got.Configuration.Servers)})
		assert.Equal(t, c.want, g, "%s: the snapshot", name)
	}
}

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

// TestASnapshotSaysWhereTheStateIs: Raft counts barriers, which the state does not see, and a copy may
// come while it takes a snapshot.
func TestASnapshotSaysWhereTheStateIs(t *testing.T) {
	m := newMemory()
	s, _ := openState(m, []byte("state "), nil)
	saved := newSnapshots(m, []byte("state "), s)
	s.Apply(command(4, epochEntry))
	take(t, saved, 5) // behind a barrier
	again, err := openState(m, []byte("state "), nil)
	require.NoError(t, err)
	assert.NoError(t, newSnapshots(m, []byte("state "), again).check(), "after a start")
	if at, _ := s.position(); at.applied != 4 || again.at.applied != 5 || again.at.epoch != 4 {
		t.Errorf("the state is at %+v, and at %+v after a start", at, again.at)
	}
	assert.Error(t, tryTake(saved, 4), "an older snapshot took the place of a newer one")
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
	assert.True(t, mapsEqual(from.rows, to.rows) && strings.Contains(own, `"me"`), "got %d rows and %s, want %d rows and its own", len(to.rows), own, len(from.rows))
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

func mapsEqual(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		if b[key] != value {
			return false
		}
	}
	return true
}
