package replica_test

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// TestEntriesOfAnEarlierLeaderAreNotApplied: a message of a later leader that has no entries says that more
// is committed than what it speaks of. What this node has there is what its own leadership left,
// and a majority has something else (persistence/PROMISES.md, "F21").
func TestEntriesOfAnEarlierLeaderAreNotApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, 3, 1)
		was := c.Nodes[0]
		group := was.Store.Replica(0)
		row := func(n byte) []byte { return key.Record(nil, 0, "w", key.ID{n}) }
		require.NoError(t, write(was.Store, 0, row(1)))
		confirmed := group.Applied()
		was.Isolate(true)
		require.Error(t, write(was.Store, 0, row(2)), "a write was confirmed by nobody")

		late := raft.NewNetworkTransport(streamLayer{c.Net.Streams("later leader")(0)}, 1, time.Second, nil)
		request := raft.AppendEntriesRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("node1"), Addr: []byte("node1")},
			Term:      1000, PrevLogEntry: confirmed, PrevLogTerm: group.Stats().Term, LeaderCommitIndex: confirmed + 5,
		}
		var answer raft.AppendEntriesResponse
		err := late.AppendEntries("node0", raft.ServerAddress(was.Name), &request, &answer)
		require.True(t, err == nil && answer.Success, "the message was not taken: %+v, %v", answer, err)
		clocktest.Advance(time.Second)
		assert.Equal(t, confirmed, group.Applied(), "entries up")
		_, err = was.Store.Load(row(2))
		assert.Error(t, err, "a write that nobody confirmed is there")
		late.CloseStreams()
		assert.NoError(t, late.Close())
	})
}

// streamLayer has Raft's own transport use streams of the test.
type streamLayer struct{ replica.Streams }

func (streamLayer) Addr() net.Addr { return &net.UnixAddr{} }

func (l streamLayer) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return l.Streams.Dial(string(to), timeout)
}
