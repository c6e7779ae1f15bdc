package replica

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func logOf(term uint64, indexes ...uint64) (logs []*raft.Log) {
	for _, i := range indexes {
		logs = append(logs, &raft.Log{
			Index: i, Term: term, Type: raft.LogCommand, Data: fmt.Appendf(nil, "%d of %d", i, term),
			Extensions: []byte{byte(i)}, AppendedAt: time.Unix(5, 6),
		})
	}
	return logs
}

// terms is the log as text: first index, and the term of each entry.
func terms(t *testing.T, e *entries) string {
	t.Helper()
	first, _ := e.FirstIndex()
	last, _ := e.LastIndex()
	text := fmt.Sprint(first, ":")
	for i := first; i != 0 && i <= last; i++ {
		var l raft.Log
		require.NoError(t, e.GetLog(i, &l), "entry %d", i)
		if l.Index != i || string(l.Data) != fmt.Sprintf("%d of %d", i, l.Term) || string(l.Extensions) != string(rune(i)) || !l.AppendedAt.Equal(time.Unix(5, 6)) {
			t.Fatalf("entry %d is %+v", i, l)
		}
		text += fmt.Sprint(" ", l.Term)
	}
	return text
}

// openLog opens a log that nobody watches.
func openLog(t *testing.T, m *memory) *entries {
	t.Helper()
	e, err := openEntries(m, []byte("log "), func() func() { return func() {} })
	require.NoError(t, err)
	return e
}

// TestTheLogIsWhatRaftBelieves: after each step, and after a restart there.
func TestTheLogIsWhatRaftBelieves(t *testing.T) {
	m := newMemory()
	open := func() *entries { return openLog(t, m) }
	e := open()
	refused := fmt.Errorf("disk full: %w", ErrRefused)
	for _, step := range []struct {
		what string
		do   func() error
		fail error
		want string
	}{
		{"empty", func() error { return nil }, nil, "0:"},
		{"the first", func() error { return e.StoreLogs(logOf(1, 1, 2, 3)) }, nil, "1: 1 1 1"},
		{"one more", func() error { return e.StoreLog(logOf(2, 4)[0]) }, nil, "1: 1 1 1 2"},
		{"an end that was replaced and could not be written", func() error {
			return errors.Join(e.DeleteRange(3, 4), e.StoreLogs(logOf(3, 3)))
		}, refused, "1: 1 1 1 2"},
		{"an end that is replaced by a shorter one", func() error {
			return errors.Join(e.DeleteRange(3, 4), e.StoreLogs(logOf(3, 3)))
		}, nil, "1: 1 1 3"},
		{"the whole is replaced", func() error {
			return errors.Join(e.DeleteRange(1, 3), e.StoreLogs(logOf(4, 1, 2, 3, 4, 5)))
		}, nil, "1: 4 4 4 4 4"},
		{"the beginning goes", func() error { return e.DeleteRange(1, 3) }, nil, "4: 4 4"},
		{"behind a snapshot", func() error { return e.StoreLogs(logOf(5, 9, 10)) }, nil, "9: 5 5"},
		{"again", func() error { return e.StoreLogs(logOf(5, 11)) }, nil, "9: 5 5 5"},
	} {
		m.fail = step.fail
		err := step.do()
		require.True(t, errors.Is(err, step.fail) && (step.fail != nil || err == nil), "%s: %v", step.what, err)
		m.fail = nil
		assert.Equal(t, step.want, terms(t, e), step.what)
		bytes, _ := e.size()
		e = open()
		assert.Equal(t, step.want, terms(t, e), "%s, after a restart", step.what)
		again, _ := e.size()
		assert.Equal(t, bytes, again, "%s: it counts", step.what)
	}
	assert.ErrorIs(t, e.GetLog(8, new(raft.Log)), raft.ErrLogNotFound, "an entry before the log")
}

