package replica

import (
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
		if l.Type == raft.LogConfiguration {
			l.Data = fmt.Appendf(nil, "%d of %d", i, l.Term)
		}
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
