package lag

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.etcd.io/raft/v3/raftpb"
)

// TestMembersHearOnceATickWhatIsConfirmed: in a busy group, and in another one at once.
func TestMembersHearOnceATickWhatIsConfirmed(t *testing.T) {
	var l Lag
	says := func(to, commit uint64, entries int) *raftpb.Message {
		return &raftpb.Message{Type: raftpb.MsgApp.Enum(), To: new(to), Commit: new(commit), Entries: make([]*raftpb.Entry, entries)}
	}
	assert.False(t, l.Withhold(says(1, 1, 0)), "the first for a long time")
	l.busy = true
	assert.False(t, l.Withhold(says(1, 1, 0)), "one that tells nothing, and asks")
	assert.True(t, l.Withhold(says(1, 2, 0)), "one that tells only what is confirmed")
	assert.True(t, l.Withhold(says(2, 2, 0)), "the same to another member")
	assert.False(t, l.Withhold(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), To: new(uint64(1)), Commit: new(uint64(3))}), "a heartbeat")
	assert.Equal(t, uint64(2), l.notices[1].later.GetCommit(), "what is told at the next tick")
	assert.False(t, l.Withhold(says(1, 3, 1)), "one with entries")
	assert.Nil(t, l.notices[1].later, "what it has said itself")
	assert.NotNil(t, l.notices[2].later, "what nothing has said to the other one")
}

// TestFollowersApplyOnceATick: a busy group gathers what is confirmed, until somebody waits for it.
func TestFollowersApplyOnceATick(t *testing.T) {
	confirmed := func(index uint64, kind raftpb.EntryType) *raftpb.Message {
		e := &raftpb.Entry{Index: new(index), Type: kind.Enum()}
		return &raftpb.Message{Entries: []*raftpb.Entry{e}, Responses: []*raftpb.Message{{Entries: []*raftpb.Entry{e}}}}
	}
	for what, c := range map[string]struct {
		idle, ticked, awaited bool
		kind                  raftpb.EntryType
		bytes                 int
		waits                 bool
	}{
		"a busy follower":               {waits: true},
		"somebody waits":                {awaited: true},
		"the next tick":                 {ticked: true},
		"nothing was confirmed lately":  {idle: true},
		"a change of the members":       {kind: raftpb.EntryConfChangeV2},
		"so much that it takes a while": {bytes: bytesMax},
	} {
		l := Lag{busy: !c.idle}
		l.Apply(confirmed(5, raftpb.EntryNormal))
		l.Apply(confirmed(6, c.kind))
		l.bytes += c.bytes
		m := l.Due(c.ticked, c.awaited)
		if c.waits {
			assert.Nil(t, m, what)
			m = l.Due(true, false)
		}
		assert.True(t, len(m.GetEntries()) == 2 && m.Entries[1].GetIndex() == 6 && len(m.Responses) == 2, "%s: %v", what, m)
		assert.Nil(t, l.Due(true, false), what)
	}
}
