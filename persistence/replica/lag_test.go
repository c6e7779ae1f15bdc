package replica

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.etcd.io/raft/v3/raftpb"
)

// TestMembersHearOnceATickWhatIsConfirmed: in a busy group, and in another one at once.
func TestMembersHearOnceATickWhatIsConfirmed(t *testing.T) {
	var l lag
	says := func(to, commit uint64, entries int) *raftpb.Message {
		return &raftpb.Message{Type: raftpb.MsgApp.Enum(), To: new(to), Commit: new(commit), Entries: make([]*raftpb.Entry, entries)}
	}
	assert.False(t, l.withhold(says(1, 1, 0)), "the first for a long time")
	l.busy = true
	assert.False(t, l.withhold(says(1, 1, 0)), "one that tells nothing, and asks")
	assert.True(t, l.withhold(says(1, 2, 0)), "one that tells only what is confirmed")
	assert.True(t, l.withhold(says(2, 2, 0)), "the same to another member")
	assert.False(t, l.withhold(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), To: new(uint64(1)), Commit: new(uint64(3))}), "a heartbeat")
	assert.Equal(t, uint64(2), l.notices[1].later.GetCommit(), "what is told at the next tick")
	assert.False(t, l.withhold(says(1, 3, 1)), "one with entries")
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
		"so much that it takes a while": {bytes: lagBytesMax},
	} {
		l := lag{busy: !c.idle}
		l.apply(confirmed(5, raftpb.EntryNormal))
		l.apply(confirmed(6, c.kind))
		l.bytes += c.bytes
		m := l.due(c.ticked, c.awaited)
		if c.waits {
			assert.Nil(t, m, what)
			m = l.due(true, false)
		}
		assert.True(t, len(m.GetEntries()) == 2 && m.Entries[1].GetIndex() == 6 && len(m.Responses) == 2, "%s: %v", what, m)
		assert.Nil(t, l.due(true, false), what)
	}
}

// TestAGroupIsSteppedForWhatDecides: what confirms nothing waits for the next step.
func TestAGroupIsSteppedForWhatDecides(t *testing.T) {
	g := &Group{host: &Host{self: 1}}
	g.mu.confirmed = 5
	has := func(from, index uint64) *raftpb.Message {
		return &raftpb.Message{Type: raftpb.MsgAppResp.Enum(), From: new(from), Index: new(index)}
	}
	written := func(index uint64) *raftpb.Message {
		return &raftpb.Message{Type: raftpb.MsgStorageAppendResp.Enum(), Index: new(index)}
	}
	for _, c := range []struct {
		what   string
		m      *raftpb.Message
		urgent bool
	}{
		{"what was applied", &raftpb.Message{Type: raftpb.MsgStorageApplyResp.Enum()}, false},
		{"this node has entry 6, and no other one", has(1, 6), false},
		{"it is written", written(6), false},
		{"another one has it", has(2, 6), true},
		{"and entry 7, which this one has not", has(2, 7), true},
		{"now it has that", has(1, 7), true},
		{"it is written", written(7), true},
		{"this one has entry 8", has(1, 8), false},
		{"a vote", &raftpb.Message{Type: raftpb.MsgVote.Enum(), From: new(uint64(2))}, true},
		{"a refusal", &raftpb.Message{Type: raftpb.MsgAppResp.Enum(), From: new(uint64(2)), Reject: new(true)}, true},
	} {
		assert.Equal(t, c.urgent, g.urgentLocked(c.m), c.what)
	}
	g.mu.confirmed = 7
	assert.False(t, g.urgentLocked(has(3, 7)), "the third one has what is confirmed")
	assert.True(t, g.urgentLocked(has(3, 3)), "one that is behind")
	g.mu.alone = true
	assert.True(t, g.urgentLocked(has(1, 9)), "nobody else votes")
}