// TestTheLogKnowsItsMembers: the entries about them come and go with the log.
func TestTheLogKnowsItsMembers(t *testing.T) {
	m := newMemory()
	open := func() *entries { return openLog(t, m) }
	members := func(term uint64, indexes ...uint64) []*raft.Log {
		logs := logOf(term, indexes...)
		for _, l := range logs {
			if l.Index%3 == 0 {
				l.Type = raft.LogConfiguration
			}
		}
		return logs
	}
	e := open()
	for _, step := range []struct {
		what string
		do   func() error
		want [10]uint64 // the entry about the members up to each
	}{
		{"entries", func() error { return e.StoreLogs(members(1, 1, 2, 3, 4, 5, 6, 7)) }, [10]uint64{0, 0, 0, 3, 3, 3, 6, 6, 6, 6}},
		{"another end", func() error { return errors.Join(e.DeleteRange(6, 7), e.StoreLogs(logOf(2, 6))) }, [10]uint64{0, 0, 0, 3, 3, 3, 3, 3, 3, 3}},
		{"it goes on", func() error { return e.StoreLogs(members(3, 7, 8, 9)) }, [10]uint64{0, 0, 0, 3, 3, 3, 3, 3, 3, 9}},
		{"the beginning goes", func() error { return e.DeleteRange(1, 3) }, [10]uint64{9: 9}},
		{"behind a snapshot", func() error { return e.StoreLogs(logOf(4, 12, 13)) }, [10]uint64{}},
	} {
		require.NoError(t, step.do(), step.what)
		for _, log := range []*entries{e, open()} {
			for i, want := range step.want {
				got := uint64(0)
				if l := log.configuration(uint64(i)); l != nil {
					got = l.Index
				}
				assert.Equal(t, want, got, "%s: up to entry %d the members are those of entry", step.what, i)
			}
		}
	}
}

// TestAWriteThatMayHaveHappenedLeavesNoEnd: entries that a failed write left behind must not
// stand behind those of a later leader.
func TestAWriteThatMayHaveHappenedLeavesNoEnd(t *testing.T) {
	m := newMemory()
	e, _ := openEntries(m, nil, func() func() { return func() {} })
	require.NoError(t, e.StoreLogs(logOf(1, 1)))
	m.fail = errors.New("unknown")
	require.Error(t, e.StoreLogs(logOf(1, 2, 3, 4)), "the write did not fail")
	m.fail = nil
	for _, l := range logOf(1, 2, 3, 4) { // it had happened
		m.rows[string(e.key(l.Index))] = string(encodeEntry(l))
	}
	assert.Equal(t, "1: 1", terms(t, e), "the log shows what was not confirmed")
	require.NoError(t, e.StoreLogs(logOf(2, 2)))
	again, err := openEntries(m, nil, nil)
	if err != nil || terms(t, again) != "1: 1 2" {
		t.Errorf("after a restart: %s (%v), want 1: 1 2", terms(t, again), err)
	}
}

// TestAWriteThatHangsIsNoticed: Raft's heartbeats would go on, and nobody else would lead.
func TestAWriteThatHangsIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, release := make(chan time.Time, 1), make(chan struct{})
		g := &Group{o: Options{TooSlow: func() { slow <- time.Now() }, LogWriteMax: 4 * time.Second}}
		e, err := openEntries(hanging{newMemory(), release}, nil, g.watchWrite)
		require.NoError(t, err)
		stored, begun := make(chan error), time.Now()
		go func() { stored <- e.StoreLogs(logOf(1, 1)) }()
		assert.Equal(t, 4*time.Second, (<-slow).Sub(begun), "it was noticed")
		close(release)
		err = <-stored
		assert.NoError(t, err)
		assert.NoError(t, e.StoreLogs(logOf(1, 2)))
		<-time.After(time.Hour)
		assert.Empty(t, slow, "a write that did not hang was called slow")
	})
}

// hanging is a store whose writes wait.
type hanging struct {
	*memory
	release <-chan struct{}
}

func (h hanging) Write(how Write, fill func(Batch)) error {
	<-h.release
	return h.memory.Write(how, fill)
}

