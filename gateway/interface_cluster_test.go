package gateway_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/cluster"
	"troupe/actors/cluster/peer"
	"troupe/gateway"
	"troupe/gateway/leader"
	"troupe/gateway/wiretest"
	"troupe/persistence/key"
)

// peers are the other nodes as a gateway sees them; cmd/troupe has the same.
type peers struct{ node *cluster.Node }

// Leader implements gateway.Peers.
func (p peers) Leader(ctx context.Context, shard uint16) (gateway.Peer, error) {
	id, err := p.node.Leader(ctx, key.Shard(shard))
	if err != nil || id == p.node.Self() {
		return gateway.Peer{Node: string(id)}, err
	}
	return gateway.Peer{Node: string(id), Transport: p.node.Transport()}, nil
}

// Locate implements gateway.Services.
func (p peers) Locate(instance string) (leader.Place, bool) {
	s, ok := p.node.Locate(instance)
	return leader.Place{Node: string(s.Leader), Self: string(p.node.Self()), First: s.First, Last: s.Last, Slots: s.N}, ok
}

// serveNode has a gateway answer what other nodes forward.
func serveNode(n *cluster.Node, server *gateway.Server) {
	n.Serve(server.PeerHandler(func(r *http.Request) string { return string(peer.NodeOf(r.Context())) }))
}

// TestInterfaceThroughOtherNodes holds gateway/INTERFACE.md, "Any node accepts any request", and
// persistence/PROMISES.md, "P27": an instance that one node leads is made and moved through any. It
// also shows that -nodes does what it says.
func TestInterfaceThroughOtherNodes(t *testing.T) {
	if *nodes == 1 {
		t.Skip("one node forwards nothing; see -nodes")
	}
	s := newScene(t)
	asked, lead := map[string]bool{}, map[string]bool{}
	for range 8 * *nodes {
		r := s.ann.Create(t, "plain", "").Record(t)
		for _, a := range []answer{s.ann.Event(t, "plain", r.ID, "go", ""), s.ann.Load(t, "plain", r.ID)} {
			p := leaderOf(t, r.ID, a)
			asked[p.Self], lead[p.Node] = true, true
		}
	}
	assert.True(t, len(asked) == *nodes && len(lead) >= min(*nodes, 3), "nodes that were asked: %v, that lead: %v", asked, lead)
	for i, server := range s.gateways {
		m := server.Metrics()
		assert.True(t, m.Forwarded != 0 && (m.Taken != 0 || *nodes > 3), "node %d: others carried out %d of its requests, and it %d of theirs; want some", i, m.Forwarded, m.Taken)
	}
}

// TestResetThroughOtherNodes: an instance is reset through any node, and each has its earlier moments, also those behind a reset of another one.
func TestResetThroughOtherNodes(t *testing.T) {
	if *nodes == 1 {
		t.Skip("one node forwards nothing; see -nodes")
	}
	s := newScene(t)
	resets, moments := 0, 0 // that were asked of a node that does not lead
	for range 8 * *nodes {
		r := s.ann.Create(t, "plain", "").Record(t)
		first := s.ann.Load(t, "plain", r.ID).Body
		s.ann.Event(t, "plain", r.ID, "go", "").Record(t)
		path := wiretest.Root + "/instance/plain/" + r.ID
		reset := s.adm.Post(t, path+"/reset", `{"to":1,"reason":"too early"}`)
		if p := leaderOf(t, r.ID, reset); p.Self != p.Node {
			resets++
		}
		now := s.adm.Get(t, path)
		for range 2 * *nodes {
			a := s.adm.Get(t, path+"?at=3")
			require.Equal(t, now.Body, a.Body)
			if p := leaderOf(t, r.ID, a); p.Self != p.Node {
				moments++
			}
			require.Equal(t, first, s.adm.Get(t, path+"?at=1").Body)
		}
	}
	assert.Positive(t, resets)
	assert.Positive(t, moments)
}

// leaderOf holds gateway/INTERFACE.md, "Which node leads": the instance is in one of the slots, of which each node leads one here.
func leaderOf(t *testing.T, instance string, a answer) leader.Place {
	t.Helper()
	a.Record(t)
	p, ok := leader.Parse(a.Header.Get(leader.Header))
	slot, _ := leader.SlotOf(instance, p.Slots)
	assert.True(t, ok && p.Slots == *nodes && p.First <= slot && slot <= p.Last, "%s in slot %d: got %v", instance, slot, a.Header)
	return p
}

// TestNoLeaderWithoutACluster: the header is of clusters alone.
func TestNoLeaderWithoutACluster(t *testing.T) {
	if *nodes != 1 {
		t.Skip("for one node")
	}
	s := newScene(t)
	a := s.ann.Create(t, "plain", "")
	a.Record(t)
	assert.NotContains(t, a.Header, leader.Header)
}
