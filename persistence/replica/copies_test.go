package replica

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// TestACopyHoldsTheLogOfItsLeaderOnly: nobody else ever hears that its receiver has the copy.
func TestACopyHoldsTheLogOfItsLeaderOnly(t *testing.T) {
	g, to := brokenBeside(t), raftID("C")
	g.o.LogBytesMax, g.mu.copied = 1<<20, map[uint64]uint64{}
	leads := func() { g.follow(&raft.SoftState{Lead: g.host.self, RaftState: raft.StateLeader}) }
	g.elect(t)
	leads()
	g.noteCopy(to, 4)
	assert.EqualValues(t, 4, g.needed(), "while it leads")

	g.take(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(raftID("B")), To: new(g.host.self), Term: new(uint64(3))})
	settle(t, g)
	require.Equal(t, raft.StateFollower, g.raft.BasicStatus().RaftState)
	g.follow(&raft.SoftState{Lead: raftID("B"), RaftState: raft.StateFollower})
	g.noteCopy(to, 5) // it is sent still
	assert.Equal(t, uint64(math.MaxUint64), g.needed(), "when another one leads")

	leads()
	assert.Equal(t, uint64(math.MaxUint64), g.needed(), "when it leads again")
}
