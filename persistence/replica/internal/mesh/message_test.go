package mesh

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	_ "troupe/internal/fixedseed"
)

// TestAMessageComesAsItWasSent: every message that Raft sends between nodes.
func TestAMessageComesAsItWasSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Uint64Max(3), rapid.Uint64Max(termMax-1)) // NB: an index has room behind it
		bytes := rapid.SliceOfN(rapid.Byte(), 0, 5)
		data := func(label string) []byte {
			if b := bytes.Draw(t, label); len(b) > 0 {
				return b
			}
			return nil
		}
		kinds := []raftpb.MessageType{
			raftpb.MsgApp, raftpb.MsgAppResp, raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp,
			raftpb.MsgTimeoutNow, raftpb.MsgPreVote, raftpb.MsgPreVoteResp,
		}
		want := &raftpb.Message{
			Type: rapid.SampledFrom(kinds).Draw(t, "type").Enum(), Term: new(number.Draw(t, "term") + 1), LogTerm: new(uint64(0)),
			Index: new(number.Draw(t, "index")), Commit: new(number.Draw(t, "commit")), Vote: new(number.Draw(t, "vote")),
			RejectHint: new(number.Draw(t, "hint")), Reject: new(rapid.Bool().Draw(t, "reject")), Context: data("context"),
		}
		if kind := want.GetType(); kind == raftpb.MsgHeartbeat || kind == raftpb.MsgHeartbeatResp {
			want.Context = []byte("a number")
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "entries") {
			want.Entries = append(want.Entries, &raftpb.Entry{
				Index: new(want.GetIndex() + 1 + uint64(i)), Term: new(want.GetTerm()), Data: data("data"),
				Type: rapid.SampledFrom([]raftpb.EntryType{raftpb.EntryNormal, raftpb.EntryConfChange, raftpb.EntryConfChangeV2}).Draw(t, "kind").Enum(),
			})
		}
		encoded := appendMessage(nil, 7, want)
		shard, got, err := decodeMessage(encoded[4:])
		if err != nil || shard != 7 || !proto.Equal(want, got) {
			t.Fatalf("%v\nwas sent, and %v\ncame of shard %d: %v", want, got, shard, err)
		}
		for end := range len(encoded) - 4 {
			if _, _, err := decodeMessage(encoded[4 : 4+end]); err == nil {
				t.Fatalf("%d of %d bytes are a message", end, len(encoded)-4)
			}
		}
	})
}

// TestMessagesThatRaftWouldPanicAtAreRefused: another node must not be able to end this one.
func TestMessagesThatRaftWouldPanicAtAreRefused(t *testing.T) {
	for what, m := range map[string]*raftpb.Message{
		"one of this node to itself": {Type: raftpb.MsgStorageAppend.Enum(), Term: new(uint64(2))},
		"a proposal":                 {Type: raftpb.MsgProp.Enum(), Term: new(uint64(2))},
		"a copy":                     {Type: raftpb.MsgSnap.Enum(), Term: new(uint64(2))},
		"a question who leads":       {Type: raftpb.MsgReadIndex.Enum(), Term: new(uint64(2))},
		"an answer to it":            {Type: raftpb.MsgReadIndexResp.Enum(), Term: new(uint64(2))},
		"a wish to lead":             {Type: raftpb.MsgTransferLeader.Enum(), Term: new(uint64(2))},
		"an unknown one":             {Type: raftpb.MessageType(99).Enum(), Term: new(uint64(2))},
		"one of the last term":       {Type: raftpb.MsgApp.Enum(), Term: new(uint64(math.MaxUint64))},
		"one of no term":             {Type: raftpb.MsgApp.Enum()},
		"an entry of a later term":   {Type: raftpb.MsgApp.Enum(), Term: new(uint64(2)), Entries: []*raftpb.Entry{{Term: new(uint64(3))}}},
		"an entry of an unknown type": {
			Type: raftpb.MsgApp.Enum(), Term: new(uint64(2)), Entries: []*raftpb.Entry{{Term: new(uint64(2)), Type: raftpb.EntryType(9).Enum()}},
		},
		"a question of no number": {Type: raftpb.MsgHeartbeatResp.Enum(), Term: new(uint64(2)), Context: []byte("few")},
		"terms that go back":      {Type: raftpb.MsgApp.Enum(), Term: new(uint64(2)), LogTerm: new(uint64(2)), Entries: []*raftpb.Entry{{Term: new(uint64(1))}}},
	} {
		_, _, err := decodeMessage(appendMessage(nil, 1, m)[4:])
		assert.Error(t, err, what)
	}
}

// FuzzDecodeMessage: what another node sends is refused or a message that can be sent again.
func FuzzDecodeMessage(f *testing.F) {
	f.Add(appendMessage(nil, 1, &raftpb.Message{Type: raftpb.MsgApp.Enum(), Term: new(uint64(2)), Entries: []*raftpb.Entry{{Term: new(uint64(2)), Data: []byte("data")}}})[4:])
	f.Fuzz(func(t *testing.T, b []byte) {
		shard, m, err := decodeMessage(b)
		if err != nil {
			return
		}
		again, same, err := decodeMessage(appendMessage(nil, shard, m)[4:])
		assert.True(t, err == nil && again == shard && proto.Equal(m, same), "%v became %v: %v", m, same, err)
	})
}
