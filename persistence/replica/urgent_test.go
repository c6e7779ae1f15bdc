package replica

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.etcd.io/raft/v3/raftpb"
)

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

// TestAMessageOfAnySizeIsTakenAlone: an entry that is larger than what may wait, such as a published home, would be dropped each time it
// is sent, and its leader would lose its leadership.
func TestAMessageOfAnySizeIsTakenAlone(t *testing.T) {
	g := &Group{host: &Host{self: 1}}
	entries := &raftpb.Message{Type: raftpb.MsgApp.Enum(), From: new(uint64(2)), Entries: []*raftpb.Entry{{}}}
	g.receive(entries, inboxBytesMax+1)
	g.receive(entries, 1)
	assert.Len(t, g.mu.inbox, 1)
}
