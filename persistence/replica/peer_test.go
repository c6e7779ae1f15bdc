package replica

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"pgregory.net/rapid"

	_ "troupe/internal/fixedseed"
)

// refusing are rounds that refuse nothing.
type refusing struct{ Rounds }

func (refusing) Refusal() error { return nil }

// TestABrokenPeerEndsNoNode: Raft panics at what no sound member says. A node that another one tells such things goes on.
func TestABrokenPeerEndsNoNode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := brokenBeside(t)
		if rapid.Bool().Draw(t, "leads") {
			g.elect(t)
		}
		for range rapid.IntRange(1, 30).Draw(t, "messages") {
			if rapid.Bool().Draw(t, "ticks") {
				for range electionTicks {
					g.raft.Tick()
				}
			}
			g.take(saidByAPeer(t, g.host.self))
			settle(t, g)
		}
	})
}

// brokenBeside is a follower of three with five entries, three of which are confirmed and applied.
func brokenBeside(t require.TestingT) *Group {
	m := newMemory()
	h := &Host{o: HostOptions{Node: "A", Store: refusing{}, Tick: time.Second}, self: raftID("A")}
	g := &Group{o: Options{Log: zerolog.Nop()}, host: h}
	people := members{Voters: []string{"A", "B", "C"}}
	m.rows["state p"], m.rows["state m"] = string(position{applied: 3, epoch: 1, term: 1}.encode()), string(people.encode())
	l, err := openLog(m, []byte("log "), func() (position, members) { return position{}, people })
	require.NoError(t, err)
	first := &raftpb.Message{Term: new(uint64(1)), Vote: new(uint64(0)), Commit: new(uint64(3))}
	for i := range uint64(5) {
		first.Entries = append(first.Entries, &raftpb.Entry{Index: new(i + 1), Term: new(uint64(1))})
	}
	require.NoError(t, m.Write(Synced, func(b Batch) { l.append(b, first) }))
	g.state, err = openState(m, []byte("state "), nil)
	require.NoError(t, err)
	g.log, err = openLog(m, []byte("log "), g.state.published)
	require.NoError(t, err)
	g.o.Store = m
	g.raft, err = g.newRaft()
	require.NoError(t, err)
	return g
}

// TestAStoreThatIsOlderThanItsNode: the leader has a confirmation of what the log lacks. A node that joined again has none.
func TestAStoreThatIsOlderThanItsNode(t *testing.T) {
	for commit, said := range map[uint64]bool{5: false, 6: true} {
		g := brokenBeside(t)
		var log bytes.Buffer
		g.host.o.Log = zerolog.New(&log)
		g.take(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(raftID("B")), To: new(g.host.self), Term: new(uint64(1)), Commit: new(commit)})
		require.Equal(t, said, strings.Contains(log.String(), "an older copy"), "entry %d of five", commit)
	}
}

// elect has the follower lead, with the vote of B.
func (g *Group) elect(t require.TestingT) {
	require.NoError(t, g.raft.Campaign())
	for _, kind := range []raftpb.MessageType{raftpb.MsgPreVoteResp, raftpb.MsgVoteResp} {
		settle(t, g)
		g.take(&raftpb.Message{Type: kind.Enum(), From: new(raftID("B")), To: new(g.host.self), Term: new(uint64(2))})
	}
	settle(t, g)
	require.Equal(t, raft.StateLeader, g.raft.BasicStatus().RaftState)
}

// saidByAPeer is a message that the streams let pass.
func saidByAPeer(t *rapid.T, to uint64) *raftpb.Message {
	number := rapid.OneOf(rapid.Uint64Max(8), rapid.Uint64Max(8), rapid.Uint64Range(math.MaxUint64-5, math.MaxUint64-1))
	m := &raftpb.Message{
		Type: rapid.SampledFrom(saidByPeers).Draw(t, "type").Enum(), From: new(raftID(rapid.SampledFrom([]string{"B", "C", "D"}).Draw(t, "from"))), To: new(to),
		Term: new(rapid.OneOf(rapid.Uint64Max(8), rapid.Just(uint64(1<<62-1))).Draw(t, "term") + 1), LogTerm: new(number.Draw(t, "logTerm")), Index: new(number.Draw(t, "index")),
		Commit: new(number.Draw(t, "commit")), Vote: new(number.Draw(t, "vote")), RejectHint: new(number.Draw(t, "hint")), Reject: new(rapid.Bool().Draw(t, "reject")),
	}
	term := m.GetLogTerm()
	for i := range rapid.IntRange(0, 3).Draw(t, "entries") {
		if term > m.GetTerm() {
			break
		}
		term = rapid.Uint64Range(term, m.GetTerm()).Draw(t, "entryTerm")
		m.Entries = append(m.Entries, &raftpb.Entry{Index: new(m.GetIndex() + 1 + uint64(i)), Term: new(term)})
	}
	return m
}

var saidByPeers = []raftpb.MessageType{
	raftpb.MsgApp, raftpb.MsgAppResp, raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgPreVote, raftpb.MsgPreVoteResp,
	raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp, raftpb.MsgTimeoutNow,
}

// settle does what Raft wants to have done.
func settle(t require.TestingT, g *Group) {
	for g.raft.HasReady() {
		var answers []*raftpb.Message
		for _, m := range g.raft.Ready().Messages {
			switch m.GetTo() {
			case raft.LocalAppendThread:
				require.NoError(t, g.o.Store.Write(Synced, func(b Batch) { g.log.append(b, m) }))
				answers = append(answers, m.GetResponses()...)
			case raft.LocalApplyThread:
				answers = append(answers, m.GetResponses()...)
			}
		}
		for _, m := range answers {
			if m.GetTo() == g.host.self {
				_ = g.raft.Step(m)
			}
		}
	}
}
