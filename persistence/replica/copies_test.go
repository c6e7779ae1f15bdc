package replica

import (
	"errors"
	"math"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"troupe/persistence/clocktest"
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

// TestACopyOfAGroupThatIsStopped is given up wherever it is, or its sender would wait and its receiver take no other.
func TestACopyOfAGroupThatIsStopped(t *testing.T) {
	for what, begin := range map[string]func(g *Group) error{
		"it waits for its turn": func(g *Group) error {
			g.host.receiving = make(chan struct{})
			_, _, err := g.gatherCopy(nil, nil)
			return err
		},
		"it comes": func(g *Group) error {
			from, to := net.Pipe()
			var sender sync.WaitGroup
			defer sender.Wait()
			defer func() { _ = to.Close() }()
			sender.Go(func() {
				for key := byte(0); ; key++ { // a row a second
					if _, err := from.Write([]byte{0, 0, 0, 1, 0, 0, 0, 0, key}); err != nil {
						return
					}
					<-time.After(time.Second)
				}
			})
			rows, err := g.o.Store.Replace()
			if err == nil {
				_, err = g.readRows(to, rows, func() {})
			}
			return err
		},
		"Raft is to be told": func(g *Group) error {
			rows := &memoryReplacement{rows: map[string]string{"row": ""}}
			if g.giveCopy(rows, &raftpb.Message{}) || rows.rows != nil {
				return errors.New("it was kept")
			}
			return net.ErrClosed
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := brokenBeside(t)
				g.stop = make(chan struct{})
				ended := make(chan error)
				go func() { ended <- begin(g) }()
				clocktest.Advance(5 * time.Second)
				close(g.stop)
				assert.ErrorIs(t, <-ended, net.ErrClosed)
			})
		})
	}
}

// TestAGroupEndsAfterItsCopyIsInPlace: what comes after Stop would come over what removes the shard.
func TestAGroupEndsAfterItsCopyIsInPlace(t *testing.T) {
	g := brokenBeside(t)
	g.stop = make(chan struct{})
	copied := &raftpb.Message{
		Type: raftpb.MsgSnap.Enum(), From: new(raftID("B")), To: new(g.host.self), Term: new(uint64(1)),
		Snapshot: snapshotOf(position{applied: 9, epoch: 1, term: 1}, members{Voters: []string{"A", "B", "C"}}),
	}
	ended := make(chan struct{})
	g.do(func() {
		g.incoming = &memoryReplacement{}
		require.NoError(t, g.raft.Step(copied))
		g.mu.Lock()
		defer g.mu.Unlock()
		g.mu.stopped, g.mu.ended = true, ended // as Stop does
		close(g.stop)
	})
	r := &round{host: g.host}
	g.step(r)
	assert.True(t, len(r.installs) == 1 && len(r.answers) == 0, "%d copies are put in place, %d answers", len(r.installs), len(r.answers))
	g.installing = false
	g.step(r)
	assert.True(t, len(r.answers) == 1 && r.answers[0].then == ended, "it has not ended: %v", r.answers)
}