func TestADamagedLogIsRefused(t *testing.T) {
	for name, damage := range map[string]func(*memory, *entries){
		"a gap":       func(m *memory, e *entries) { delete(m.rows, string(e.key(2))) },
		"a short row": func(m *memory, e *entries) { m.rows[string(e.key(2))] = "short" },
		"a long key":  func(m *memory, e *entries) { m.rows[string(e.key(2))+"x"] = string(encodeEntry(logOf(1, 2)[0])) },
	} {
		m := newMemory()
		e, _ := openEntries(m, nil, func() func() { return func() {} })
		require.NoError(t, e.StoreLogs(logOf(1, 1, 2, 3)))
		damage(m, e)
		_, err := openEntries(m, nil, nil)
		assert.ErrorIs(t, err, ErrDamaged, name)
	}
}

// TestOldAnswersDoNotConfirmALeader: only a majority of voters that was asked after the
// reader, and in the same term (persistence/PROMISES.md, "F20").
func TestOldAnswersDoNotConfirmALeader(t *testing.T) {
	servers := []raft.Server{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "learner", Suffrage: raft.Nonvoter}}
	for _, test := range []struct {
		what   string
		agreed map[raft.ServerID]agreement
		of     []raft.Server
		want   bool
	}{
		{"nobody", nil, servers, false},
		{"one after", map[raft.ServerID]agreement{"b": {7, 5}}, servers, true},
		{"both before", map[raft.ServerID]agreement{"b": {7, 4}, "c": {7, 4}}, servers, false},
		{"in another term", map[raft.ServerID]agreement{"b": {6, 9}, "c": {8, 9}}, servers, false},
		{"a learner", map[raft.ServerID]agreement{"learner": {7, 9}}, servers, false},
		{"who is no member", map[raft.ServerID]agreement{"d": {7, 9}}, servers, false},
		{"a group of one", nil, servers[:1], true},
		{"one of four", map[raft.ServerID]agreement{"b": {7, 9}}, append([]raft.Server{{ID: "d"}}, servers...), false},
	} {
		tr := &transport{agreed: test.agreed}
		assert.Equal(t, test.want, tr.confirmedSince(5, 7, "a", test.of), test.what)
	}
}

// TestMessagesThatRaftWouldPanicAtAreRefused: another node must not be able to end this one.
func TestMessagesThatRaftWouldPanicAtAreRefused(t *testing.T) {
	servers := raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a"}}})
	entry := func(kind raft.LogType, data []byte) *raft.AppendEntriesRequest {
		return &raft.AppendEntriesRequest{PrevLogEntry: 4, Entries: []*raft.Log{{Index: 5, Type: kind, Data: data}}}
	}
	for _, test := range []struct {
		what string
		rpc  any
		ok   bool
	}{
		{"a heartbeat", &raft.AppendEntriesRequest{}, true},
		{"an entry", entry(raft.LogCommand, nil), true},
		{"a configuration", entry(raft.LogConfiguration, servers), true},
		{"a vote", &raft.RequestVoteRequest{}, true},
		{"a snapshot", &raft.InstallSnapshotRequest{SnapshotVersion: 1, Size: 1, Configuration: servers}, true},
		{"no entry", &raft.AppendEntriesRequest{Entries: []*raft.Log{nil}}, false},
		{"an entry too far", &raft.AppendEntriesRequest{PrevLogEntry: 4, Entries: []*raft.Log{{Index: 6}}}, false},
		{"an unknown entry", entry(99, nil), false},
		{"an entry of old Rafts", entry(raft.LogAddPeerDeprecated, nil), false},
		{"a broken configuration", entry(raft.LogConfiguration, []byte{0xC1}), false},
		{"an empty snapshot", &raft.InstallSnapshotRequest{SnapshotVersion: 1, Configuration: servers}, false},
		{"an old snapshot", &raft.InstallSnapshotRequest{Size: 1, Configuration: servers}, false},
		{"a snapshot of nobody", &raft.InstallSnapshotRequest{SnapshotVersion: 1, Size: 1, Configuration: []byte{0xC1}}, false},
	} {
		err := checkRequest(test.rpc)
		assert.Equal(t, test.ok, err == nil, "%s: got %v", test.what, err)
	}
}
